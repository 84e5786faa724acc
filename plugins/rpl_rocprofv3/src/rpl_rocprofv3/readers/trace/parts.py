"""The last steps from the rows of a file to a ``Trace``, the same for every format of one process set.

Numbers streams and queues, orders the rows, attaches the counters, and runs the checks that need more
than one column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import attrs
import numpy as np

from rpl_core.model.calls import RANGES
from rpl_core.model.origin import Origin
from rpl_core.model.trace import NOT_RECORDED, Queue, Stream, Trace, TraceRole, TraceSource, distinct_values
from rpl_core.values import frozen
from rpl_rocprofv3.hip_api import HIP_API, hip_meanings
from rpl_rocprofv3.readers.columns.id_lookup import distinct_ids, positions
from rpl_rocprofv3.readers.trace.checks import check_clock, check_waves
from rpl_rocprofv3.readers.trace.copy_table import ordered_copies
from rpl_rocprofv3.readers.trace.counter_table import checked_counters
from rpl_rocprofv3.readers.trace.dispatch_table import ordered_dispatches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rpl_core.model.calls import HostRange
    from rpl_core.model.trace import Agent, ApiCalls, Int32Column, Kernel, Process
    from rpl_rocprofv3.readers.columns.id_lookup import IntegerColumn
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.trace.copy_table import CopyRows
    from rpl_rocprofv3.readers.trace.counter_table import CounterRows
    from rpl_rocprofv3.readers.trace.dispatch_table import DispatchRows, OrderedDispatches

    #: Given the ordered dispatches, the readings attached to them; None without counters.
    CounterSource = Callable[[OrderedDispatches], CounterRows | None]

__all__ = ["TraceParts", "assembled"]

Handle = TypeVar("Handle", Stream, Queue)


@frozen(eq=False)
class TraceParts:
    """What a reader found. Stream and queue ids are the recorded ones, -1 where there is none."""

    source: TraceSource
    processes: tuple[Process, ...]
    agents: tuple[Agent, ...]
    kernels: tuple[Kernel, ...]
    rows: DispatchRows
    stream_id: IntegerColumn
    queue_id: IntegerColumn
    copies: tuple[CopyRows, IntegerColumn] | None = None  # with the stream id of each
    calls: tuple[ApiCalls, tuple[str, ...]] | None = None  # with the function names
    counter_names: tuple[str, ...] = ()
    stream_names: Mapping[int, str | None] = attrs.field(factory=dict)
    queue_names: Mapping[int, str | None] = attrs.field(factory=dict)
    grouped_by_queue: bool = False
    origin: Origin = Origin.MEASURED
    ranges: tuple[HostRange, ...] = ()


def assembled(parts: TraceParts, counters: CounterSource, findings: Findings) -> Trace:
    """The trace, with everything that ``findings`` collected."""
    numbered = _Numbered(parts)
    ordered = ordered_dispatches(numbered.rows, findings)
    readings = counters(ordered)
    values = None if readings is None else checked_counters(readings, parts.counter_names, findings)
    trace = Trace(
        source=parts.source,
        role=TraceRole.TIMING if values is None else TraceRole.COUNTERS,
        origin=parts.origin,
        processes=parts.processes,
        agents=parts.agents,
        kernels=parts.kernels,
        dispatches=ordered.dispatches,
        shapes=ordered.shapes,
        streams=numbered.streams,
        queues=numbered.queues,
        copies=ordered_copies(numbered.copies, findings) if numbered.copies else None,
        copy_directions=numbered.copies.directions if numbered.copies else (),
        host_api=HIP_API,
        api_calls=parts.calls[0] if parts.calls else None,
        api_functions=parts.calls[1] if parts.calls else (),
        api_meanings=hip_meanings(parts.calls[1]) if parts.calls else (),
        counters=values,
        counter_names=parts.counter_names if values is not None else (),
        grouped_by_queue=parts.grouped_by_queue,
        extras={RANGES: parts.ranges} if parts.ranges else {},
    )
    check_clock(trace, findings)
    check_waves(trace, findings)
    return attrs.evolve(trace, diagnostics=findings.diagnostics())


class _Numbered:
    """Rows whose stream and queue ids became indices."""

    def __init__(self, parts: TraceParts) -> None:
        processes, ids = [parts.rows.process], [parts.stream_id]
        if parts.copies is not None:
            processes.append(parts.copies[0].process)
            ids.append(parts.copies[1])
        self.streams, streams = _number_handles(Stream, processes, ids, parts.stream_names)
        self.queues, queues = _number_handles(Queue, processes[:1], [parts.queue_id], parts.queue_names)
        self.rows = attrs.evolve(parts.rows, stream=streams[0], queue=queues[0])
        self.copies = attrs.evolve(parts.copies[0], stream=streams[1]) if parts.copies else None


def _number_handles(
    make: Callable[[int, int, str | None], Handle],
    process_columns: Sequence[Int32Column],
    id_columns: Sequence[IntegerColumn],
    names: Mapping[int, str | None],
) -> tuple[tuple[Handle, ...], list[Int32Column]]:
    """The handles in order of (process, id), and one index column per pair of input columns.

    An id of -1 is not recorded and stays -1.
    """
    processes = distinct_values(np.concatenate([distinct_ids(column) for column in process_columns])).tolist()
    if len(processes) == 1:
        # All rows belong to it: nothing has to be picked.
        used, indices = _as_indices(id_columns)
        return tuple(make(processes[0], handle, names.get(handle)) for handle in used), indices
    indices = [np.full(len(ids), NOT_RECORDED, np.int32) for ids in id_columns]
    handles: list[Handle] = []
    for number in processes:
        rows = [column == number for column in process_columns]
        used, places = _as_indices([ids[own] for ids, own in zip(id_columns, rows, strict=True)])
        for index, own, place in zip(indices, rows, places, strict=True):
            index[own] = np.where(place < 0, NOT_RECORDED, place + len(handles))
        handles.extend(make(number, handle, names.get(handle)) for handle in used)
    return tuple(handles), indices


def _as_indices(columns: Sequence[IntegerColumn]) -> tuple[list[int], list[Int32Column]]:
    """The ids that occur in any column, ascending without -1, and the columns as indices into them."""
    distinct = distinct_values(np.concatenate([distinct_ids(column) for column in columns]))
    used = distinct[distinct != NOT_RECORDED]
    return used.tolist(), [positions(column, used) for column in columns]
