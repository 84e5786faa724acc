"""The replayer for GPUs of ROCr: the native program rpl-replay, one process and one plan per replay."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rpl_core.errors import MissingError, RplError
from rpl_core.interfaces.options import Options
from rpl_core.model.metric import Origin
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.layout import KERNARG
from rpl_vmreplay.capture.records import Region
from rpl_vmreplay.interfaces import (
    AgainstResult,
    Failure,
    KeptVariable,
    MemoryEdit,
    MemoryRange,
    RegionHashes,
    ReplayEnvironment,
    Replayer,
    ReplayError,
    ReplayRequest,
    ReplayResult,
    Reservation,
    ReserveRequest,
    ReserveResult,
)
from rpl_vmreplay.native_parts import NATIVE_FOLDER, REPLAY_LAUNCHER, REPLAYER, find_part
from rpl_vmreplay.replay.captured_code import (
    LaunchCode,
    captured_code,
    code_pointers,
    fitting_arguments,
    image_of,
    may_call_pointers,
    other_code,
    stale_arguments,
    told_names,
)

if TYPE_CHECKING:
    from rpl_vmreplay.capture.plain_memory import PlainMemory


HASHES = "hashes"
KEPT, KEPT_AGAINST = "kept.bin", "kept-against.bin"
VARIABLES, VARIABLES_AGAINST = "variables.bin", "variables-against.bin"
PLAN = "plan.json"
#: Bytes in a second (chosen): a fourth of one lane of PCI Express 3.0.
_SLOWEST_COPY = 256 << 20


class ReplayPlan:
    """Everything that the program needs to know, and what of it the result has to tell."""

    def __init__(self, request: ReplayRequest, memory: PlainMemory, folder: Path) -> None:
        self._request, self._memory, self._folder = request, memory, folder
        self._capture = memory.capture
        captured = self._own = captured_code(self._capture)
        override = request.code_object
        self._code = captured if override is None else other_code(self._capture, override)
        self._against = None if request.against is None else other_code(self._capture, request.against)
        others = [code for code in (self._code, self._against) if code is not None and code is not captured]
        self._filled = fitting_arguments(self._capture, *others)
        stale = stale_arguments(self._capture, captured)
        self.stale = tuple(stale)
        self.patched = self.stale if request.patch_hidden_args else ()
        self._zeroed = [stale[name] for name in self.patched]

    @property
    def deadline_s(self) -> float | None:
        """Of the whole replay: each launch has its limit, and so have preparation and end together.

        Beside them there is time for copies, of all memory before each launch and of twice as much around
        them, at a rate that the slowest link exceeds.
        """
        request = self._request
        if request.time_limit_s is None:
            return None
        pairs = 1 if request.against is None else 2
        launches = (request.iterations + request.warm_ups + pairs - 1) * pairs
        rounds = 2 + (launches if request.recopy else 1)
        return request.time_limit_s * (launches + 1) + rounds * self._capture.bytes / _SLOWEST_COPY

    def write(self) -> Path:
        """The plan. Raises what reading the capture raises."""
        (self._folder / HASHES).mkdir()
        path = self._folder / PLAN
        path.write_text(json.dumps(self._document()), encoding="utf-8")
        return path

    def _document(self) -> dict[str, Any]:
        request, capture = self._request, self._capture
        limit = request.time_limit_s
        return {
            "iterations": request.iterations,
            "warm_ups": request.warm_ups,
            "recopy": request.recopy,
            "time_limit_ns": None if limit is None else round(limit * 1e9),
            "deadline_ns": None if self.deadline_s is None else round(self.deadline_s * 1e9),
            "isa": capture.dispatch.isa_name,
            "captured_isa": self._own.code.target,
            "code_place": self._code_place(),
            "gpu": 0 if capture.extras is None else capture.extras.agent.number or 0,
            "cold_caches": request.cold_caches,
            "kernel": self._kernel(self._code, captured=request.code_object is None),
            "other": None if self._against is None else self._kernel(self._against, captured=False),
            "other_first": list(request.against_first),
            "regions": [self._region(region) for region in capture.regions],
            "edits": [self._edit(number, edit) for number, edit in enumerate(self._edits())],
            "variables": self._variables(),
            "keep": [{"address": place.address, "size": place.size} for place in request.keep],
            "hash_folder": str(self._folder / HASHES) if request.hashes else "",
            "keep_file": str(self._folder / KEPT),
            "keep_other_file": str(self._folder / KEPT_AGAINST),
            "variables_file": str(self._folder / VARIABLES),
            "variables_other_file": str(self._folder / VARIABLES_AGAINST),
        }

    def _code_place(self) -> dict[str, Any] | None:
        """Where the captured code was, and what leads there: it is loaded there again where that can be."""
        request, image = self._request, image_of(self._capture, self._own)
        if image is None or request.code_object is not None or request.against is not None:
            return None
        names = code_pointers(self._memory, image) if may_call_pointers(self._own) else ()
        return {
            "base": image.base,
            "address": image.base + image.begin,
            "size": image.end - image.begin,
            "kernel_object": self._capture.dispatch.kernel_object or 0,
            "pointers": told_names(names),
        }

    def _kernel(self, code: LaunchCode, *, captured: bool) -> dict[str, Any]:
        launch, extras = self._capture.dispatch, self._capture.extras
        segment = None if extras is None else extras.dispatch.group_segment
        dynamic = None
        if segment is not None and segment.fixed is not None:
            dynamic = max(segment.launched - segment.fixed, 0)
        plain = self._folder / ("other.hsaco" if code is self._against else "first.hsaco")
        plain.write_bytes(code.code.elf)
        address = None if extras is None or self._filled is not None else extras.dispatch.kernarg_address
        size = launch.kernarg_size if self._filled is None else len(self._filled)
        return {
            "name": self._capture.kernel_name,
            "code_object": str(plain),
            "isa": code.code.target,
            "captured_code": captured,
            "grid": launch.grid,
            "workgroup": launch.block,
            "setup": (extras.dispatch.setup if extras is not None else None) or 3,
            "group_bytes": launch.group_segment_size,
            "private_bytes": launch.private_segment_size,
            "dynamic_group_bytes": dynamic,
            "kernarg_file": str(self._kernarg()),
            "kernarg_bytes": size,
            "kernarg_address": address,
        }

    def _kernarg(self) -> Path:
        content = bytearray(self._filled or (self._capture.folder / KERNARG).read_bytes())
        for offset, size in self._zeroed:
            content[offset : offset + size] = bytes(size)
        path = self._folder / KERNARG
        path.write_bytes(content)
        return path

    def _edits(self) -> list[MemoryEdit]:
        extras = self._capture.extras
        address = None if extras is None else extras.dispatch.kernarg_address
        if address is None:
            return list(self._request.edits)
        zeroed = [MemoryEdit(address + offset, bytes(size)) for offset, size in self._zeroed]
        return [*zeroed, *self._request.edits]

    def _edit(self, number: int, edit: MemoryEdit) -> dict[str, Any]:
        path = self._folder / f"edit-{number}.bin"
        path.write_bytes(edit.data)
        region = self._memory.region_of(edit.address)
        gpu = 0 if region is None else self._gpu_of(region)
        return {"address": edit.address, "size": len(edit.data), "file": str(path), "gpu": gpu}

    def _region(self, region: Region) -> dict[str, Any]:
        path = self._memory.path_of(region).absolute()
        return {
            "address": region.base,
            "size": region.size,
            "file": str(path),
            "gpu": self._gpu_of(region),
        }

    def _gpu_of(self, region: Region) -> int:
        """The number of the GPU that the memory belonged to; host memory goes to that of the launch."""
        extras, told = self._capture.extras, self._capture.extras_of(region)
        if extras is None or extras.agent.number is None:
            return 0
        nodes = extras.agent.node, None if told is None or told.agent is None else told.agent.node
        if None in nodes or told is None or told.kind not in ("device_pool", "vmem"):
            return extras.agent.number
        # GPUs are numbered in the order of their nodes, and follow the CPUs.
        return max((nodes[1] or 0) - (nodes[0] or 0) + extras.agent.number, 0)

    def _variables(self) -> list[dict[str, Any]]:
        folder, told = self._capture.folder.absolute(), self._capture.told_variables
        return [
            {
                "name": variable.name,
                "size": variable.size,
                "file": str(folder / variable.blob),
                "address": told[variable.blob].address if variable.blob in told else None,
            }
            for variable in self._capture.variables
        ]


def write_reserve_plan(request: ReserveRequest, folder: Path) -> Path:
    path = folder / PLAN
    ranges = [{"address": place.address, "size": place.size} for place in request.ranges]
    path.write_text(json.dumps({"isa": request.isa or "", "reserve": ranges}), encoding="utf-8")
    return path


# The replayer for GPUs of ROCr: the native program rpl-replay, one process for each replay.

_RESULT = "result.json"
_HOST_KINDS = ("host_pool", "svm", "locked_host", "hsa_memory")
_LAST_LINES = 3
_GRACE_S = 10.0


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class _Environment(_Part):
    device: str | None
    product: str | None
    isa: str | None
    runtime: str | None
    runtime_version: str | None
    interface_version: str | None
    pid: int


class _Failure(_Part):
    kind: Annotated[ReplayError, Field(strict=False)]
    fact: str
    cause: str | None
    next_step: str | None
    address: int | None


class _Reserved(_Part):
    requested: int
    size: int
    returned: int | None


class _Variable(_Part):
    name: str
    changed: bool
    address: int | None


class _ReplayDocument(_Part):
    """``Result`` of native/replay/plan/result.h."""

    environment: _Environment
    software_kfd: bool
    attempts: int
    warm_up_ns: Annotated[tuple[int, ...], Field(strict=False)]
    times_ns: Annotated[tuple[int, ...], Field(strict=False)]
    other_times_ns: Annotated[tuple[int, ...], Field(strict=False)]
    flushed_bytes: int
    restored_bytes: int | None
    notes: Annotated[tuple[str, ...], Field(strict=False)]
    failure: _Failure | None
    reservations: Annotated[tuple[_Reserved, ...], Field(strict=False)]
    variables: Annotated[tuple[_Variable, ...], Field(strict=False)]
    other_variables: Annotated[tuple[_Variable, ...], Field(strict=False)]

    def failed(self) -> Failure | None:
        return None if self.failure is None else Failure(**self.failure.model_dump())

    def where(self) -> ReplayEnvironment:
        return ReplayEnvironment(**self.environment.model_dump())

    def reserved(self) -> tuple[Reservation, ...]:
        return tuple(
            Reservation(reservation.requested, reservation.size, reservation.returned)
            for reservation in self.reservations
        )


class NativeReplayer(Replayer):
    """At the captured addresses, in a process that loads little else."""

    name, summary = "hsa", "runs captured launches on a GPU of ROCr, at their own addresses"
    devices = ("hsa",)
    origin = Origin.MEASURED

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def missing(self) -> str | None:
        try:
            find_part(REPLAYER, self._folder)
        except MissingError as error:
            return error.one_line()
        return None

    def replay(self, request: ReplayRequest) -> ReplayResult:
        from rpl_vmreplay.capture.folder import open_capture
        from rpl_vmreplay.capture.plain_memory import PlainMemory
        from rpl_vmreplay.replay.captured_code import elsewhere, pointers_fail

        begin = time.monotonic_ns()
        program = self._command(request.options)
        with tempfile.TemporaryDirectory(prefix="rpl-replay-") as name:
            folder = Path(name)
            capture = open_capture(request.capture)
            memory = PlainMemory(capture, folder)
            for path in filter(None, (request.code_object, request.against)):
                if names := elsewhere(memory, path):
                    failure = pointers_fail(names, code="other code has its functions elsewhere")
                    return ReplayResult(self.name, self.origin, failure=failure)
            plan = ReplayPlan(request, memory, folder)
            deadline = plan.deadline_s
            limit = None if deadline is None else 2 * deadline + _GRACE_S  # a second trial takes as long
            told = _run(program, plan.write(), folder / _RESULT, limit)
            return _Replayed(request, capture, plan, told, folder).result(time.monotonic_ns() - begin)

    def reserve(self, request: ReserveRequest) -> ReserveResult:

        program = self._command(request.options)
        with tempfile.TemporaryDirectory(prefix="rpl-replay-") as name:
            told = _run(program, write_reserve_plan(request, Path(name)), Path(name) / _RESULT)
        return ReserveResult(told.reserved(), told.where(), told.failed())

    def _command(self, options: Options) -> tuple[str, ...]:
        program = find_part(REPLAYER, options[NATIVE_FOLDER] or self._folder)
        return (*options[REPLAY_LAUNCHER], str(program))


def _run(program: tuple[str, ...], plan: Path, result: Path, limit_s: float | None = None) -> _ReplayDocument:
    """Its result, also when the runtime crashes behind it. Raises as ``run_command`` does.

    The program ends by itself at its deadline; ``limit_s`` is for what lies before it, such as a launcher.
    """
    from rpl_core.process import ProcessRequest, describe_exit, run_command

    lines: deque[str] = deque(maxlen=_LAST_LINES)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RPL_REPLAY_")}
    request = ProcessRequest(
        command=(*program, str(plan), str(result)),
        environment=environment,
        what="the replayer",
        time_limit_s=limit_s,
    )
    ended = run_command(request, lines.append)
    try:
        told = _ReplayDocument.model_validate_json(result.read_bytes())
    except (OSError, ValidationError):
        if ended.signal is not None:
            fact = f"the replayer {describe_exit(ended)} without a result"
            raise RplError(fact, cause="; ".join(lines) or None) from None
        raise MissingError(
            f"the replayer {describe_exit(ended)} without a result",
            cause="; ".join(lines) or None,
            next_step="check the launcher's words, and the runtime by `rpl doctor`",
        ) from None
    if ended.signal is None:
        return told
    note = f"the runtime crashed while it was shut down ({describe_exit(ended)})"
    return told.model_copy(update={"notes": (*told.notes, note)})


@frozen
class _Replayed:
    """A replay that ended, and what there is to say of it."""

    request: ReplayRequest
    capture: Capture
    plan: ReplayPlan
    told: _ReplayDocument
    folder: Path

    def result(self, wall_ns: int) -> ReplayResult:
        told = self.told
        hashed = told.failure is None and self.request.hashes and self.request.against is None
        hashes = self._hashes() if hashed else None
        same, reason, differing = self._reproduction(hashes)
        return ReplayResult(
            NativeReplayer.name,
            Origin.SYNTHETIC if told.software_kfd else Origin.MEASURED,
            times_ns=told.times_ns,
            warm_up_ns=told.warm_up_ns,
            wall_ns=wall_ns,
            reservations=told.reserved(),
            hashes=hashes,
            reproduced=same,
            reproduced_reason=reason,
            differing=differing,
            kept=self._kept_bytes(KEPT) if told.failure is None else (),
            accesses_reason="hardware tells no accesses"
            if self.request.access_log
            else "it was not asked for",
            stale_arguments=self.plan.stale,
            patched_arguments=self.plan.patched,
            variables=self._variables(VARIABLES, told.variables),
            against=self._other() if told.failure is None and self.request.against is not None else None,
            restored_bytes=told.restored_bytes,
            flushed_bytes=told.flushed_bytes or None,
            environment=told.where(),
            notes=tuple(self._notes()),
            failure=told.failed(),
        )

    def _hashes(self) -> tuple[RegionHashes, ...]:

        return tuple(
            RegionHashes(region.base, region.size, (self.folder / HASHES / str(region.base)).read_bytes())
            for region in self.capture.regions
        )

    def _kept_bytes(self, name: str) -> tuple[bytes, ...]:
        with (self.folder / name).open("rb") as stream:
            return tuple(stream.read(place.size) for place in self.request.keep)

    def _other(self) -> AgainstResult:
        told = self.told
        variables = self._variables(VARIABLES_AGAINST, told.other_variables)
        return AgainstResult(told.other_times_ns, self._kept_bytes(KEPT_AGAINST), variables)

    def _variables(self, name: str, told: tuple[_Variable, ...]) -> tuple[KeptVariable, ...]:
        if not self.request.keep_variables or self.told.failure is not None:
            return ()
        pairs = zip(told, self._left(name), strict=True)
        return tuple(
            KeptVariable(variable.name, data, variable.address)
            for variable, data in pairs
            if variable.address
        )

    def _left(self, name: str) -> list[bytes]:
        """Of each captured variable, what the launch left of it, by name or by a captured pointer."""
        with (self.folder / name).open("rb") as stream:
            return [stream.read(variable.size) for variable in self.capture.variables]

    def _reproduction(
        self, hashes: tuple[RegionHashes, ...] | None
    ) -> tuple[bool | None, str | None, tuple[MemoryRange, ...]]:
        from rpl_vmreplay.capture.plain_memory import reproduction

        if hashes is None:
            ended = self.told.failure is None
            return None, "hashes were not asked for" if ended else "the launch did not end", ()
        if self.plan.patched:
            return None, "hidden arguments were zeroed", ()
        left = dict(
            zip((variable.blob for variable in self.capture.variables), self._left(VARIABLES), strict=True)
        )
        return reproduction(self.capture, self.request, hashes, left)

    def _notes(self) -> list[str]:
        notes = list(self.told.notes)
        if self.told.attempts > 1:
            notes.append(f"attempt {self.told.attempts}: the process itself lay in the way before")
        if self.told.software_kfd:
            notes.append("this ran over the software KFD: the times are of no GPU")
        told = self.capture.extras
        host = (
            [] if told is None else [region for region in told.memory.regions if region.kind in _HOST_KINDS]
        )
        if host:
            regions = counted(len(host), "region")
            notes.append(f"{regions} of host memory lay in the GPU's own memory")
        if self.plan.stale and not self.plan.patched:
            names = ", ".join(self.plan.stale)
            notes.append(f"hidden arguments lead into the captured process: {names}")
        if any(one.address is not None for one in ([] if told is None else told.module_variables)):
            notes.append("captured pointers to variables of modules led to copies of them")
        return notes
