"""The replayer of ``gfx942-emu``."""

from __future__ import annotations

import os
import tempfile
import time
from bisect import bisect_right
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError
from rpl_core.model.metric import Origin
from rpl_vmreplay.interfaces.replayer import (
    AccessLog,
    Failure,
    InputsRequest,
    InputsResult,
    KeptVariable,
    MemoryRange,
    ReplayEnvironment,
    Replayer,
    ReplayError,
    ReplayRequest,
    ReplayResult,
    Rounding,
)

if TYPE_CHECKING:
    from rpl_emu.native_program import Answer
    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.capture.plain_memory import Change, PlainMemory

DEVICE = "gfx942-emu"
_ISA = "gfx942:sramecc+:xnack-"
_NOT_ASKED = "it was not asked for"


class EmulatedReplayer(Replayer):
    """One launch after the other in a process of its own; the memory lies at its captured addresses."""

    name, summary = "emulator", "runs captured gfx942 launches on the CPU; it knows no time"
    devices = (DEVICE,)
    origin = Origin.MODELLED
    logs_accesses = True
    rounds = True

    def missing(self) -> str | None:
        from rpl_emu.native_program import find_program

        try:
            find_program()
        except MissingError as error:
            return error.one_line()
        return None

    def replay(self, request: ReplayRequest) -> ReplayResult:
        from rpl_vmreplay.capture.folder import open_capture
        from rpl_vmreplay.capture.plain_memory import PlainMemory
        from rpl_vmreplay.replay.captured_code import elsewhere, pointers_fail

        begin = time.monotonic_ns()
        capture = open_capture(request.capture)
        try:
            fact = _isa_problem(capture, request)
        except BadDataError as error:
            return self._failed(_failure(ReplayError.BAD_CODE, error))
        if fact is not None:
            next_step = "replay it on a GPU of its kind"
            return self._failed(Failure(ReplayError.ISA_MISMATCH, fact, next_step=next_step))
        if request.against is not None:
            fact = "the emulator knows no time, so kernels take no turns there"
            return self._failed(Failure(ReplayError.UNSUPPORTED, fact))
        with tempfile.TemporaryDirectory(prefix="rpl-emulated-replay-") as folder:
            memory = PlainMemory(capture, Path(folder))
            try:
                if request.code_object is not None and (names := elsewhere(memory, request.code_object)):
                    told = "other code has its functions elsewhere"
                    return self._failed(pointers_fail(names, code=told))
                answer = _run(memory, request, Path(folder))
            except MissingError as error:
                return self._failed(_failure(ReplayError.UNSUPPORTED, error))
            except BadDataError as error:
                return self._failed(_failure(ReplayError.BAD_CODE, error))
            failure = _failure_of(answer)
            if failure is not None:
                return self._failed(failure)
            return self._result(memory, request, answer.document, Path(folder), begin)

    def compare_inputs(self, request: InputsRequest) -> InputsResult | None:
        from rpl_emu.replay.inputs import compare_inputs
        from rpl_vmreplay.capture.folder import open_capture
        from rpl_vmreplay.interfaces.replayer import ReplayRequest

        capture = open_capture(request.capture)
        try:
            if fact := _isa_problem(capture, ReplayRequest(request.capture, code_object=request.other)):
                return InputsResult(failure=Failure(ReplayError.ISA_MISMATCH, fact))
            return compare_inputs(capture, request)
        except MissingError as error:
            return InputsResult(failure=_failure(ReplayError.UNSUPPORTED, error))
        except BadDataError as error:
            return InputsResult(failure=_failure(ReplayError.BAD_CODE, error))

    def _failed(self, failure: Failure) -> ReplayResult:
        return ReplayResult(
            self.name, self.origin, environment=ReplayEnvironment(DEVICE, isa=_ISA), failure=failure
        )

    def _result(
        self, memory: PlainMemory, request: ReplayRequest, told: Any, folder: Path, begin: int
    ) -> ReplayResult:
        from rpl_emu.replay.inputs import finding, read_changes
        from rpl_vmreplay.capture.plain_memory import reproduction

        written = read_changes(folder / "written")
        edits = sorted((edit.address, edit.data) for edit in request.edits)
        hashes = memory.hashes([*edits, *written]) if request.hashes else None
        same, reason, differing = (
            (None, "hashes were not asked for", ())
            if hashes is None
            else reproduction(memory.capture, request, hashes, _variables_left(memory, told, written))
        )
        return ReplayResult(
            self.name,
            self.origin,
            wall_ns=time.monotonic_ns() - begin,
            hashes=hashes,
            reproduced=same,
            reproduced_reason=reason,
            differing=differing,
            kept=tuple(_kept(memory, (edits, written), one) for one in request.keep),
            accesses=_accesses(folder, written) if request.access_log else None,
            accesses_reason=None if request.access_log else _NOT_ASKED,
            stale_arguments=tuple(told["stale_arguments"]),
            patched_arguments=tuple(told["stale_arguments"]) if request.patch_hidden_args else (),
            variables=_variables(memory, told, written) if request.keep_variables else (),
            environment=ReplayEnvironment(
                device=DEVICE,
                isa=_ISA,
                runtime="rpl-emu",
                runtime_version=told["disassembler"],
                pid=os.getpid(),
            ),
            notes=tuple(_notes(memory, told)),
            rounded=told["rounded"],
            findings=tuple(map(finding, told["findings"])) if request.sanitize else None,
        )


def _isa_problem(capture: Capture, request: ReplayRequest) -> str | None:
    """Which of the capture's word, its code and what takes its place is not for the emulator."""
    from rpl_vmreplay.capture.wholeness import isa_problem
    from rpl_vmreplay.replay.captured_code import captured_code, target_of

    parts = [
        ("the launch", capture.dispatch.isa_name),
        ("the captured code", captured_code(capture).code.target),
    ]
    if request.code_object is not None:
        parts.append(("the code object", target_of(capture, request.code_object)))
    return isa_problem(parts, _ISA)


def _run(memory: PlainMemory, request: ReplayRequest, folder: Path) -> Answer:
    from rpl_emu.native_program import call
    from rpl_emu.replay.inputs import write_edits, write_plan

    write_plan(memory, folder / "plan", request.code_object)
    launches = request.iterations + request.warm_ups
    words = ["replay", str(folder / "plan"), "--out", str(folder), "--iterations", str(launches)]
    words += ["--order", str(request.variation), "--seed", str(request.variation + 1)]
    if request.rounding is not Rounding.NEAREST:
        words += ["--rounding", request.rounding.value]
    if request.keep_halves:
        words.append("--keep-halves")
    if not request.recopy:
        words.append("--no-recopy")
    if request.sanitize:
        words.append("--sanitize")
    if request.patch_hidden_args:
        words.append("--patch-hidden-args")
    if request.code_object is not None:
        words += ["--hsaco", str(request.code_object)]
    if request.edits:
        write_edits(request.edits, folder / "edits")
        words += ["--edits", str(folder / "edits")]
    seconds = None if request.time_limit_s is None else request.time_limit_s * launches
    if seconds is not None:
        words += ["--timeout", str(seconds)]
    return call(words, seconds=seconds)


def _failure(kind: ReplayError, error: MissingError | BadDataError) -> Failure:
    return Failure(kind, error.fact, error.cause, error.next_step)


def _failure_of(answer: Answer) -> Failure | None:
    from rpl_emu.native_program import LAYOUT, LIMIT, MEMORY_FAULT

    kinds = {
        LAYOUT: ReplayError.LAYOUT_CLASH,
        LIMIT: ReplayError.TIME_LIMIT,
        MEMORY_FAULT: ReplayError.GPU_FAULT,
    }
    kind = kinds.get(answer.status)
    if kind is None:
        return None
    return Failure(kind, answer.messages[0] if answer.messages else "the emulator did not end well")


def _kept(memory: PlainMemory, layers: tuple[list[Change], ...], wanted: MemoryRange) -> bytes:
    """The captured bytes with what was changed in them, before the launch and by it."""
    return _changed(memory.read(wanted.address, wanted.size), layers, wanted)


def _variables(memory: PlainMemory, told: Any, written: list[Change]) -> tuple[KeptVariable, ...]:
    """Those that the code has."""
    there = {one["name"]: one["address"] for one in told["variables"]}
    left = _variables_left(memory, told, written)
    return tuple(
        KeptVariable(one.name, left[one.blob], there[one.name])
        for one in memory.capture.variables
        if one.blob in left
    )


def _variables_left(memory: PlainMemory, told: Any, written: list[Change]) -> dict[str, bytes]:
    """The bytes of each variable that the code has after the launch, by the captured file."""
    capture = memory.capture
    there = {one["name"]: MemoryRange(one["address"], one["size"]) for one in told["variables"]}
    return {
        one.blob: _changed((capture.folder / one.blob).read_bytes(), (written,), place)
        for one in capture.variables
        if (place := there.get(one.name)) is not None
    }


def _changed(before: bytes, layers: tuple[list[Change], ...], wanted: MemoryRange) -> bytes:
    content, end = bytearray(before), wanted.address + wanted.size
    for changes in layers:
        at = max(0, bisect_right(changes, wanted.address, key=itemgetter(0)) - 1)
        while at < len(changes) and changes[at][0] < end:
            address, data = changes[at]
            first, last = max(address, wanted.address), min(address + len(data), end)
            if first < last:
                content[first - wanted.address : last - wanted.address] = data[
                    first - address : last - address
                ]
            at += 1
    return bytes(content)


def _accesses(folder: Path, written: list[Change]) -> AccessLog:
    from rpl_emu.replay.inputs import read_ranges

    return AccessLog(
        tuple(MemoryRange(*one) for one in read_ranges(folder / "read_first.ranges")),
        tuple(MemoryRange(address, len(data)) for address, data in written),
    )


def _notes(memory: PlainMemory, told: Any) -> list[str]:
    notes = [f"{one['opcode']}: {one['why']}" for one in told["not_to_the_bit"]]
    if told["stale_arguments"]:
        notes.append(f"hidden arguments lead into the captured process: {', '.join(told['stale_arguments'])}")
    extras = memory.capture.extras
    if extras is None:
        return notes
    there = {one["name"]: one["address"] for one in told["variables"]}
    for variable in extras.module_variables:
        if variable.name not in there:
            notes.append(f"the code object has no variable {variable.name}")
        elif variable.address is not None and variable.address != there[variable.name]:
            notes.append(f"the variable {variable.name} lies elsewhere: captured pointers to it lead nowhere")
    return notes
