"""One recorded execution as columns: what every reader returns, what its calls mean, and when it is sound.

Rows that come by the million (dispatches, copies, API calls, counter values) are numpy columns; the
few things they refer to (processes, agents, kernels, streams, queues) are frozen objects, and the
columns hold indices into those tuples. ``-1`` in an index column means "not recorded".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import Origin
from rpl_core.model.value_checks import value_violation
from rpl_core.text import masked_text
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32Column = NDArray[np.int32]
    Int64Column = NDArray[np.int64]
    UInt64Column = NDArray[np.uint64]
    Float64Column = NDArray[np.float64]
    BoolColumn = NDArray[np.bool_]

#: Stream handles that are no pointers: the null stream (the calling thread's own one for functions with
#: ``own_null``), the device's null stream by name, and the calling thread's own stream by name.
NULL_STREAM, LEGACY_STREAM, THREAD_STREAM = np.uint64(0), np.uint64(1), np.uint64(2)
#: Bit in the flags of a STREAM_CREATE call: the null stream and the new one don't wait for each other.
NON_BLOCKING = 1


class CallKind(IntEnum):
    """What a call does to the order of work; every runtime's calls are one of these."""

    UNKNOWN = -1  # the reader doesn't know the function
    OTHER = 0  # orders nothing: launches, queries, allocations
    RECORD = 1  # an event stands for the work submitted to the stream so far
    WAIT = 2  # later work of the stream waits for the event
    STREAM_SYNC = 3  # the host waits for a stream
    EVENT_SYNC = 4  # the host waits for an event
    DEVICE_SYNC = 5  # the host waits for the current device
    BLOCKING_COPY = 6  # waits for the GPU as a side effect
    FREE = 7  # waits for the GPU as a side effect
    STREAM_CREATE = 8
    STREAM_DESTROY = 9
    EVENT_RESET = 10  # the event's record is forgotten
    SET_DEVICE = 11  # chooses the calling thread's device
    BEGIN_CAPTURE = 12  # calls up to END_CAPTURE are recorded into a graph and order nothing
    END_CAPTURE = 13


@frozen
class CallMeaning:
    """What one function means. ``own_null``: stream 0 is the calling thread's own stream."""

    kind: CallKind
    own_null: bool = False
    launches_graph: bool = False  # one call submits many pieces of work, which may run side by side
    copies: bool = False  # moves data, whether it returns at once or not


@frozen
class HostApi:
    """The runtime that a program called, as messages name it."""

    name: str
    trace_with: str | None = None  # how a recording gets its calls: a tool and its options


#: Where readers leave the ranges that an application marked on its own time line, in ``Trace.extras``.
RANGES = "ranges"


@frozen
class HostRange:
    """``guid`` and ``pid`` name the process; ``thread_id`` is -1 for a range of the whole process."""

    name: str
    guid: str
    pid: int
    thread_id: int
    begin_ns: int
    end_ns: int


#: Where readers leave what is recorded of the launches of collectives, in ``Trace.extras``.
COLLECTIVES = "collectives"


@frozen
class CollectiveLaunch:
    """``guid`` and ``pid`` name the process, ``correlation_id`` is that of the dispatch.

    ``communicator`` names a group of ranks, alike on all of them and unlike any other; ``elements`` is how
    many of them the rank gives. ``operation`` is called as the library does.
    """

    guid: str
    pid: int
    correlation_id: int
    operation: str
    communicator: str | None
    elements: int | None


#: Value in an index or id column where the recording says nothing.
NOT_RECORDED = -1
#: Value in a handle column where the call has no such argument (0 is the null stream).
NO_HANDLE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def distinct_values(column: NDArray[Any]) -> NDArray[Any]:
    """What occurs in ``column``, ascending. ``np.unique`` imports ``numpy.ma`` and hashes first."""
    if column.strides == (0,):  # one number for all rows
        column = column[:1]
    ordered = np.sort(column, axis=None)
    first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


class TraceRole(str, Enum):
    """What a trace may be used for.

    Counter collection serialises dispatches and stretches them (docs/reference/formats.md, trap 10), so only
    a TIMING trace is a source of time and of the execution graph. A REFERENCE is a run without calls and
    copies: beside timing runs that record them it tells what recording them costs, and nothing else.
    """

    TIMING = "timing"
    REFERENCE = "reference"
    COUNTERS = "counters"
    THREAD_TRACE = "thread_trace"  # instruction traces: no times, no counters, only ``Trace.extras``


def _without_secrets(command: str | None) -> str | None:
    return masked_text(command) if isinstance(command, str) else command


@frozen
class Process:
    """A profiled process. Identity across files is ``(guid, pid)``; ids of rows restart per process.

    ``command`` is its command line without the secrets in it, whoever recorded them.
    """

    guid: str
    pid: int
    node: str  # clock domain: timestamps compare only within one node
    hostname: str | None = None
    command: str | None = attrs.field(default=None, converter=_without_secrets)
    begin_ns: int | None = None
    end_ns: int | None = None


@frozen
class Agent:
    """A GPU (or CPU) as the driver described it. Fields that a source lacks are ``None``."""

    node: str
    index: int  # number of the node as the driver counts
    kind: str  # "GPU", "CPU" or "NIC"
    architecture: str | None = None  # as the driver names it
    product: str | None = None  # the marketing name
    chip_id: int | None = None  # PCI device id, e.g. 29857
    compute_units: int | None = None
    xcd_count: int | None = None
    simd_per_cu: int | None = None
    max_waves_per_simd: int | None = None
    wave_size: int | None = None
    lds_bytes_per_cu: int | None = None
    clock_mhz: int | None = None  # the highest engine clock
    local_memory_bytes: int | None = None
    compute_partition: str | None = None  # "SPX", "DPX", "QPX", "TPX", "CPX"
    memory_partition: str | None = None  # "NPS1", "NPS4"


@frozen
class Kernel:
    """A kernel symbol of one process. Register counts are ALLOCATED ones (docs/reference/devices.md, 4.2)."""

    name: str  # demangled, as displayed
    symbol: str | None = None  # mangled, without ".kd"
    process: int = NOT_RECORDED  # index into Trace.processes
    arch_vgpr: int | None = None
    accum_vgpr: int | None = None
    sgpr: int | None = None
    static_lds_bytes: int | None = None
    kernarg_bytes: int | None = None
    code_object: str | None = None  # uri


@frozen
class Stream:
    process: int
    id: int
    name: str | None = None


@frozen
class Queue:
    process: int
    id: int
    name: str | None = None


@frozen(eq=False)
class LaunchShapes:
    """The distinct launch geometries of a trace; ``Dispatches.shape`` points into it.

    ``grid`` counts work-items, never workgroups; shape ``(m, 3)``. ``lds_bytes`` is static
    plus dynamic LDS of a workgroup, ``scratch_bytes`` per work-item; -1 where not recorded.
    """

    workgroup: Int64Column
    grid: Int64Column
    lds_bytes: Int64Column
    scratch_bytes: Int64Column

    def __len__(self) -> int:
        return int(self.lds_bytes.shape[0])

    def workgroups(self) -> Int64Column:
        """Number of workgroups per shape: the product over axes of ceil(grid / workgroup)."""
        size = np.maximum(self.workgroup, 1)
        return np.asarray(np.prod(-(-self.grid // size), axis=1), dtype=np.int64)


@frozen(eq=False)
class Dispatches:
    """Kernel executions, one row each, in the order of (begin, end, process, dispatch_id)."""

    process: Int32Column
    agent: Int32Column
    kernel: Int32Column
    stream: Int32Column
    queue: Int32Column
    shape: Int32Column
    dispatch_id: Int64Column  # submission order within a process
    correlation_id: Int64Column  # internal id of the launching API call, -1 if unknown
    begin_ns: Int64Column
    end_ns: Int64Column

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])

    def duration_ns(self) -> Int64Column:
        return self.end_ns - self.begin_ns


@frozen(eq=False)
class Copies:
    """Copies by the copy engines. Blit copies are kernels and appear among the dispatches."""

    process: Int32Column
    source_agent: Int32Column
    destination_agent: Int32Column
    stream: Int32Column
    direction: Int32Column  # index into Trace.copy_directions
    size_bytes: Int64Column
    correlation_id: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])


@frozen(eq=False)
class ApiCalls:
    """Calls of the host's runtime with the arguments that order work. Handles are pointers as numbers."""

    process: Int32Column
    thread_id: Int64Column
    function: Int32Column  # index into Trace.api_functions
    correlation_id: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    stream_handle: UInt64Column  # NO_HANDLE where the call has no stream argument
    event_handle: UInt64Column
    flags: Int64Column  # -1 where absent
    device: Int64Column  # -1 where absent

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])


@frozen(eq=False)
class DeviceEvents:
    """Event records and waits as the GPU executed them."""

    process: Int32Column
    agent: Int32Column
    queue: Int32Column  # that executed the record or wait
    source_queue: Int32Column  # of a wait: that of the record
    is_wait: BoolColumn
    event_handle: UInt64Column
    correlation_id: Int64Column  # internal id of the API call
    begin_ns: Int64Column
    end_ns: Int64Column

    def __len__(self) -> int:
        return int(self.begin_ns.shape[0])


@frozen(eq=False)
class CounterValues:
    """Counter readings in long form: one row per (dispatch, counter, instance).

    ``instance`` is the hardware instance (XCD, shader engine or channel as recorded), or -1 where the
    recording already holds the sum over instances. ``duration_ns`` is that of the dispatch in the pass
    which read this counter, or -1: one dispatch has another duration in every pass.
    """

    dispatch: Int64Column  # row in Trace.dispatches
    counter: Int32Column  # index into Trace.counter_names
    instance: Int32Column
    value: Float64Column
    duration_ns: Int64Column

    def __len__(self) -> int:
        return int(self.value.shape[0])


@frozen
class TraceSource:
    """Which files a trace was read from and how.

    A reader that saw every byte of its files may give their ``sha256``. Where none is given, or by a plugin
    of others, they are read again for it.
    """

    reader: str  # name of the reader object
    format: str  # and version, as the reader names it
    paths: tuple[str, ...]
    sha256: tuple[str, ...] = ()


def _read_only(extras: Mapping[str, tuple[Any, ...]]) -> Mapping[str, tuple[Any, ...]]:
    return MappingProxyType(extras) if isinstance(extras, dict) else extras


@frozen(eq=False)
class Trace:
    """One execution (or one counter pass) of an application, possibly of several processes."""

    source: TraceSource
    role: TraceRole
    origin: Origin
    processes: tuple[Process, ...]
    agents: tuple[Agent, ...]
    kernels: tuple[Kernel, ...]
    dispatches: Dispatches
    shapes: LaunchShapes
    streams: tuple[Stream, ...] = ()
    queues: tuple[Queue, ...] = ()
    copies: Copies | None = None  # None: copies were not traced
    copy_directions: tuple[str, ...] = ()
    host_api: HostApi | None = None
    api_calls: ApiCalls | None = None  # None: the API was not traced
    api_functions: tuple[str, ...] = ()
    #: What each of ``api_functions`` means; empty where the reader doesn't know the runtime.
    api_meanings: tuple[CallMeaning, ...] = attrs.field(default=())
    device_events: DeviceEvents | None = None  # None: they were not traced
    counters: CounterValues | None = None  # None: no counter was collected
    counter_names: tuple[str, ...] = ()
    grouped_by_queue: bool = False  # --group-by-queue: stream ids carry no information
    diagnostics: tuple[Diagnostic, ...] = ()
    #: Recording this slowed the application down: times that were recorded beside it are not used.
    slows_neighbours: bool = False
    #: What the name of the recorded architecture begins with, where the files say no more than that.
    architecture_prefix: str = ""
    #: What a reader found beside the columns, for analyzers that know it by name.
    extras: Mapping[str, tuple[Any, ...]] = attrs.field(factory=dict, converter=_read_only)

    @api_meanings.validator
    def _one_meaning_per_function(self, _: object, value: tuple[CallMeaning, ...]) -> None:
        if value and len(value) != len(self.api_functions):
            raise ValueError(f"{len(value)} api_meanings for {len(self.api_functions)} api_functions")

    def meanings(self) -> tuple[CallMeaning, ...]:
        """One meaning per function, UNKNOWN where the reader gives none."""
        return self.api_meanings or (CallMeaning(CallKind.UNKNOWN),) * len(self.api_functions)


# Whether a trace of a reader is sound: types, lengths, indices, times, before anything relies on it.


def require_sound(trace: object, *, trusted: bool = False) -> None:
    """Raise ``TypeError`` or ``ValueError`` with the first problem; what ``Trace`` documents must hold.

    A recording is data from outside, so lengths, indices and times are looked at whoever read it; types only
    where the reader is not ``trusted``.
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"read gave {type(trace).__name__} where a Trace was expected")
    problem = None if trusted else value_violation(trace)
    if problem is not None:
        raise TypeError(f"Trace: {problem}")
    for problem in problems_of(trace):
        raise ValueError(f"Trace: {problem}")
    names = (*(kernel.name for kernel in trace.kernels), *trace.api_functions, *trace.counter_names)
    "".join(names).encode()  # UnicodeEncodeError is a ValueError


def protect(trace: Trace) -> None:
    """Make the columns read-only, as everybody shares them."""
    for table in (getattr(trace, field.name) for field in attrs.fields(Trace)):
        if attrs.has(type(table)):
            for field in attrs.fields(type(table)):
                column = getattr(table, field.name)
                if isinstance(column, np.ndarray):
                    column.flags.writeable = False


def problems_of(trace: Trace) -> Iterator[str]:
    """Columns of different lengths, indices that point nowhere, times that no clock shows."""
    sizes = _sizes(trace)
    for name in ("dispatches", "copies", "api_calls", "device_events", "counters", "shapes"):
        table = getattr(trace, name, None)
        if table is None:
            continue
        columns = {field.name: getattr(table, field.name) for field in attrs.fields(type(table))}
        if len({len(column) for column in columns.values()}) > 1:
            yield f"the columns of {name} have different lengths"
        for column, size in sizes.items():
            if column in columns and _outside(columns[column], size):
                yield f"{name}.{column} points outside of the {size} there are"
        if "begin_ns" in columns and bool(np.any(columns["end_ns"] < columns["begin_ns"])):
            yield f"{name} has rows that end before they begin"
    if bool(np.any(np.diff(trace.dispatches.begin_ns) < 0)):
        yield "dispatches are not in the order of their begin"


def _sizes(trace: Trace) -> Mapping[str, int]:
    """How many things an index column of this name may point to."""
    return {
        "process": len(trace.processes),
        "agent": len(trace.agents),
        "source_agent": len(trace.agents),
        "destination_agent": len(trace.agents),
        "kernel": len(trace.kernels),
        "stream": len(trace.streams),
        "queue": len(trace.queues),
        "source_queue": len(trace.queues),
        "shape": len(trace.shapes),
        "direction": len(trace.copy_directions),
        "function": len(trace.api_functions),
        "counter": len(trace.counter_names),
        "dispatch": len(trace.dispatches),
    }


def _outside(column: NDArray[Any], size: int) -> bool:
    """Whether an index is neither in ``range(size)`` nor -1."""
    return bool(column.size) and (int(np.min(column)) < -1 or int(np.max(column)) >= size)
