"""One export as a ``Trace``.

Tables and columns: Nsight Systems User Guide, "SQLite Schema Reference", and for what a field means the CUPTI
activity of the same name (https://docs.nvidia.com/cupti/api/). Times are those of the session, so each file
has a clock of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rpl_core.errors import BadDataError
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Origin
from rpl_core.model.trace import (
    Agent,
    Copies,
    Dispatches,
    Kernel,
    LaunchShapes,
    Process,
    Stream,
    Trace,
    TraceRole,
    TraceSource,
)
from rpl_sm90.calls import api_calls
from rpl_sm90.cuda_api import CUDA, meaning
from rpl_sm90.export import Columns, Tables, column_text
from rpl_sm90.products import REGISTER_GRANULE, RESERVED_SHARED_BYTES

Ints = NDArray[np.int64]

_WORK = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
_GRID = ("gridX", "gridY", "gridZ")
_BLOCK = ("blockX", "blockY", "blockZ")
_SHARED = ("staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread")
_NAMES = ("demangledName", "mangledName", "registersPerThread")
#: CUPTI_ACTIVITY_MEMCPY_KIND: source and destination on the device? What is not listed names neither.
_DIRECTIONS = {
    1: ("HtoD", False, True),
    2: ("DtoH", True, False),
    8: ("DtoD", True, True),
    10: ("PtoP", True, True),
}
_DEVICE_TO_DEVICE = 8
_MEMSET = "MEMSET"
_FIELDS = 2**24  # a serialized id holds process and thread in 24 bits each


def pid_of(serialized: Ints) -> Ints:
    """The process of a globalPid or globalTid, -1 where none is recorded."""
    return np.where(serialized < 0, -1, serialized // _FIELDS % _FIELDS)


def read_export(export: Tables, reader: str, form: str, known: Sequence[Diagnostic] = ()) -> Trace:
    """Read a whole export, of which ``known`` was said before. Raises ``BadDataError`` for nothing usable."""
    session = _Session(export)
    session.diagnostics.extend(known)
    return session.trace(TraceSource(reader, form, (str(export.path),)))


class _Session:
    """The tables of one session, and the numbers that everything in it gets."""

    def __init__(self, export: Tables) -> None:
        self.export = export
        self.diagnostics: list[Diagnostic] = []
        self.strings = column_text(export.rows("StringIds", "id", "value"))
        self.kernels = self._timed("CUPTI_ACTIVITY_KIND_KERNEL", *_WORK, *_GRID, *_BLOCK, *_SHARED, *_NAMES)
        self.copies = self._copies()
        self.pids = self._pids()
        self.node = self._clock()
        self.agents, self.agent_of = self._agents()
        self.null_streams = self._null_streams()
        self.streams: list[Stream] = []
        self.stream_numbers: dict[tuple[int, int, int], int] = {}

    def _timed(self, table: str, *names: str) -> Columns:
        """Rows with possible times; what was not recorded has 0 for both (CUPTI)."""
        columns = self.export.integers(table, *names)
        good = (columns["start"] > 0) & (columns["end"] >= columns["start"])
        lost = int(np.count_nonzero(~good))
        if lost:
            self.diagnostics.append(
                Diagnostic("nsight.impossible_times", f"{lost} rows of {table} have no times", count=lost)
            )
        return _in_order({name: column[good] for name, column in columns.items()})

    def _copies(self) -> Columns:
        """Copies and memory fills; a fill is a copy from nowhere."""
        copies = self._timed("CUPTI_ACTIVITY_KIND_MEMCPY", *_WORK, "bytes", "copyKind")
        fills = self._timed("CUPTI_ACTIVITY_KIND_MEMSET", *_WORK, "bytes")
        fills["copyKind"] = np.full(len(fills["start"]), -2, np.int64)
        return _in_order({name: np.concatenate([copies[name], fills[name]]) for name in copies})

    def _pids(self) -> list[int]:
        recorded = [self.kernels["globalPid"], self.copies["globalPid"]]
        recorded.append(self.export.integers("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid")["globalTid"])
        pids = np.unique(np.concatenate([pid_of(column) for column in recorded]))
        return [pid for pid in pids.tolist() if pid >= 0] or [-1]

    def process_of(self, serialized: Ints) -> NDArray[np.int32]:
        """Index of the process; the only one where the export is too old to tell."""
        if len(self.pids) == 1:
            return np.zeros(len(serialized), np.int32)
        index = {pid: i for i, pid in enumerate(self.pids)}
        return np.array([index.get(pid, -1) for pid in pid_of(serialized).tolist()], np.int32)

    def _clock(self) -> str:
        rows = self.export.rows("TARGET_INFO_SYSTEM_ENV", "name", "value")
        host = next((str(value) for name, value in rows if name == "Hostname"), "unknown host")
        began = [row[0] for row in self.export.rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")]
        return f"{host}, session {began[0] if began else self.export.path.name}"

    def _agents(self) -> tuple[tuple[Agent, ...], Mapping[tuple[int, int], int]]:
        """The GPUs, and (process id, CUDA device) -> its index: each process numbers its devices itself."""
        names = ("id", "name", "computeMajor", "computeMinor", "smMajor", "smMinor", "smCount")
        rows = self.export.rows(
            "TARGET_INFO_GPU", *names, "threadsPerWarp", "maxShmemPerSm", "clockRate", "totalMemory"
        )
        agents = [self._agent(row) for row in rows]
        place = {agent.index: i for i, agent in enumerate(agents)}
        used = {*self.kernels["deviceId"].tolist(), *self.copies["deviceId"].tolist()}
        of_gpu = {
            (pid, device): place[gpu]
            for gpu, device, pid in self.export.rows("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid")
            if gpu in place
        }
        for device in sorted(used):
            if device not in place and not any(known == device for _, known in of_gpu):
                place[device] = len(agents)
                agents.append(Agent(self.node, device, "GPU"))
        found = {
            (pid, device): of_gpu.get((pid, device), place.get(device, -1))
            for pid in self.pids
            for device in used
        }
        return tuple(agents), found

    def _agent(self, row: tuple[object, ...]) -> Agent:
        number, name, major, minor, old_major, old_minor, units, warp, shared, clock, memory = (
            value if isinstance(value, (int, str)) else None for value in row
        )
        version = (major, minor) if isinstance(major, int) else (old_major, old_minor)
        hertz = _positive(clock)
        return Agent(
            self.node,
            number if isinstance(number, int) else -1,
            "GPU",
            architecture=f"sm_{version[0]}{version[1]}" if isinstance(version[0], int) else None,
            product=name if isinstance(name, str) else None,
            compute_units=_positive(units),
            wave_size=_positive(warp),
            lds_bytes_per_cu=_positive(shared),
            clock_mhz=None if hertz is None else hertz // 1_000_000 or None,
            local_memory_bytes=_positive(memory),
        )

    def _null_streams(self) -> set[tuple[int, int, int]]:
        rows = self.export.rows("TARGET_INFO_CUDA_CONTEXT_INFO", "processId", "contextId", "nullStreamId")
        return {row for row in rows if all(isinstance(value, int) for value in row)}

    def stream_of(self, columns: Columns, process: NDArray[np.int32]) -> NDArray[np.int32]:
        """Index of the stream of each row; the null stream has id 0."""
        keys = zip(process.tolist(), columns["contextId"].tolist(), columns["streamId"].tolist(), strict=True)
        return np.array([self._stream(*key) for key in keys], np.int32)

    def _stream(self, process: int, context: int, number: int) -> int:
        if number < 0 or process < 0:
            return -1
        null = (self.pids[process], context, number) in self.null_streams
        key = (process, -1, 0) if null else (process, context, number)
        if key not in self.stream_numbers:
            taken = {stream.id for stream in self.streams if stream.process == process}
            # Contexts number their streams themselves.
            own = 0 if null else number if number and number not in taken else context * 2**20 + number
            self.stream_numbers[key] = len(self.streams)
            self.streams.append(Stream(process, own, "null stream" if null else None))
        return self.stream_numbers[key]

    def trace(self, source: TraceSource) -> Trace:
        dispatches, shapes, kernels = self._dispatches()
        copies, directions = self._copy_columns()
        if not len(dispatches) and not len(copies):
            raise BadDataError(f"{source.paths[0]} holds no GPU work", next_step="record again")
        calls, functions = api_calls(self.export, self)
        self._tell_of_graphs()
        return Trace(
            source=source,
            role=TraceRole.TIMING,
            origin=Origin.MEASURED,
            processes=tuple(Process(source.paths[0].rpartition("/")[2], pid, self.node) for pid in self.pids),
            agents=self.agents,
            kernels=kernels,
            dispatches=dispatches,
            shapes=shapes,
            streams=tuple(self.streams),
            copies=copies,
            copy_directions=directions,
            host_api=CUDA,
            api_calls=calls,
            api_functions=functions,
            api_meanings=tuple(meaning(function) for function in functions),
            diagnostics=tuple(self.diagnostics),
        )

    def _tell_of_graphs(self) -> None:
        whole = len(self.export.rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start"))
        if whole:
            self.diagnostics.append(
                Diagnostic(
                    "nsight.graphs_as_a_whole",
                    f"{whole} launches of graphs were recorded as a whole: their kernels are missing",
                    remedy="record with `nsys profile --cuda-graph-trace=node`",
                    count=whole,
                )
            )

    def agents_of(self, columns: Columns, process: NDArray[np.int32]) -> NDArray[np.int32]:
        keys = zip(process.tolist(), columns["deviceId"].tolist(), strict=True)
        return np.array([self.agent_of.get((self.pids[p], device), -1) for p, device in keys], np.int32)

    def _dispatches(self) -> tuple[Dispatches, LaunchShapes, tuple[Kernel, ...]]:
        rows = self.kernels
        process = self.process_of(rows["globalPid"])
        shapes, shape = _shapes(rows)
        kernels, kernel = self._kernels(rows, process)
        found = Dispatches(
            process=process,
            agent=self.agents_of(rows, process),
            kernel=kernel,
            stream=self.stream_of(rows, process),
            queue=np.full(len(process), -1, np.int32),
            shape=shape,
            dispatch_id=_ranks(process, rows["correlationId"], rows["start"]),
            correlation_id=rows["correlationId"],
            begin_ns=rows["start"],
            end_ns=rows["end"],
        )
        return found, shapes, kernels

    def _kernels(
        self, rows: Columns, process: NDArray[np.int32]
    ) -> tuple[tuple[Kernel, ...], NDArray[np.int32]]:
        """One kernel per name, registers and static shared memory of a process."""
        index: dict[tuple[int, ...], int] = {}
        keys = np.column_stack(
            [
                process,
                rows["demangledName"],
                rows["mangledName"],
                rows["registersPerThread"],
                rows["staticSharedMemory"],
            ]
        ).tolist()
        numbers = np.array([index.setdefault(tuple(key), len(index)) for key in keys], np.int32)
        return tuple(self._kernel(*key) for key in index), numbers

    def _kernel(self, process: int, name: int, mangled: int, registers: int, static: int) -> Kernel:
        return Kernel(
            self.strings.get(name, f"unknown kernel (id {name})"),
            symbol=self.strings.get(mangled),
            process=process,
            arch_vgpr=None if registers < 0 else -(-registers // REGISTER_GRANULE) * REGISTER_GRANULE,
            accum_vgpr=None if registers < 0 else 0,
            static_lds_bytes=None if static < 0 else static,
        )

    def _copy_columns(self) -> tuple[Copies, tuple[str, ...]]:
        rows = self.copies
        process = self.process_of(rows["globalPid"])
        agent = self.agents_of(rows, process)
        kinds = sorted(set(rows["copyKind"].tolist()))
        known = [_direction(kind) for kind in kinds]
        number = np.searchsorted(np.array(kinds, np.int64), rows["copyKind"]).astype(np.int32)
        source = np.array([on_device for _, on_device, _ in known] + [False])[number]
        target = np.array([on_device for _, _, on_device in known] + [False])[number]
        copies = Copies(
            process=process,
            source_agent=np.where(source, agent, -1).astype(np.int32),
            destination_agent=np.where(target, agent, -1).astype(np.int32),
            stream=self.stream_of(rows, process),
            direction=number,
            size_bytes=rows["bytes"],
            correlation_id=rows["correlationId"],
            begin_ns=rows["start"],
            end_ns=rows["end"],
        )
        return copies, tuple(name for name, _, _ in known)

    def copied_on_device(self) -> set[tuple[int, int]]:
        """Process index and correlation of calls that copied from the device to the device."""
        rows = self.copies
        chosen = rows["copyKind"] == _DEVICE_TO_DEVICE
        process = self.process_of(rows["globalPid"])
        return set(zip(process[chosen].tolist(), rows["correlationId"][chosen].tolist(), strict=True))


def _in_order(rows: Columns) -> Columns:
    """As a trace has them: by begin, end, process and submission."""
    keys = (rows["correlationId"], pid_of(rows["globalPid"]), rows["end"], rows["start"])
    order = np.lexsort(keys)
    return {name: column[order] for name, column in rows.items()}


def _direction(kind: int) -> tuple[str, bool, bool]:
    if kind == -2:
        return _MEMSET, False, True
    return _DIRECTIONS.get(kind, (f"COPY KIND {kind}", False, False))


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _shapes(rows: Columns) -> tuple[LaunchShapes, NDArray[np.int32]]:
    """CUDA counts blocks, rpl work-items. Every block also holds what CUDA keeps for itself."""
    block = np.column_stack([rows[name] for name in _BLOCK])
    grid = np.column_stack([rows[name] for name in _GRID]) * block
    shared = rows["staticSharedMemory"] + rows["dynamicSharedMemory"] + RESERVED_SHARED_BYTES
    table = np.column_stack([block, grid, shared, rows["localMemoryPerThread"]])
    distinct, number = np.unique(table, axis=0, return_inverse=True)
    shapes = LaunchShapes(distinct[:, 0:3], distinct[:, 3:6], distinct[:, 6], distinct[:, 7])
    return shapes, number.reshape(-1).astype(np.int32)


def _ranks(*columns: Ints | NDArray[np.int32]) -> Ints:
    """The place of each row in the order of submission: correlation ids grow with the calls."""
    order = np.lexsort(columns[::-1])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks
