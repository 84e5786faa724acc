"""What a recording consists of, as plain values for `write_rocpd`.

Times are nanoseconds of one clock, grids are work-items (HSA grid, docs/reference/formats.md, trap 2), sizes
are bytes. Ids are the caller's; ids that the format derives (events, strings, table rows) are made by the
writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from rpl_core.values import frozen

__all__ = [
    "AgentRow",
    "AllocationRow",
    "CodeObjectRow",
    "CopyRow",
    "CounterDefinitionRow",
    "CounterRow",
    "DispatchRow",
    "GraphLaunchRow",
    "HipEventRow",
    "KernelRow",
    "NodeRow",
    "ProcessRow",
    "QueueRow",
    "RegionArgument",
    "RegionRow",
    "RocpdContents",
    "StreamRow",
    "StreamedCounterRow",
]

Size3 = tuple[int, int, int]


@frozen
class NodeRow:
    """The machine. `node_id` is a hash in real files, not a small number."""

    node_id: int = 1
    machine_id: str = "0"
    hostname: str = "node"
    system_name: str = "Linux"
    release: str = ""
    version: str = ""
    hardware_name: str = "x86_64"
    domain_name: str = "(none)"


@frozen
class ProcessRow:
    """The profiled process. `extdata` holds the output configuration of the profiler."""

    pid: int
    command: str
    begin_ns: int
    end_ns: int
    ppid: int = 0
    extdata: Mapping[str, Any] = attrs.field(factory=dict)


@frozen
class AgentRow:
    """A CPU, GPU or NIC. `index` is the absolute index (KFD node id), which is also the row id."""

    index: int
    kind: str
    name: str
    product_name: str
    vendor_name: str = "AMD"
    model_name: str = ""
    device_id: int = 0
    type_index: int = 0
    extdata: Mapping[str, Any] = attrs.field(factory=dict)


@frozen
class QueueRow:
    """An HSA queue by the handle that the SDK gave it. Queue 0 is written always."""

    queue_id: int
    name: str


@frozen
class StreamRow:
    """A HIP stream by the id that the SDK gave it. Stream 0 (null stream) is written always."""

    stream_id: int
    name: str


@frozen
class CodeObjectRow:
    """A loaded code object."""

    code_object_id: int
    agent: int
    uri: str
    load_base: int = 0
    load_bytes: int = 0
    extdata: Mapping[str, Any] = attrs.field(factory=dict)


@frozen
class KernelRow:
    """A kernel symbol. Register counts are the allocated ones; LDS and scratch the static ones."""

    kernel_id: int
    name: str
    symbol: str
    code_object_id: int = 1
    arch_vgpr: int = 0
    accum_vgpr: int = 0
    sgpr: int = 0
    lds_bytes: int = 0
    scratch_bytes: int = 0
    kernarg_bytes: int = 0
    kernel_object: int = 0


@frozen
class DispatchRow:
    """One kernel execution. `lds_bytes` includes dynamic LDS, `stack_id` is the launching API call."""

    dispatch_id: int
    kernel_id: int
    agent: int
    queue_id: int
    stream_id: int
    begin_ns: int
    end_ns: int
    grid: Size3
    workgroup: Size3
    lds_bytes: int = 0
    scratch_bytes: int = 0
    stack_id: int = 0
    external_id: int = 0
    tid: int | None = None
    region: str = ""
    graph_exec_id: int = 0
    graph_node_id: int = 0


@frozen
class CopyRow:
    """A copy by a copy engine; `name` such as `MEMORY_COPY_HOST_TO_DEVICE`."""

    name: str
    source_agent: int
    destination_agent: int
    size_bytes: int
    stream_id: int
    begin_ns: int
    end_ns: int
    stack_id: int = 0
    external_id: int = 0
    source_address: int = 0
    destination_address: int = 0
    tid: int | None = None
    graph_exec_id: int = 0
    graph_node_id: int = 0


@frozen
class AllocationRow:
    """A memory operation: `operation` ALLOC/FREE/REALLOC/RECLAIM, `level` REAL/VIRTUAL/SCRATCH."""

    operation: str
    level: str
    begin_ns: int
    end_ns: int
    size_bytes: int
    address: int = 0
    agent: int | None = None
    queue_id: int | None = None
    stream_id: int | None = None
    stack_id: int = 0
    tid: int | None = None
    extdata: Mapping[str, Any] = attrs.field(factory=dict)


@frozen
class RegionArgument:
    """One argument of an API call as the profiler prints it (pointers as `0x...`)."""

    type: str
    name: str
    value: str


@frozen
class RegionRow:
    """A CPU-side API call or range. Its row id is `stack_id`, as in real files."""

    name: str
    category: str
    stack_id: int
    begin_ns: int
    end_ns: int
    arguments: tuple[RegionArgument, ...] = ()
    parent_stack_id: int = 0
    external_id: int = 0
    tid: int | None = None
    extdata: Mapping[str, Any] = attrs.field(factory=dict)


@frozen
class CounterDefinitionRow:
    """A counter of one agent. Files hold one row per (GPU agent, requested counter)."""

    name: str
    agent: int
    block: str
    description: str = ""
    expression: str = ""
    is_derived: bool = False
    is_constant: bool = False
    counter_id: int | None = None


@frozen
class CounterRow:
    """All instance values of one counter for one dispatch; up to 3.0.2 instances carry no index."""

    dispatch_id: int
    name: str
    values: tuple[float, ...]
    replay_pass: int | None = None  # of kernel replay; the database has no place for it


@frozen
class StreamedCounterRow:
    """One timed (SPM) sample of a counter instance, schema 3.0.3 and later."""

    dispatch_id: int
    name: str
    timestamp_ns: int
    value: float
    xcc: int
    shader_engine: int
    instance: int
    shader_array: int | None = None
    wgp: int | None = None


@frozen
class GraphLaunchRow:
    """One hipGraphLaunch, schema 3.0.2 and later."""

    graph_exec_id: int
    kernel_dispatch_count: int
    begin_ns: int
    end_ns: int
    stack_id: int
    agent: int | None = None
    queue_id: int | None = None
    tid: int | None = None


@frozen
class HipEventRow:
    """A GPU-side record or wait (`HIP_EVENT_RECORD`, `HIP_EVENT_WAIT`), schema 3.0.4 and later."""

    operation: str
    handle: int
    queue_id: int
    source_queue_id: int
    begin_ns: int
    end_ns: int
    stack_id: int = 0
    agent: int | None = None
    tid: int | None = None


@frozen
class RocpdContents:
    """Everything that one file (one process) holds. Streams of rows may be generators."""

    guid: str
    process: ProcessRow
    agents: tuple[AgentRow, ...]
    kernels: tuple[KernelRow, ...] = ()
    dispatches: Iterable[DispatchRow] = ()
    copies: Iterable[CopyRow] = ()
    regions: Iterable[RegionRow] = ()
    counters: Iterable[CounterRow] = ()
    allocations: Iterable[AllocationRow] = ()
    streamed_counters: Iterable[StreamedCounterRow] = ()
    graph_launches: Iterable[GraphLaunchRow] = ()
    hip_events: Iterable[HipEventRow] = ()
    counter_definitions: tuple[CounterDefinitionRow, ...] = ()
    code_objects: tuple[CodeObjectRow, ...] = ()
    queues: tuple[QueueRow, ...] = ()
    streams: tuple[StreamRow, ...] = ()
    thread_ids: tuple[int, ...] = ()
    node: NodeRow = NodeRow()
