"""Turn an application into the contents of one rocpd file, as a profiler with given options would.

Knows which option records what; counter runs serialise the device and hold only the selected kernels
(docs/reference/formats.md, trap 10).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import attrs

from rpl_core.values import frozen
from rpl_testkit.rocpd_writer import guid_from_seed
from rpl_testkit.rocpd_writer.rows import (
    AllocationRow,
    CodeObjectRow,
    CopyRow,
    CounterRow,
    DispatchRow,
    KernelRow,
    NodeRow,
    ProcessRow,
    QueueRow,
    RegionArgument,
    RegionRow,
    RocpdContents,
    StreamRow,
)
from rpl_testkit.synthetic_recording.application_model import (
    Allocate,
    Application,
    Copy,
    GraphLaunch,
    HostWork,
    KernelModel,
    Launch,
    Record,
    Repeat,
    Step,
    SyncDevice,
    SyncEvent,
    SyncStream,
    Wait,
)
from rpl_testkit.synthetic_recording.mi300x import (
    CPU_COUNT,
    GPU_AGENT,
    DispatchLoad,
    counter_definition,
    counter_row,
    mi300x_agents,
)

# Play an application's host program against an idealised device: its API calls, and when all happens.

HIP_CATEGORY: Final = "HIP_RUNTIME_API_EXT"
_STREAM_TYPE = "ihipStream_t*"
_EVENT_TYPE = "ihipEvent_t*"


def stream_handle(stream: int) -> str:
    """Return the pointer text of a stream; the null stream is `0x0`."""
    return "0x0" if stream == 0 else hex(0x55D0_C0A0_0000 + 0x1000 * stream)


def event_handle(number: int) -> str:
    """Return the pointer text of the event made as number `number`."""
    return hex(0x55D0_C0B0_0000 + 0x40 * number)


def one_stream(stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipStreamSynchronize."""
    return (RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),)


def one_event(event: str) -> tuple[RegionArgument, ...]:
    """Arguments of hipEventSynchronize."""
    return (RegionArgument(_EVENT_TYPE, "event", event),)


def create_stream_arguments(stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipStreamCreateWithFlags; flags 1 is hipStreamNonBlocking."""
    return (
        RegionArgument("ihipStream_t**", "stream", stream_handle(stream)),
        RegionArgument("unsigned int", "flags", "1"),
    )


def _dim3(x: int, y: int, z: int) -> str:
    return f"{{z={z}, y={y}, x={x}}}"


def launch_arguments(kernel: KernelModel, number: int, stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipLaunchKernel; numBlocks counts workgroups, unlike the recorded grid."""
    blocks = [-(-grid // group) for grid, group in zip(kernel.grid, kernel.workgroup, strict=True)]
    return (
        RegionArgument("void const*", "function_address", hex(0x40_1000 + 0x100 * number)),
        RegionArgument("dim3", "numBlocks", _dim3(*blocks)),
        RegionArgument("dim3", "dimBlocks", _dim3(*kernel.workgroup)),
        RegionArgument("void**", "args", "0x7ffd0000"),
        RegionArgument("unsigned long", "sharedMemBytes", str(kernel.dynamic_lds_bytes)),
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
    )


def graph_launch_arguments(stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipGraphLaunch."""
    return (
        RegionArgument("hipGraphExec*", "graphExec", "0x55d0c0c00000"),
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
    )


def memcpy_arguments(kind: str, size_bytes: int, stream: int | None) -> tuple[RegionArgument, ...]:
    """Arguments of hipMemcpyAsync, or of hipMemcpy without `stream`."""
    common = (
        RegionArgument("void*", "dst", "0x7f0000000000"),
        RegionArgument("void const*", "src", "0x7e0000000000"),
        RegionArgument("unsigned long", "sizeBytes", str(size_bytes)),
        RegionArgument("hipMemcpyKind", "kind", kind),
    )
    return (
        common if stream is None else (*common, RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)))
    )


def malloc_arguments(size_bytes: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipMalloc."""
    return (
        RegionArgument("void**", "ptr", "0x7ffd1000"),
        RegionArgument("unsigned long", "size", str(size_bytes)),
    )


def event_record_arguments(event: str, stream: int) -> tuple[RegionArgument, ...]:
    """Arguments of hipEventRecord."""
    return (
        RegionArgument(_EVENT_TYPE, "event", event),
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
    )


def event_wait_arguments(stream: int, event: str) -> tuple[RegionArgument, ...]:
    """Arguments of hipStreamWaitEvent."""
    return (
        RegionArgument(_STREAM_TYPE, "stream", stream_handle(stream)),
        RegionArgument(_EVENT_TYPE, "event", event),
        RegionArgument("unsigned int", "flags", "0"),
    )


# Play an application's host program against an idealised device and note when everything happens.
#
# Knows stream order, event waits, host synchronisation and the legacy null stream; ignores contention
# between streams. All randomness comes from the seed, so one seed gives one timeline.

_LAUNCH_LATENCY_NS: Final = 6_000
_STREAM_GAP_NS: Final = 900
_COPY_LATENCY_NS: Final = 8_000
_QUEUES: Final = 4  # GPU_MAX_HW_QUEUES default (docs/reference/execution-graph.md, 2.1)
#: Name in the recording, HIP kind, copied bytes per ns. PCIe gen 5 x16 and on-device rates, rounded.
_COPY_KINDS: Final = {
    "HtoD": ("MEMORY_COPY_HOST_TO_DEVICE", "HostToDevice", 52.0),
    "DtoH": ("MEMORY_COPY_DEVICE_TO_HOST", "DeviceToHost", 50.0),
    "DtoD": ("MEMORY_COPY_DEVICE_TO_DEVICE", "DeviceToDevice", 1_400.0),
}


@attrs.define
class Timeline:
    """What happened: rows in order of submission, plus when the program ended."""

    dispatches: list[DispatchRow] = attrs.field(factory=list)
    copies: list[CopyRow] = attrs.field(factory=list)
    regions: list[RegionRow] = attrs.field(factory=list)
    allocations: list[AllocationRow] = attrs.field(factory=list)
    end_ns: int = 0


def play(
    application: Application,
    *,
    seed: str | int,
    begin_ns: int,
    gpu: int = 0,
    serialised: bool = False,
    duration_ns: Callable[[KernelModel], int] | None = None,
) -> Timeline:
    """Run `application` once on GPU `gpu`; `serialised` forbids overlap, as counter collection does.

    `duration_ns` is asked for each dispatch in turn; without it nominal times vary as they usually do.
    """
    # S311: repeatable jitter is the purpose, nothing here is secret.
    random = Random(f"{application.name}/{seed}")
    player = _Player(application, random, begin_ns, gpu, serialised, duration_ns)
    player.create_streams()
    player.run(application.steps)
    player.timeline.end_ns = max(player.now_ns, player.device_free_ns)
    return player.timeline


class _UsualDurations:
    def __init__(self, random: Random, serialised: bool) -> None:
        self._random = random
        self._seen: set[str] = set()
        # Counter collection stretches every dispatch.
        self._stretch = 1.04 if serialised else 1.0
        # Clock and temperature differ between runs by about a percent, dispatches a little more.
        self._run_factor = max(0.95, random.gauss(1.0, 0.008))

    def __call__(self, kernel: KernelModel) -> int:
        # The first launch of a kernel pays for cold caches.
        cold = 1.0 if kernel.name in self._seen else 1.06
        self._seen.add(kernel.name)
        jitter = max(0.9, self._random.gauss(1.0, 0.012))
        return max(1, round(kernel.nominal_ns * self._run_factor * jitter * cold * self._stretch))


class _Player:
    def __init__(
        self,
        application: Application,
        random: Random,
        begin_ns: int,
        gpu: int,
        serialised: bool,
        duration_ns: Callable[[KernelModel], int] | None,
    ) -> None:
        self.timeline = Timeline()
        self.now_ns = begin_ns
        self.device_free_ns = begin_ns
        self._application = application
        self._numbers = {kernel.name: i for i, kernel in enumerate(application.kernels, 1)}
        self._random = random
        self._agent = GPU_AGENT + gpu
        self._serialised = serialised
        self._stack_id = 0
        self._ready_ns: dict[int, int] = dict.fromkeys(range(application.streams + 1), begin_ns)
        self._events: dict[str, tuple[str, int]] = {}
        self._duration_ns = duration_ns or _UsualDurations(random, serialised)
        self._actions: dict[type, Callable[..., None]] = {
            Launch: self._launch,
            GraphLaunch: self._graph_launch,
            Copy: self._copy,
            Allocate: self._allocate,
            Record: self._record,
            Wait: self._wait,
            SyncStream: self._sync_stream,
            SyncEvent: self._sync_event,
            SyncDevice: self._sync_device,
            HostWork: self._host_work,
            Repeat: self._repeat,
        }

    def run(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self._actions[type(step)](step)

    def create_streams(self) -> None:
        for stream in range(1, self._application.streams + 1):
            arguments = create_stream_arguments(stream)
            self._call("hipStreamCreateWithFlags", arguments, 30_000)

    def _call(self, name: str, arguments: tuple[RegionArgument, ...], cost_ns: int, until_ns: int = 0) -> int:
        """Record an API call that takes `cost_ns` and returns no earlier than `until_ns`."""
        self._stack_id += 1
        begin = self.now_ns
        cost = round(cost_ns * max(0.5, self._random.gauss(1.0, 0.05)))
        self.now_ns = max(begin + cost, until_ns)
        self.timeline.regions.append(
            RegionRow(name, HIP_CATEGORY, self._stack_id, begin, self.now_ns, arguments)
        )
        self.now_ns += 200
        return begin

    def _start_on(self, stream: int, earliest_ns: int) -> int:
        waits = [earliest_ns, self._ready_ns.setdefault(stream, earliest_ns) + _STREAM_GAP_NS]
        if stream == 0:
            waits += self._ready_ns.values()
        if self._serialised:
            waits.append(self.device_free_ns + _STREAM_GAP_NS)
        return max(waits)

    def _finish_on(self, stream: int, end_ns: int) -> None:
        self._ready_ns[stream] = end_ns
        self.device_free_ns = max(self.device_free_ns, end_ns)

    def _launch(self, step: Launch) -> None:
        kernel = self._application.kernel(step.kernel)
        for _ in range(step.times):
            arguments = launch_arguments(kernel, self._numbers[kernel.name], step.stream)
            begin = self._call("hipLaunchKernel", arguments, 4_000)
            self._dispatch(kernel, step.stream, begin + _LAUNCH_LATENCY_NS)

    def _graph_launch(self, step: GraphLaunch) -> None:
        begin = self._call("hipGraphLaunch", graph_launch_arguments(step.stream), 15_000)
        for name in step.kernels:
            self._dispatch(self._application.kernel(name), step.stream, begin + _LAUNCH_LATENCY_NS)

    def _dispatch(self, kernel: KernelModel, stream: int, earliest_ns: int) -> None:
        begin = self._start_on(stream, earliest_ns)
        end = begin + self._duration_ns(kernel)
        self._finish_on(stream, end)
        self.timeline.dispatches.append(
            DispatchRow(
                dispatch_id=len(self.timeline.dispatches) + 1,
                kernel_id=self._numbers[kernel.name],
                agent=self._agent,
                queue_id=1 + stream % _QUEUES,
                stream_id=stream,
                begin_ns=begin,
                end_ns=end,
                grid=kernel.grid,
                workgroup=kernel.workgroup,
                lds_bytes=kernel.lds_bytes + kernel.dynamic_lds_bytes,
                scratch_bytes=kernel.scratch_bytes,
                stack_id=self._stack_id,
            )
        )

    def _copy(self, step: Copy) -> None:
        name, kind, bytes_per_ns = _COPY_KINDS[step.direction]
        stream = 0 if step.blocking else step.stream
        function = "hipMemcpy" if step.blocking else "hipMemcpyAsync"
        arguments = memcpy_arguments(kind, step.size_bytes, None if step.blocking else stream)
        begin = self._start_on(stream, self.now_ns + _COPY_LATENCY_NS)
        jitter = max(0.9, self._random.gauss(1.0, 0.02))
        end = begin + max(1, round((2_000 + step.size_bytes / bytes_per_ns) * jitter))
        self._call(function, arguments, 5_000, until_ns=end + 3_000 if step.blocking else 0)
        self._finish_on(stream, end)
        host, device = CPU_COUNT - 1, self._agent
        source, destination = {"HtoD": (host, device), "DtoH": (device, host), "DtoD": (device, device)}[
            step.direction
        ]
        self.timeline.copies.append(
            CopyRow(name, source, destination, step.size_bytes, stream, begin, end, self._stack_id)
        )

    def _allocate(self, step: Allocate) -> None:
        begin = self._call("hipMalloc", malloc_arguments(step.size_bytes), 25_000)
        self.timeline.allocations.append(
            AllocationRow(
                "ALLOC",
                "REAL",
                begin + 2_000,
                begin + 9_000,
                step.size_bytes,
                address=0x7F00_0000_0000 + (len(self.timeline.allocations) << 32),
                agent=self._agent,
                stack_id=self._stack_id,
            )
        )

    def _event(self, name: str) -> tuple[str, int]:
        if name not in self._events:
            self._events[name] = (event_handle(len(self._events) + 1), 0)
        return self._events[name]

    def _record(self, step: Record) -> None:
        handle, _ = self._event(step.event)
        self._call("hipEventRecord", event_record_arguments(handle, step.stream), 1_500)
        self._events[step.event] = (handle, self._ready_ns[step.stream])

    def _wait(self, step: Wait) -> None:
        handle, ready_ns = self._event(step.event)
        self._call("hipStreamWaitEvent", event_wait_arguments(step.stream, handle), 1_500)
        self._ready_ns[step.stream] = max(self._ready_ns[step.stream], ready_ns)

    def _sync_stream(self, step: SyncStream) -> None:
        until = self._ready_ns[step.stream] + 4_000
        self._call("hipStreamSynchronize", one_stream(step.stream), 3_000, until_ns=until)

    def _sync_event(self, step: SyncEvent) -> None:
        handle, ready_ns = self._event(step.event)
        self._call("hipEventSynchronize", one_event(handle), 3_000, until_ns=ready_ns + 4_000)

    def _sync_device(self, _step: SyncDevice) -> None:
        self._call("hipDeviceSynchronize", (), 3_000, until_ns=self.device_free_ns + 5_000)

    def _host_work(self, step: HostWork) -> None:
        self.now_ns += step.duration_ns

    def _repeat(self, step: Repeat) -> None:
        for _ in range(step.times):
            self.run(step.steps)


def _every_dispatch(_kernel_name: str, _occurrence: int) -> bool:
    return True


@frozen
class Collection:
    """What to record. `selects(kernel name, n-th launch from 1)` filters counter collection only.

    With counters and without `kernels`, dispatches come from the counter records: only selected ones.
    """

    kernels: bool = True
    copies: bool = True
    hip_api: bool = True
    allocations: bool = False
    counters: tuple[str, ...] = ()
    selects: Callable[[str, int], bool] = _every_dispatch


@frozen
class ProcessIdentity:
    """Who is recorded: ids and texts of the process row."""

    pid: int
    command: str
    ppid: int = 0
    hostname: str = "synthetic-node"
    extdata: Mapping[str, Any] = attrs.field(factory=dict)


def record(
    application: Application,
    process: ProcessIdentity,
    collection: Collection,
    *,
    seed: str | int,
    begin_ns: int = 5_000_000_000_000,
    gpu: int = 0,
    gpus: int = 1,
    duration_ns: Callable[[KernelModel], int] | None = None,
) -> RocpdContents:
    """Play `application` on GPU `gpu` of `gpus` and return what a profiler would have written about it.

    `duration_ns`: see `play`.
    """
    timeline = play(
        application,
        seed=seed,
        begin_ns=begin_ns + 40_000_000,
        gpu=gpu,
        serialised=bool(collection.counters),
        duration_ns=duration_ns,
    )
    agent = GPU_AGENT + gpu
    dispatches, counters = _dispatches_and_counters(application, timeline, collection)
    copies = timeline.copies if collection.copies else []
    used_streams = sorted(({row.stream_id for row in dispatches} | {row.stream_id for row in copies}) - {0})
    return RocpdContents(
        guid=guid_from_seed(f"{application.name}/{seed}/{process.pid}/{','.join(collection.counters)}"),
        node=NodeRow(node_id=2161002656, machine_id="8503827322599284411", hostname=process.hostname),
        process=ProcessRow(
            process.pid,
            process.command,
            begin_ns,
            timeline.end_ns + 20_000_000,
            process.ppid,
            process.extdata,
        ),
        agents=mi300x_agents(gpus),
        code_objects=(_code_object(agent, process.pid),),
        kernels=tuple(_kernel_row(kernel, i) for i, kernel in enumerate(application.kernels, 1)),
        queues=_named_queues(dispatches),
        streams=tuple(StreamRow(stream, f"Stream {k}") for k, stream in enumerate(used_streams)),
        dispatches=dispatches,
        copies=copies,
        regions=timeline.regions if collection.hip_api else (),
        allocations=timeline.allocations if collection.allocations else (),
        counters=counters,
        counter_definitions=tuple(counter_definition(name, agent) for name in collection.counters),
    )


def _named_queues(dispatches: list[DispatchRow]) -> tuple[QueueRow, ...]:
    first_use = dict.fromkeys(row.queue_id for row in dispatches)
    return tuple(QueueRow(queue, f"Queue {k}") for k, queue in enumerate(first_use))


def _dispatches_and_counters(
    application: Application, timeline: Timeline, collection: Collection
) -> tuple[list[DispatchRow], list[CounterRow]]:
    if not collection.counters:
        return (timeline.dispatches if collection.kernels else []), []
    selected: list[DispatchRow] = []
    counters: list[CounterRow] = []
    launches: Counter[str] = Counter()
    for row in timeline.dispatches:
        kernel = application.kernels[row.kernel_id - 1]
        launches[kernel.name] += 1
        if collection.selects(kernel.name, launches[kernel.name]):
            selected.append(row)
            load = DispatchLoad(kernel, row.end_ns - row.begin_ns, application.clock_mhz)
            counters += [counter_row(row.dispatch_id, name, load) for name in collection.counters]
    return (timeline.dispatches if collection.kernels else selected), counters


def _code_object(agent: int, pid: int) -> CodeObjectRow:
    return CodeObjectRow(
        code_object_id=1,
        agent=agent,
        uri=f"memory://{pid}#offset=0x1b959ab0&size=28688",
        load_base=0x7126_DE40_0000,
        load_bytes=32_768,
        extdata={"storage_type": 2, "memory_base": 0x1B95_9AB0, "memory_size": 28_688},
    )


def _kernel_row(kernel: KernelModel, number: int) -> KernelRow:
    return KernelRow(
        kernel_id=number,
        name=kernel.name,
        symbol=kernel.symbol,
        arch_vgpr=kernel.arch_vgpr,
        accum_vgpr=kernel.accum_vgpr,
        sgpr=kernel.sgpr,
        lds_bytes=kernel.lds_bytes,
        scratch_bytes=kernel.scratch_bytes,
        kernarg_bytes=kernel.kernarg_bytes,
        kernel_object=0x7126_DE40_0000 + 0x1000 * number,
    )
