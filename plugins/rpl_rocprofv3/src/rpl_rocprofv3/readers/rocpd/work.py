"""GPU work of a rocpd part, ids resolved: dispatches, copies, events, waits and counter readings.

The data views are never used: they join inwards and lose rows (docs/reference/formats.md, trap 7). What they
would have lost is counted here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED, DeviceEvents, Kernel, distinct_values
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import Geometry, distinct_ids, positions, taken
from rpl_rocprofv3.readers.rocpd.info import info_ids, read_kernels, read_strings
from rpl_rocprofv3.readers.sqlite import read_integers, read_numbers
from rpl_rocprofv3.readers.trace.tables import CopyRows, CounterRows, DispatchRows, direction_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column, Queue
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns import IntegerColumn
    from rpl_rocprofv3.readers.rocpd.info import Agents, Part, Processes
    from rpl_rocprofv3.readers.sqlite import IntegerColumns
    from rpl_rocprofv3.readers.trace.tables import Findings, OrderedDispatches

_WORKGROUP = tuple(f"workgroup_size_{axis}" for axis in "xyz")
_GRID = tuple(f"grid_size_{axis}" for axis in "xyz")
_DISPATCH_COLUMNS = (
    *("pid", "tid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id", "start", "end"),
    *("private_segment_size", "group_segment_size", *_WORKGROUP, *_GRID, "region_name_id", "event_id"),
)
_COPY_COLUMNS = (
    *("pid", "start", "end", "name_id", "dst_agent_id", "src_agent_id", "size", "stream_id", "event_id"),
)


@frozen(eq=False)
class RocpdDispatches:
    """Dispatch rows in file order, the objects they point to, and the event id of each row."""

    rows: DispatchRows
    kernels: tuple[Kernel, ...]
    event_id: Int64Column


def read_dispatch_columns(database: Database, part: Part, findings: Findings) -> IntegerColumns:
    """The raw integer columns of the dispatch table."""
    table = part.table("kernel_dispatch")
    assert table is not None  # the identity check asked for it
    columns = read_integers(database, table, _DISPATCH_COLUMNS)
    findings.add(
        "dispatch.unreadable_values",
        columns.unreadable,
        "value in rocpd_kernel_dispatch is no integer and counts as not recorded",
        "values in rocpd_kernel_dispatch are no integers and count as not recorded",
        cause="the recording is damaged or was edited",
    )
    return columns


def resolve_dispatches(
    part: Part, raw: IntegerColumns, events: Events, processes: Processes, agents: Agents, findings: Findings
) -> RocpdDispatches:
    """Turn ids into indices and count the dangling ones."""
    used = distinct_ids(raw["kernel_id"])
    process_of = {row_id: index for index, row_id in enumerate(processes.ids)}
    kernels, unknown = read_kernels(part, used.tolist(), process_of)
    event = events.positions(raw["event_id"])
    rows = DispatchRows(
        process=_process(processes, raw["pid"], findings),
        agent=agents.positions(raw["agent_id"]),
        kernel=positions(raw["kernel_id"], used),
        stream=np.empty(0, np.int32),
        queue=np.empty(0, np.int32),
        dispatch_id=raw.wide("dispatch_id"),
        correlation_id=events.stack_id_at(event),
        begin_ns=raw.wide("start"),
        end_ns=raw.wide("end"),
        geometry=Geometry(
            _three(raw, _WORKGROUP),
            _three(raw, _GRID),
            raw["group_segment_size"],
            raw["private_segment_size"],
        ),
    )
    described = np.array([not k.name.startswith("unknown kernel (id ") for k in kernels], np.bool_)
    findings.add(
        "dispatch.unknown_kernel",
        unknown,
        "kernel was launched that the recording does not describe; it appears as 'unknown kernel'",
        "kernels were launched that the recording does not describe; they appear as 'unknown kernel'",
        cause="the code object was loaded before the profiler attached",
    )
    findings.add(
        "dispatch.unknown_agent",
        int((rows.agent < 0).sum()),
        "dispatch names a GPU that the recording does not describe",
        "dispatches name a GPU that the recording does not describe",
    )
    _count_view_losses(part, raw, rows, event, described, findings)
    return RocpdDispatches(rows, tuple(kernels), raw["event_id"])


def _three(raw: IntegerColumns, names: tuple[str, ...]) -> tuple[Int64Column, Int64Column, Int64Column]:
    x, y, z = (raw[name] for name in names)
    return x, y, z


def _process(processes: Processes, ids: Int64Column, findings: Findings) -> Int32Column:
    process = processes.positions(ids)
    dangling = int((process < 0).sum())
    findings.add(
        "dispatch.unknown_process",
        dangling,
        "dispatch names a process that the recording does not describe",
        "dispatches name a process that the recording does not describe",
        cause="rows were lost, or files were joined by hand",
    )
    # A part of one process leaves no doubt whose dispatches these are.
    return np.zeros_like(process) if dangling and len(processes.ids) == 1 else process


def _count_view_losses(
    part: Part,
    raw: IntegerColumns,
    rows: DispatchRows,
    event: Int32Column,
    described: NDArray[np.bool_],
    findings: Findings,
) -> None:
    """Rows that the view ``kernels`` drops, since other tools that read it show fewer dispatches."""
    lost = event < 0
    if not described.all():
        lost |= ~described[rows.kernel]
    regions = np.array(sorted(read_strings(part, raw["region_name_id"])), np.int64)
    for joined in (
        rows.agent,
        positions(raw["queue_id"], info_ids(part, "info_queue")),
        positions(raw["tid"], info_ids(part, "info_thread")),
        positions(raw["region_name_id"], regions),
    ):
        if int(joined.min(initial=0)) < 0:
            lost |= joined < 0
    findings.add(
        "rocpd.kernels_view_loses_rows",
        int(lost.sum()),
        "dispatch is missing from the database's own `kernels` view, and is read here",
        "dispatches are missing from the database's own `kernels` view, and are read here",
        severity=Severity.INFO,
        cause="the view joins tables in which their thread, queue, event, symbol or region has no row",
    )


def read_copies(
    database: Database, part: Part, events: Events, processes: Processes, agents: Agents, findings: Findings
) -> tuple[CopyRows, IntegerColumn] | None:
    """Read all copies with their stream ids; None when there are none (a kernel trace has an empty table)."""
    table = part.table("memory_copy")
    if table is None:
        return None
    raw = read_integers(database, table, _COPY_COLUMNS)
    if not len(raw):
        return None
    findings.add(
        "copy.unreadable_values",
        raw.unreadable,
        "value in rocpd_memory_copy is no integer",
        "values in rocpd_memory_copy are no integers",
    )
    names = read_strings(part, raw["name_id"])
    used = distinct_ids(raw["name_id"])
    process = processes.positions(raw["pid"])
    rows = CopyRows(
        process=np.maximum(process, 0) if len(processes.ids) == 1 else process,
        source_agent=agents.positions(raw["src_agent_id"]),
        destination_agent=agents.positions(raw["dst_agent_id"]),
        stream=np.empty(0, np.int32),
        direction=positions(raw["name_id"], used),
        size_bytes=raw.wide("size"),
        correlation_id=events.stack_id_at(events.positions(raw["event_id"])),
        begin_ns=raw.wide("start"),
        end_ns=raw.wide("end"),
        directions=tuple(direction_name(names.get(i, "UNKNOWN")) for i in used.tolist()),
    )
    return rows, raw["stream_id"]


# The event table of a rocpd part: which API call (stack id) a row belongs to.
#
# ``rocpd_event.correlation_id`` is the external id, usually 0; the link between a dispatch and the API
# call that launched it is ``stack_id`` (docs/reference/formats.md, trap 3).


@frozen(eq=False)
class Events:
    """Columns of ``rocpd_event``, -1 where not recorded."""

    id: IntegerColumn
    stack_id: IntegerColumn
    parent_stack_id: IntegerColumn
    category_id: IntegerColumn

    def positions(self, event_ids: Int64Column) -> Int32Column:
        """Row of each event id, -1 where there is none."""
        return positions(event_ids, self.id)

    def stack_id_at(self, rows: Int32Column) -> Int64Column:
        """Stack id of the events at ``rows``; -1 for no row and for the stack id 0, which means none."""
        return taken(self.stack_id, rows, none=0)


def read_events(database: Database, part: Part, *, of_api_calls: bool) -> Events:
    """Read the event table; parents and categories only when API calls need them."""
    table = part.table("event")
    assert table is not None  # the identity check asked for it
    columns = ("id", "stack_id", "parent_stack_id", "category_id")
    read = read_integers(database, table, columns if of_api_calls else columns[:2])
    nothing = np.empty(0, np.int64)
    return Events(*(read[name] if name in read.values else nothing for name in columns))


# GPU-side event records and waits: the rows of ``rocpd_hip_event`` (schema 3.0.4 and later).

_COLUMNS = (
    *("pid", "agent_id", "name_id", "hip_event_handle", "queue_id", "source_queue_id"),
    *("start", "end", "event_id"),
)
# Operation names of the table (docs/reference/execution-graph.md, 2.7).
_WAIT, _RECORD = "HIP_EVENT_WAIT", "HIP_EVENT_RECORD"


def read_hip_events(
    database: Database,
    part: Part,
    events: Events,
    processes: Processes,
    agents: Agents,
    queues: Sequence[Queue],
    findings: Findings,
) -> DeviceEvents | None:
    """All records and waits in order of (begin, end, process, correlation id); None when there are none."""
    table = part.table("hip_event")
    if table is None:
        return None
    raw = read_integers(database, table, _COLUMNS)
    if not len(raw):
        return None
    findings.add(
        "hip_event.unreadable_values",
        raw.unreadable,
        "value in rocpd_hip_event is no integer",
        "values in rocpd_hip_event are no integers",
    )
    process = processes.positions(raw["pid"])
    process = np.maximum(process, 0) if len(processes.ids) == 1 else process
    correlation = events.stack_id_at(events.positions(raw["event_id"]))
    is_wait, known = _operations(part, raw["name_id"])
    begin, end = raw.wide("start"), raw.wide("end")
    usable = known & (process >= 0) & (begin >= 0) & (end >= begin)
    findings.add(
        "hip_event.unusable",
        int((~usable).sum()),
        "GPU-side event is no record or wait, or has no usable times, and is left out",
        "GPU-side events are no records or waits, or have no usable times, and are left out",
    )
    order = np.lexsort((correlation, process, end, begin))
    chosen = order[usable[order]]
    return DeviceEvents(
        process=process[chosen].astype(np.int32),
        agent=agents.positions(raw["agent_id"])[chosen].astype(np.int32),
        queue=_queue_index(queues, process, raw["queue_id"])[chosen],
        source_queue=_queue_index(queues, process, raw["source_queue_id"])[chosen],
        is_wait=is_wait[chosen],
        event_handle=raw.wide("hip_event_handle")[chosen].view(np.uint64),
        correlation_id=correlation[chosen].astype(np.int64),
        begin_ns=begin[chosen],
        end_ns=end[chosen],
    )


def _operations(part: Part, name_id: IntegerColumn) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is a wait, and whether it is one of the two operations."""
    names = read_strings(part, name_id)
    waits = [number for number, name in names.items() if name == _WAIT]
    records = [number for number, name in names.items() if name == _RECORD]
    is_wait = positions(name_id, sorted(waits)) >= 0
    return is_wait, is_wait | (positions(name_id, sorted(records)) >= 0)


def _queue_index(queues: Sequence[Queue], process: Int32Column, ids: IntegerColumn) -> Int32Column:
    """Index into ``queues`` of each (process, queue id); -1 where no dispatch ran on it."""
    index = np.full(len(ids), NOT_RECORDED, np.int32)
    for number in distinct_values(process).tolist():
        own = [i for i, queue in enumerate(queues) if queue.process == number]
        if not own:
            continue
        rows = process == number
        place = positions(ids[rows], [queues[i].id for i in own])
        known: Int64Column = np.array(own)
        index[rows] = np.where(place < 0, NOT_RECORDED, known[place])
    return index


# Counter readings of a rocpd part: the instance rows of ``rocpd_pmc_event``.
#
# The view ``counters_collection`` sums them, which is wrong for clocks and rates
# (docs/reference/formats.md, trap 5), so it is not used. From schema 3.0.3 on rows carry hardware
# coordinates,
# and streamed (SPM) samples share the table.

_COORDINATES = ("xcc", "shader_engine", "shader_array", "wgp", "instance")


@frozen(eq=False)
class RocpdCounters:
    """Readings by event id, with the counter names that ``counter`` points to."""

    names: tuple[str, ...]
    event_id: IntegerColumn
    counter: Int32Column
    value: Float64Column
    instance: Int32Column | None

    def rows(self, event_of_dispatch: IntegerColumn, ordered: OrderedDispatches) -> CounterRows:
        """The readings attached to the final dispatch rows, which came with these event ids."""
        place = positions(self.event_id, event_of_dispatch)
        row_of = np.append(ordered.row_of, NOT_RECORDED)
        duration = np.append(ordered.dispatches.duration_ns(), NOT_RECORDED)
        dispatch = row_of[place]
        return CounterRows(dispatch, self.counter, self.value, duration[dispatch], self.instance)


def read_counters(database: Database, part: Part, findings: Findings) -> RocpdCounters | None:
    """Read all readings that belong to dispatches; None when no counter was collected."""
    table = part.table("pmc_event")
    if table is None:
        return None
    read = read_numbers(database, table, ("event_id", "pmc_id", "sample_id", *_COORDINATES), "value")
    streamed = read.integers["sample_id"] != NOT_RECORDED
    findings.add(
        "counter.streamed_samples",
        int(streamed.sum()),
        "streamed (SPM) counter sample is not read",
        "streamed (SPM) counter samples are not read",
        severity=Severity.INFO,
    )
    kept = np.flatnonzero(~streamed)
    if not len(kept):
        return None
    names, counter_of = _counter_names(part)
    index = np.array([*counter_of.values(), NOT_RECORDED], np.int32)
    return RocpdCounters(
        names=names,
        event_id=read.integers["event_id"][kept],
        counter=index[positions(read.integers["pmc_id"][kept], list(counter_of))],
        value=read.values[kept],
        instance=_instances([read.integers[name][kept] for name in _COORDINATES]),
    )


def _counter_names(part: Part) -> tuple[tuple[str, ...], dict[int, int]]:
    """Names in order, and the name index of each counter id (one id per GPU and counter)."""
    table = part.table("info_pmc")
    found = {
        row[0]: str(row[1])
        for row in (table.rows(part.connection, ("id", "name")) if table else ())
        if isinstance(row[0], int)
    }
    names = tuple(sorted(set(found.values())))
    index = {name: i for i, name in enumerate(names)}
    return names, {number: index[name] for number, name in found.items()}


def _instances(coordinates: list[IntegerColumn]) -> Int32Column | None:
    """One number per distinct hardware coordinate, None when no row has coordinates."""
    if all(bool((column < 0).all()) for column in coordinates):
        return None
    _, number = np.unique(np.stack(coordinates, axis=1), axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int32)
