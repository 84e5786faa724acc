"""The replayer of ``gfx942-emu``: a captured launch in the emulator, and two kernels on many inputs."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError, RplError
from rpl_core.model.metric import Origin
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.interfaces import (
    AccessLog,
    Failure,
    Finding,
    InputAnswer,
    InputsRequest,
    InputsResult,
    KeptVariable,
    LaunchEnd,
    LaunchInput,
    MemoryEdit,
    MemoryRange,
    ReplayEnvironment,
    Replayer,
    ReplayError,
    ReplayRequest,
    ReplayResult,
    Rounding,
    WrittenPair,
)
from rpl_vmreplay.replay.captured_code import fitting_arguments, other_code

if TYPE_CHECKING:
    from rpl_emu.software_gpu import Answer
    from rpl_vmreplay.capture.plain_memory import Change, PlainMemory

# Files between rpl and the emulator: what it is told of a launch, and what it answers.

_WORD_BYTES = 8


def write_plan(memory: PlainMemory, path: Path, code: Path | None = None) -> None:
    """``code`` takes the place of the captured one. Raises BadDataError for names that a plan can't hold,
    and what ``PlainMemory`` raises."""
    path.write_text("".join("\t".join(line) + "\n" for line in _plan_lines(memory, path, code)))


def _plan_lines(memory: PlainMemory, path: Path, code: Path | None) -> Iterator[tuple[str, ...]]:
    from rpl_vmreplay.replay.captured_code import captured_code, code_pointers, image_of, may_call_pointers

    capture = memory.capture
    launch, extras = capture.dispatch, capture.extras
    yield "kernel", _safe(launch.mangled_name.partition(" ")[0])
    yield "grid", *map(str, launch.grid)
    yield "block", *map(str, launch.block)
    yield "lds", str(launch.group_segment_size)
    yield "scratch", str(launch.private_segment_size)
    kernarg_at = None if extras is None else extras.dispatch.kernarg_address
    arguments = None if code is None else fitting_arguments(capture, other_code(capture, code))
    if arguments is None:
        yield "kernarg", str(kernarg_at or 0), _plan_path(capture.folder / "kernarg.bin")
    else:
        filled = path.with_name("kernarg.bin")
        filled.write_bytes(arguments)
        yield "kernarg", "0", _plan_path(filled)
    own = captured_code(capture)
    image = image_of(capture, own)
    pinned = image is not None and may_call_pointers(own) and code_pointers(memory, image)
    code_at = 0 if image is None else image.base
    yield "pinned" if pinned else "code", str(code_at), _plan_path(capture.folder / "kernel.hsaco")
    for region in capture.regions:
        yield "region", str(region.base), str(region.size), _plan_path(memory.path_of(region))
    for variable in capture.variables:
        yield "variable", str(variable.size), _safe(variable.name), _plan_path(capture.folder / variable.blob)


def _plan_path(path: Path) -> str:
    return _safe(str(path.absolute()))


def _safe(text: str) -> str:
    if any(character in text for character in "\t\r\n"):
        raise BadDataError(f"a name with a tab or the end of a line in it: {text!r}")
    return text


def write_edits(edits: Sequence[MemoryEdit], stem: Path) -> None:
    """As ``STEM.ranges`` and ``STEM.bytes``."""
    words = (number for edit in edits for number in (edit.address, len(edit.data)))
    stem.with_suffix(".ranges").write_bytes(b"".join(word.to_bytes(_WORD_BYTES, "little") for word in words))
    stem.with_suffix(".bytes").write_bytes(b"".join(edit.data for edit in edits))


def read_ranges(path: Path) -> list[tuple[int, int]]:
    """Pairs of address and size."""
    content = path.read_bytes()
    words = [
        int.from_bytes(content[at : at + _WORD_BYTES], "little") for at in range(0, len(content), _WORD_BYTES)
    ]
    return list(zip(words[::2], words[1::2], strict=True))


def read_changes(stem: Path) -> list[Change]:
    """What ``STEM.ranges`` and ``STEM.bytes`` say together."""
    content, at = stem.with_suffix(".bytes").read_bytes(), 0
    changes = []
    for address, size in read_ranges(stem.with_suffix(".ranges")):
        changes.append((address, content[at : at + size]))
        at += size
    return changes


# Two kernels on many inputs in one process of the emulator (``rpl-emu inputs``).

#: One launch that was begun in time may still run so long beyond it, at the emulator's slowest.
_GRACE_S = 120.0
#: The two kernels, their memory and what is known of each word.
_MOST_MEMORY_BYTES = 16 << 30


def compare_inputs(capture: Capture, request: InputsRequest) -> InputsResult:
    """Raises ``MissingError`` (the program, an opcode) and ``BadDataError``, as one launch does."""
    from rpl_vmreplay.capture.plain_memory import PlainMemory

    with tempfile.TemporaryDirectory(prefix="rpl-emulated-inputs-") as name:
        folder = Path(name)
        _write_plan(PlainMemory(capture, folder), request, folder)
        (folder / "list").write_text("".join(_input_lines(request.inputs, folder)))
        words = ["inputs", str(folder / "plan"), "--hsaco", str(request.baseline)]
        words += ["--against", str(request.other), "--list", str(folder / "list"), "--out", str(folder)]
        words += ["--max-instructions", str(request.most_instructions)]
        words += ["--memory-limit", str(_MOST_MEMORY_BYTES)]
        if request.time_limit_s is not None:
            words += ["--timeout", str(request.time_limit_s)]
        documents, broke = _call(words, request.time_limit_s)
        answers = [document for document in documents if "input" in document]
        last = next((document for document in documents if "done" in document), None)
        failure = None
        if broke is not None:
            name = request.inputs[len(answers)].name if len(answers) < len(request.inputs) else "the last one"
            failure = Failure(
                ReplayError.UNSUPPORTED,
                f"{broke.fact}, at this input: {name}",
                cause=broke.cause,
                next_step="nothing is known of the inputs behind it; please report the emulator's defect",
            )
        elif (refused := next(_refusals(answers), None)) is not None:
            # How the launch would have ended is not known, so the input and those behind it say nothing.
            number, why = refused
            answers = answers[:number]
            failure = Failure(ReplayError.UNSUPPORTED, f"{why}, at this input: {request.inputs[number].name}")
        elif last is None and not answers:
            failure = Failure(ReplayError.TIME_LIMIT, "no input was compared in time")
        reached = {"instructions": 0, "of": 0} if last is None else last["b_unreached"]
        return InputsResult(
            tuple(_answer(answer, folder) for answer in answers),
            reached["instructions"],
            reached["of"],
            failure,
        )


def _write_plan(memory: PlainMemory, request: InputsRequest, folder: Path) -> None:
    """As for a replay, with the memory beside in its order: each one a file of holes."""

    write_plan(memory, folder / "plan")
    others: list[list[str]] = []
    regions: list[list[str]] = []
    for line in (folder / "plan").read_text().splitlines():
        fields = line.split("\t")
        (regions if fields[0] == "region" else others).append(fields)
    for number, one in enumerate(request.beside):
        path = folder / f"beside-{number}"
        with path.open("wb") as file:
            file.truncate(one.size)
        regions.append(["region", str(one.address), str(one.size), str(path)])
    regions.sort(key=lambda fields: int(fields[1]))
    (folder / "plan").write_text("".join("\t".join(one) + "\n" for one in [*others, *regions]))


def _input_lines(inputs: Sequence[LaunchInput], folder: Path) -> Iterator[str]:
    files: dict[bytes, Path] = {}

    def place(content: bytes) -> Path:
        if content not in files:
            files[content] = folder / f"content-{len(files)}"
            files[content].write_bytes(content)
        return files[content]

    for one in inputs:
        yield "input\n"
        yield "\t".join(("grid", *map(str, one.grid))) + "\n"
        yield "\t".join(("block", *map(str, one.block))) + "\n"
        yield f"kernarg\t{place(one.kernarg)}\n"
        for fill in one.fills:
            if fill.size and fill.pattern:
                yield f"fill\t{fill.address}\t{fill.size}\t{place(fill.pattern)}\n"
        if one.sanitize:
            yield "sanitize\n"
        if one.twice:
            yield "twice\n"


def _call(words: Sequence[str], seconds: float | None) -> tuple[list[Any], RplError | None]:
    """The lines that it printed, and how it broke off, if it was not the time that ended it."""
    from rpl_emu.software_gpu import command_of, environment

    command = command_of(words)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=environment(),
            timeout=None if seconds is None else seconds + _GRACE_S,
        )
        printed, said = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        status = done.returncode
    except subprocess.TimeoutExpired as late:
        printed = (late.stdout or b"").decode("utf-8", "replace")
        status, said = 0, ""
    lines = [json.loads(line) for line in printed[: printed.rfind("\n") + 1].splitlines()]
    if status == 0:
        return lines, None
    fact = next((line.removeprefix("rpl-emu: ") for line in said.splitlines() if line), "it said nothing")
    if not lines and status == 69:
        raise MissingError(fact)
    if not lines and status in (64, 65, 124):
        raise BadDataError(fact)
    how = f"signal {-status}" if status < 0 else f"status {status}"
    broke = RplError(f"the emulator ended with {how}", cause=fact)
    if not lines:
        raise broke
    return lines, broke


def _refusals(answers: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Where a launch reached what the emulator does not offer, and what that is."""
    for number, told in enumerate(answers):
        for end in (told["a"], told.get("b")):
            if end is not None and end["outcome"] == "not_offered":
                yield number, end["reason"]


def _answer(told: Any, folder: Path) -> InputAnswer:
    baseline = _end(told["a"])
    if "b" not in told:
        return InputAnswer(baseline, watched=told["watched"])
    return InputAnswer(
        baseline,
        _end(told["b"]),
        watched=told["watched"],
        same_results=told["same_results"],
        stable=told["stable"],
        written_bytes=told["bytes"],
        differing=tuple(_pairs(folder, told["input"])) if told["differs"] else (),
        outside=MemoryRange(int(told["outside_at"], 16), told["outside"]) if told["outside"] else None,
        variables=tuple(told["variables"]),
        cooperation=told["cooperation"],
        lds_unlike=told["lds_unlike"],
        barriers=told["barriers"],
        atomics=told["atomics"],
    )


def finding(told: Any) -> Finding:
    other = f" and {told['other']}" if told["other"] != told["at"] else ""
    group = ", ".join(map(str, told["group"]))
    return Finding(
        told["kind"], f"{told['kind']} at {told['at']}{other}, workgroup ({group}), {told['times']} times"
    )


def _end(told: Any) -> LaunchEnd:
    found = tuple(map(finding, told["findings"]))
    return LaunchEnd(told["outcome"], told["reason"], found, told["instructions"])


def _pairs(folder: Path, number: int) -> Iterator[WrittenPair]:
    sides = [(folder / f"{number}.{side}").read_bytes() for side in ("a", "b")]
    at = 0
    for address, size in read_ranges(folder / f"{number}.ranges"):
        yield WrittenPair(address, *(side[at : at + size] for side in sides))
        at += size


# The replayer itself.

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
        from rpl_emu.software_gpu import find_program

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
        from rpl_vmreplay.capture.folder import open_capture
        from rpl_vmreplay.interfaces import ReplayRequest

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
            kept=tuple(_bytes_after(memory, (edits, written), one) for one in request.keep),
            accesses=AccessLog(
                tuple(MemoryRange(*one) for one in read_ranges(folder / "read_first.ranges")),
                tuple(MemoryRange(address, len(data)) for address, data in written),
            )
            if request.access_log
            else None,
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
    from rpl_emu.software_gpu import call

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
    from rpl_emu.software_gpu import LAYOUT, LIMIT, MEMORY_FAULT

    kinds = {
        LAYOUT: ReplayError.LAYOUT_CLASH,
        LIMIT: ReplayError.TIME_LIMIT,
        MEMORY_FAULT: ReplayError.GPU_FAULT,
    }
    kind = kinds.get(answer.status)
    if kind is None:
        return None
    return Failure(kind, answer.messages[0] if answer.messages else "the emulator did not end well")


def _bytes_after(memory: PlainMemory, layers: tuple[list[Change], ...], wanted: MemoryRange) -> bytes:
    """The captured bytes with what was changed in them, before the launch and by it."""
    return _changed(memory.read(wanted.address, wanted.size), layers, wanted)


def _variables(memory: PlainMemory, told: Any, written: list[Change]) -> tuple[KeptVariable, ...]:
    """Those that the code has."""
    there = {one["name"]: one["address"] for one in told["variables"]}
    left = _variables_left(memory, told, written)
    return tuple(
        KeptVariable(variable.name, left[variable.blob], there[variable.name])
        for variable in memory.capture.variables
        if variable.blob in left
    )


def _variables_left(memory: PlainMemory, told: Any, written: list[Change]) -> dict[str, bytes]:
    """The bytes of each variable that the code has after the launch, by the captured file."""
    capture = memory.capture
    there = {one["name"]: MemoryRange(one["address"], one["size"]) for one in told["variables"]}
    return {
        variable.blob: _changed((capture.folder / variable.blob).read_bytes(), (written,), place)
        for variable in capture.variables
        if (place := there.get(variable.name)) is not None
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
