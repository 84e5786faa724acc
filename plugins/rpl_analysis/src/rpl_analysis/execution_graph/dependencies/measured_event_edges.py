"""Edges of event records and waits that the GPU executed (``Trace.device_events``).

They name hardware queues, not streams: a record stands for the last node submitted to its queue before it, a
wait holds back the next node submitted to its queue. That is certain while the queue serves one stream
only, else probable. Used where the arguments of the API calls are not recorded, which tell streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph import (
    Confidence,
    EdgeKind,
    EdgeTable,
    join_keys,
    no_edges,
    number_keys,
)
from rpl_analysis.execution_graph.host_program.submission import find_submissions, order_lanes
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.host_program.submission import LaneOrder
    from rpl_core.model.trace import DeviceEvents, Trace

    Int64Column = NDArray[np.int64]

__all__ = ["MeasuredEvents", "measured_event_edges"]


@frozen(eq=False)
class MeasuredEvents:
    """The edges, and the waits whose record or queues are unknown."""

    edges: EdgeTable
    unresolved: int


def measured_event_edges(trace: Trace, events: DeviceEvents, program: HostProgram) -> MeasuredEvents:
    """One edge per wait whose record is known."""
    nodes = program.nodes
    queue = nodes.queue
    order = _queue_order(queue, program, len(trace.queues))
    place = find_submissions(events.process, events.correlation_id, program.calls).place
    waits = np.flatnonzero(events.is_wait)
    record = _latest_records(events, place, waits)
    known = record >= 0
    waits, record = waits[known], record[known]
    source = order.last_before(events.queue[record], place[record])
    target = order.first_after(events.queue[waits], place[waits])
    joined = (source >= 0) & (target >= 0)
    unresolved = int((~known).sum() + ((events.queue[record] < 0) | (events.queue[waits] < 0)).sum())
    source, target = source[joined], target[joined]
    between = nodes.lane[source] != nodes.lane[target]
    source, target = source[between], target[between]
    if not source.size:
        return MeasuredEvents(no_edges(), unresolved)
    alone = _serves_one_lane(queue, nodes, len(trace.queues))
    sure = alone[queue[source]] & alone[queue[target]] & (not nodes.by_queue)
    confidence = np.where(sure, np.int8(Confidence.CERTAIN), np.int8(Confidence.PROBABLE))
    return MeasuredEvents(EdgeTable.of_kind(source, target, EdgeKind.MEASURED_EVENT, confidence), unresolved)


def _queue_order(queue: NDArray[np.int32], program: HostProgram, queues: int) -> LaneOrder:
    """Nodes by queue in order of submission; nodes without a queue come behind all queues."""
    lane = np.where(queue >= 0, queue, queues).astype(np.int32)
    return order_lanes(lane, queues + 1, program.nodes.end_ns, program.submissions)


def _latest_records(events: DeviceEvents, place: Int64Column, waits: Int64Column) -> Int64Column:
    """Per wait the record of the same event of the process submitted last before it, -1 for none."""
    event = join_keys((number_keys(events.event_handle.view(np.int64))[1], events.process))
    span = np.int64(place.max(initial=-1)) + 2
    key = event * span + place + 1
    records = np.flatnonzero(~events.is_wait)
    records = records[np.argsort(key[records], kind="stable")]
    if not records.size:
        return np.full(waits.size, NOT_RECORDED, dtype=np.int64)
    place_before = np.searchsorted(key[records], key[waits]) - 1
    record = records[np.maximum(place_before, 0)]
    same = (place_before >= 0) & (event[record] == event[waits]) & (place[waits] >= 0)
    return np.where(same, record, NOT_RECORDED)


def _serves_one_lane(queue: NDArray[np.int32], nodes: WorkNodes, queues: int) -> NDArray[np.bool_]:
    """Whether all nodes of each queue are of one lane."""
    lowest = np.full(queues, len(nodes.lanes), dtype=np.int64)
    highest = np.full(queues, -1, dtype=np.int64)
    used = queue >= 0
    np.minimum.at(lowest, queue[used], nodes.lane[used])
    np.maximum.at(highest, queue[used], nodes.lane[used])
    alone: NDArray[np.bool_] = lowest == highest
    return alone
