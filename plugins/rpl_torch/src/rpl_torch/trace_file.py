"""One torch.profiler file as a ``Trace``: the same parts that readers of other profilers assemble.

Times: ``ts`` and ``dur`` are microseconds with three digits, ``baseTimeNanoseconds`` is what ``ts`` counts
from. GPUs: ``device`` of work is a number of the driver (with roctracer CPUs count too), ``id`` in
``deviceProperties`` one of the process, so that only GPUs which are all alike are described.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import numpy as np

from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import (
    COLLECTIVES,
    NOT_RECORDED,
    Agent,
    CallKind,
    CallMeaning,
    CollectiveLaunch,
    HostApi,
    HostRange,
    Kernel,
    Process,
    TraceSource,
    distinct_values,
)
from rpl_core.text import shorten
from rpl_rocprofv3.hip_api import hip_meanings
from rpl_rocprofv3.readers.columns import Geometry, display_name, positions, taken
from rpl_rocprofv3.readers.trace import TraceParts, assembled, origin_of
from rpl_rocprofv3.readers.trace.tables import (
    LATEST_NS,
    CopyRows,
    DispatchRows,
    Findings,
    no_arguments,
    ordered_api_calls,
)
from rpl_torch.columns import WORK, EventColumns, EventFile, unreadable
from rpl_torch.model import TORCH, CollectiveCall, Flows, Frames, Inputs, Operators, TorchProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from rpl_core.model.trace import ApiCalls, Trace
    from rpl_torch.columns import Device, Header
    from rpl_torch.model import Int64Column

    Columns = Mapping[str, NDArray[Any]]

#: These traces don't say on which machine they were recorded.
TORCH_NODE = "node"
#: What the profiler calls one step of its schedule; it holds for all threads.
_STEP = "ProfilerStep#"
_MODULE = "nn.Module: "
#: A fill of memory, beside the directions of copies.
_FILL = "MEMSET"
_TAKES_WORK_ITEMS = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
#: Grids beyond 32 bits are impossible and are kept so that the check of shapes sees them.
_LARGEST_AXIS = 0xFFFF_FFFF


def read_trace(path: Path, reader: str, form: str, rank: int | None) -> Trace:
    """Read the whole file. ``rank`` is what the file's name says, for traces that don't say it themselves.

    Raises ``BadDataError`` for what is no trace, and for one without work on a GPU.
    """
    file, columns = EventFile(path), EventColumns()
    for piece in file.pieces():
        try:
            columns.add(piece)
        except ValueError as error:
            raise unreadable(path, error) from error
    return _File(path, file.header, columns).trace(TraceSource(reader, form, (str(path),)), rank)


class _File:
    """The columns of one file with times since the epoch, and the trace made of them."""

    def __init__(self, path: Path, header: Header, columns: EventColumns) -> None:
        self.path, self.header, self.columns = path, header, columns
        self.findings = Findings(path)
        if not 0 <= header.base_ns < LATEST_NS // 2:
            raise unreadable(path, f"baseTimeNanoseconds is {header.base_ns}")
        self.names = tuple(columns.names.numbers)
        self.work = self._timed(columns.work.taken())
        if not len(self.work["name"]):
            raise BadDataError(
                f"{path} holds no GPU work",
                cause="it was recorded without ProfilerActivity.CUDA (which ROCm uses too), or without a GPU",
                next_step="record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
            )
        self.runtime = self._timed(columns.runtime.taken())
        self.functions, self.function = self._functions()
        self.is_hip = is_hip(self.functions) or header.hip is not None or header.roctracer is not None
        self.pid = columns.pids.most_common(1)[0][0] if columns.pids else NOT_RECORDED
        self.guid = header.trace_id or path.name
        self.gpus = distinct_values(self.work["device"])
        self._tell()

    def _timed(self, table: dict[str, NDArray[Any]]) -> Columns:
        for name in ("begin_ns", "end_ns"):
            table[name] += self.header.base_ns
        return table

    def _functions(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        used = self._by_name(self.runtime["name"])
        return tuple(self.names[i] for i in used.tolist()), positions(self.runtime["name"], used)

    def _by_name(self, column: NDArray[np.int32]) -> NDArray[np.int64]:
        """The names that occur, in an order that does not depend on where the file was cut."""
        return np.array(sorted(distinct_values(column).tolist(), key=self.names.__getitem__), np.int64)

    def _tell(self) -> None:
        passed = self.columns.passed_over
        self.findings.add(
            "torch.unknown_events",
            sum(passed.values()),
            f"event is of a kind that is not read ({', '.join(sorted(passed))[:200]})",
            f"events are of kinds that are not read ({', '.join(sorted(passed))[:200]})",
            severity=Severity.INFO,
        )
        self.findings.add(
            "torch.rounded_times",
            int(self.columns.rounded),
            "clock counts from so early that its microseconds were rounded by the reader of numbers",
            "",
            cause="ts is larger than 2^43, where a double is no longer exact to the nanosecond",
            remedy="durations are exact; use a newer PyTorch, which writes baseTimeNanoseconds",
        )

    def trace(self, source: TraceSource, rank: int | None) -> Trace:
        distributed = self.header.distributed
        if distributed is not None and distributed.rank is not None:
            rank = distributed.rank
        is_kernel = self.work["category"] == WORK.index("kernel")
        kernels, rows = self._dispatches(is_kernel)
        copies = self._copies(~is_kernel)
        operators, frames = self._operators(), self._frames()
        parts = TraceParts(
            source=source,
            processes=(Process(self.guid, self.pid, TORCH_NODE),),
            agents=tuple(self._agent(number) for number in self.gpus.tolist()),
            kernels=kernels,
            rows=rows,
            stream_id=self.work["stream"][is_kernel],
            queue_id=np.full(int(is_kernel.sum()), NOT_RECORDED, np.int64),
            copies=(copies, self.work["stream"][~is_kernel]),
            calls=None if not len(self.function) else (self._calls(), self.functions),
            origin=origin_of([self.header.origin] if self.header.origin is not None else [], self.findings),
            ranges=self._ranges(operators),
        )
        trace = assembled(parts, lambda _: None, self.findings)
        world_size = None if distributed is None else distributed.world_size
        process = self._process(operators, frames, rank, world_size)
        return attrs.evolve(
            trace,
            host_api=HIP_API if self.is_hip else CUDA_API,
            api_meanings=meanings(self.functions) if trace.api_calls is not None else (),
            extras={**trace.extras, TORCH: (process,), COLLECTIVES: _launches_of(process)},
            architecture_prefix=self._architecture_prefix(),
        )

    def _alike(self) -> Device | None:
        """What holds for all GPUs that the process could use."""
        devices = [msgspec.structs.replace(device, id=0) for device in self.header.devices]
        return devices[0] if devices and all(device == devices[0] for device in devices) else None

    def _described(self, number: int) -> Device | None:
        if self._alike() is not None or self.is_hip:
            return self._alike()
        return next((device for device in self.header.devices if device.id == number), None)

    def _agent(self, number: int) -> Agent:
        device = self._described(number)
        if device is None:
            return Agent(TORCH_NODE, number, "GPU")
        version = device.major is not None and device.minor is not None and not self.is_hip
        return Agent(
            TORCH_NODE,
            number,
            "GPU",
            architecture=f"sm_{device.major}{device.minor}" if version else None,
            product=device.name or None,
            compute_units=_positive(device.units),
            wave_size=_positive(device.warp_size),
            lds_bytes_per_cu=_positive(device.shared_bytes),
            local_memory_bytes=_positive(device.memory_bytes),
        )

    def _architecture_prefix(self) -> str:
        """``gfx94`` of a HIP device whose version is 9.4: the stepping is not in these traces."""
        device = self._alike()
        if device is None or not self.is_hip or device.major is None or device.minor is None:
            return ""
        return (
            f"gfx{device.major}{device.minor:x}" if 0 < device.major < 100 and 0 <= device.minor < 16 else ""
        )

    def _dispatches(self, chosen: NDArray[np.bool_]) -> tuple[tuple[Kernel, ...], DispatchRows]:
        name = self.work["name"][chosen]
        used = self._by_name(name)
        count = int(chosen.sum())
        # Distinct numbers in the order of launches; kernels of one graph share a correlation id.
        order = np.lexsort((self.work["begin_ns"][chosen], self.work["correlation"][chosen]))
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        rows = DispatchRows(
            process=np.zeros(count, np.int32),
            agent=positions(self.work["device"][chosen], self.gpus),
            kernel=positions(name, used),
            stream=np.empty(0, np.int32),
            queue=np.empty(0, np.int32),
            # Work has no number of its own; its correlation id ascends with the launches.
            dispatch_id=numbers,
            correlation_id=self.work["correlation"][chosen],
            begin_ns=self.work["begin_ns"][chosen],
            end_ns=self.work["end_ns"][chosen],
            geometry=self._geometry(chosen),
        )
        return tuple(Kernel(display_name(self.names[i]), process=0) for i in used.tolist()), rows

    def _geometry(self, chosen: NDArray[np.bool_]) -> Geometry:
        """In work-items: what the launching function takes is recorded, blocks or (of one family) items."""
        shapes = np.array([_sizes(*shape) for shape in self.columns.shapes.numbers] or [[-1] * 6], np.int64)
        sizes = shapes[self.work["shape"][chosen]]
        workgroup, grid = sizes[:, :3], sizes[:, 3:]
        launcher = taken(
            self.function, positions(self.work["correlation"][chosen], self.runtime["correlation"])
        )
        items = [i for i, name in enumerate(self.functions) if name in _TAKES_WORK_ITEMS]
        in_items = (positions(launcher, items) >= 0)[:, None]
        in_range = (grid >= 0) & (grid <= _LARGEST_AXIS) & (workgroup >= 0) & (workgroup <= 0xFFFF)
        grid = np.where(~in_items & in_range, grid * workgroup, grid)
        known = not self.is_hip or self.header.roctracer is not None or self.columns.by_roctracer
        if not known and bool((grid >= 0).any()):
            # Another tracer than the one whose unit is known (docs/torch.md).
            grid = np.full_like(grid, NOT_RECORDED)
            workgroup = np.full_like(workgroup, NOT_RECORDED)
            self.findings.add("torch.no_geometry", len(grid), _NO_GEOMETRY, _NO_GEOMETRY)
        unknown = np.full(len(sizes), NOT_RECORDED, np.int64)
        return Geometry(
            (workgroup[:, 0], workgroup[:, 1], workgroup[:, 2]),
            (grid[:, 0], grid[:, 1], grid[:, 2]),
            self.work["shared_bytes"][chosen],
            unknown,
        )

    def _copies(self, chosen: NDArray[np.bool_]) -> CopyRows:
        kinds = tuple(self.columns.kinds.numbers)
        fill = self.work["category"][chosen] == WORK.index("gpu_memset")
        names = [f"MEMORY_COPY_{_DIRECTIONS.get(kind, kind)}" for kind in kinds]
        directions = tuple(dict.fromkeys((_FILL, *(shorten(name, 60) for name in names))))
        number = np.array([directions.index(shorten(name, 60)) for name in names] or [0], np.int32)
        direction = np.where(fill, 0, number[self.work["kind"][chosen]]).astype(np.int32)
        gpu = positions(self.work["device"][chosen], self.gpus)
        to_gpu = np.array([*(name == _FILL or name.endswith("_DEVICE") for name in directions)])
        from_gpu = np.array([*("_DEVICE_TO_" in name for name in directions)])
        return CopyRows(
            process=np.zeros(int(chosen.sum()), np.int32),
            source_agent=np.where(from_gpu[direction], gpu, NOT_RECORDED).astype(np.int32),
            destination_agent=np.where(to_gpu[direction], gpu, NOT_RECORDED).astype(np.int32),
            stream=np.empty(0, np.int32),
            direction=direction,
            size_bytes=self.work["size_bytes"][chosen],
            correlation_id=self.work["correlation"][chosen],
            begin_ns=self.work["begin_ns"][chosen],
            end_ns=self.work["end_ns"][chosen],
            directions=directions,
        )

    def _calls(self) -> ApiCalls:
        runtime = self.runtime
        return ordered_api_calls(
            process=np.zeros(len(self.function), np.int32),
            thread_id=runtime["thread"],
            function=self.function,
            correlation_id=runtime["correlation"],
            begin_ns=runtime["begin_ns"],
            end_ns=runtime["end_ns"],
            arguments=no_arguments(len(self.function)),
            findings=self.findings,
        )

    def _operators(self) -> Operators:
        table = self._nested(self.columns.operators.taken(), "operator", "operators")
        return Operators(
            **{name: table[name] for name in ("name", "inputs", "is_range")},
            **{name: table[name] for name in ("begin_ns", "end_ns")},
            thread_id=table["thread"],
            external_id=table["external"],
        )

    def _frames(self) -> Frames:
        table = self._nested(self.columns.frames.taken(), "Python function", "Python functions")
        return Frames(table["name"], table["thread"], table["begin_ns"], table["end_ns"])

    def _nested(self, table: dict[str, NDArray[Any]], one: str, several: str) -> Columns:
        """By (thread, begin, longest first), so that what is inside comes behind what is around it."""
        self._timed(table)
        bad = table["end_ns"] < table["begin_ns"]
        self.findings.add(
            "torch.negative_duration",
            int(bad.sum()),
            f"{one} ends before it begins, and is left out",
            f"{several} end before they begin, and are left out",
            severity=Severity.ERROR,
            cause="the recording is damaged or was edited",
        )
        order = np.lexsort((-table["end_ns"], table["begin_ns"], table["thread"]))
        order = order[~bad[order]] if bad.any() else order
        return {name: table.pop(name)[order] for name in tuple(table)}

    def _ranges(self, operators: Operators) -> tuple[HostRange, ...]:
        """``record_function``: each belongs to its thread, a step of the profiler to all of them."""
        rows = np.flatnonzero(operators.is_range).tolist()
        ranges = []
        for row in rows:
            name = self.names[operators.name[row]]
            thread = NOT_RECORDED if name.startswith(_STEP) else int(operators.thread_id[row])
            begin, end = int(operators.begin_ns[row]), int(operators.end_ns[row])
            ranges.append(HostRange(name, self.guid, self.pid, thread, begin, end))
        return tuple(ranges)

    def _process(
        self, operators: Operators, frames: Frames, rank: int | None, world_size: int | None
    ) -> TorchProcess:
        correlation, external = self._launches()
        inputs = tuple(self.columns.inputs.numbers)
        return TorchProcess(
            guid=self.guid,
            pid=self.pid,
            rank=rank,
            world_size=world_size,
            names=self.names,
            inputs=inputs,
            operators=operators,
            frames=frames,
            flows=self._flows(),
            launch_correlation=correlation,
            launch_external=external,
            collectives=self._collectives(),
            has_shapes=inputs != (Inputs(),),
            has_stacks=len(frames) > 0,
            has_modules=any(name.startswith(_MODULE) for name in self.names),
        )

    def _collectives(self) -> tuple[CollectiveCall, ...]:
        """What kernels say of themselves, and what the operators that launched the others say of them."""
        collectives = self.columns.collectives
        told, announced = {call.correlation_id for call in collectives}, self.columns.announced
        if announced:
            kernels = np.flatnonzero(self.work["category"] == WORK.index("kernel"))
            rows = kernels[np.isin(self.work["external"][kernels], list(announced))]
            collectives = collectives + [
                attrs.evolve(announced[external], correlation_id=correlation)
                for external, correlation in zip(
                    self.work["external"][rows].tolist(), self.work["correlation"][rows].tolist(), strict=True
                )
                if correlation not in told
            ]
        return tuple(collectives)

    def _launches(self) -> tuple[Int64Column, Int64Column]:
        """The operator of each correlation id: the work says it, else its launching call."""
        pairs = [
            np.stack([table["correlation"], table["external"]])[
                :, (table["correlation"] >= 0) & (table["external"] >= 0)
            ]
            for table in (self.work, self.runtime)
        ]
        both = np.concatenate(pairs, axis=1)
        correlation, first = np.unique(both[0], return_index=True)
        return correlation, both[1][first]

    def _flows(self) -> Flows:
        table = self._timed({**self.columns.flows.taken(), "end_ns": np.zeros(0, np.int64)})
        start = table["is_start"]
        ids, row = np.unique(table["id"][start], return_index=True)
        begins = np.flatnonzero(start)[row]
        ends = np.flatnonzero(~start)
        match = positions(table["id"][ends], ids)
        ends, begins = ends[match >= 0], begins[match[match >= 0]]
        thread, time = table["thread"], table["begin_ns"]
        return Flows(thread[begins], time[begins], thread[ends], time[ends])


_NO_GEOMETRY = (
    "kernels have a launch geometry of unknown unit (no word of roctracer in the trace); it is not used"
)
_DIRECTIONS = {
    "HtoD": "HOST_TO_DEVICE",
    "DtoH": "DEVICE_TO_HOST",
    "DtoD": "DEVICE_TO_DEVICE",
    "PtoP": "DEVICE_TO_DEVICE",
    "HtoH": "HOST_TO_HOST",
}


def _positive(value: int | None) -> int | None:
    return value if value is not None and 0 < value < 1 << 53 else None


def _sizes(grid: bytes, block: bytes, _: object) -> list[int]:
    """Workgroup and grid of three axes each, -1 where the text is something else."""
    sizes: list[int] = []
    for text in (block, grid):
        try:
            sizes += msgspec.json.decode(text, type=tuple[int, int, int]) if text else (-1, -1, -1)
        except msgspec.DecodeError:
            sizes += (-1, -1, -1)
    return [size if -1 <= size < 1 << 62 else -2 for size in sizes]


def _launches_of(process: TorchProcess) -> tuple[CollectiveLaunch, ...]:
    """What the trace says of collectives, as analyses of any format take it.

    Groups are called alike on all their ranks; two of one name differ by their members.
    """
    launches = []
    for call in process.collectives:
        group = None
        if call.group is not None:
            group = f"{call.group} of {call.group_size or len(call.ranks)}: {shorten(str(call.ranks), 80)}"
        launches.append(
            CollectiveLaunch(
                process.guid, process.pid, call.correlation_id, call.operation, group, call.in_elements
            )
        )
    return tuple(launches)


# What the runtime functions in these traces mean for the order of GPU work: HIP's and CUDA's.


_TRACE_WITH = "torch.profiler with ProfilerActivity.CPU and ProfilerActivity.CUDA"
HIP_API = HostApi("HIP", trace_with=_TRACE_WITH)
CUDA_API = HostApi("CUDA", trace_with=_TRACE_WITH)

_KINDS = {
    CallKind.RECORD: ("cudaEventRecord", "cudaEventRecordWithFlags", "cuEventRecord"),
    CallKind.WAIT: ("cudaStreamWaitEvent", "cuStreamWaitEvent"),
    CallKind.STREAM_SYNC: ("cudaStreamSynchronize", "cuStreamSynchronize"),
    CallKind.EVENT_SYNC: ("cudaEventSynchronize", "cuEventSynchronize"),
    CallKind.DEVICE_SYNC: ("cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize"),
    CallKind.FREE: ("cudaFree", "cuMemFree", "cudaFreeHost", "cuMemFreeHost"),
    CallKind.BEGIN_CAPTURE: ("cudaStreamBeginCapture", "cuStreamBeginCapture"),
    CallKind.END_CAPTURE: ("cudaStreamEndCapture", "cuStreamEndCapture"),
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_VERSION = re.compile(r"(?:_v\d+)?(?:_pt[ds]s|_ptsz)?$")
_COPY = re.compile(r"cu(?:da)?Memcpy")


def is_hip(functions: Sequence[str]) -> bool:
    """Whether the calls are HIP's; there is no third runtime in these traces."""
    return any(name.startswith("hip") for name in functions)


def meanings(functions: Sequence[str]) -> tuple[CallMeaning, ...]:
    """One per function; UNKNOWN for names that are neither HIP's nor CUDA's."""
    known = hip_meanings(functions)
    return tuple(
        _of_cuda(name) if name.startswith("cu") else meaning
        for name, meaning in zip(functions, known, strict=True)
    )


def _of_cuda(recorded: str) -> CallMeaning:
    name = _VERSION.sub("", recorded)
    copies = _COPY.match(name) is not None
    kind = _KIND_OF.get(name, CallKind.OTHER)
    if copies and "Async" not in name:
        kind = CallKind.BLOCKING_COPY
    per_thread = recorded.endswith(("_ptds", "_ptsz"))
    return CallMeaning(kind, own_null=per_thread, launches_graph="GraphLaunch" in name, copies=copies)
