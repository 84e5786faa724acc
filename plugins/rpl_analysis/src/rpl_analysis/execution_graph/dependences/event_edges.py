"""Edges of event records and waits, as the API calls tell them.

A record stands for the last node submitted to its stream before it; a wait makes the next node submitted to
its stream depend on what the latest record of the event stood for (docs/reference/execution-graph.md, 2.3).
An event handle means something new after the event was destroyed or created; a wait on an event never
recorded is no edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph.edges import Confidence, EdgeKind, EdgeTable
from rpl_analysis.execution_graph.graph.numbering import places
from rpl_analysis.execution_graph.host_program.submission import call_place
from rpl_core.model.calls import CallKind
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph.nodes import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.lane_order import LaneOrder
    from rpl_analysis.execution_graph.host_program.stream_handles import StreamHandles

    Int64Column = NDArray[np.int64]

__all__ = ["EventRecords", "EventWaits", "find_records", "wait_edges"]

#: ``EventRecords.node`` of a mark after which the event has no record.
_FORGOTTEN = -2


@frozen(eq=False)
class EventRecords:
    """Marks in the life of events, ascending by ``key`` (event, then row of the call).

    ``node``: what the record stands for; -1 where nothing was submitted to the stream before, or the stream
    is unknown (``unresolved``). ``event``: the distinct handles ascending.
    """

    calls: HostCalls
    event: NDArray[np.uint64]
    key: Int64Column
    node: Int64Column
    row: Int64Column
    unresolved: NDArray[np.bool_]

    def latest(self, rows: Int64Column) -> Int64Column:
        """Index of the latest record of each call's event before the call; -1 for none."""
        if not self.key.size:
            return np.full(rows.size, NOT_RECORDED, dtype=np.int64)
        key, known = _event_key(self.calls, rows, self.event)
        index = np.searchsorted(self.key, key) - 1
        mark = np.maximum(index, 0)
        size = np.int64(len(self.calls))
        valid = known & (index >= 0) & (self.key[mark] // size == key // size)
        return np.where(valid & (self.node[mark] != _FORGOTTEN), mark, NOT_RECORDED)


@frozen(eq=False)
class EventWaits:
    """Edges of the waits, the row of the waiting call per edge, and how many waits gave none and why."""

    edges: EdgeTable
    row: Int64Column
    unrecorded: int
    unresolved: int


def find_records(calls: HostCalls, streams: StreamHandles, order: LaneOrder) -> EventRecords:
    """All records, and the marks at which events were created or destroyed."""
    table = calls.table
    rows = calls.rows(CallKind.RECORD, CallKind.EVENT_RESET)
    rows = rows[table.event_handle[rows] != NO_HANDLE]
    is_record = calls.kind[rows] == CallKind.RECORD
    lane = np.full(rows.size, NOT_RECORDED, dtype=np.int64)
    lane[is_record] = streams.lane_at(rows[is_record])
    node = np.where(is_record, order.last_before(lane, call_place(rows)), _FORGOTTEN)
    event = np.unique(table.event_handle[rows])
    key, _ = _event_key(calls, rows, event)
    by_key = np.argsort(key, kind="stable")
    return EventRecords(
        calls=calls,
        event=event,
        key=key[by_key],
        node=node[by_key],
        row=rows[by_key],
        unresolved=(is_record & (lane < 0))[by_key],
    )


def _event_key(
    calls: HostCalls, rows: Int64Column, event: NDArray[np.uint64]
) -> tuple[Int64Column, NDArray[np.bool_]]:
    """(process, event, row) as one number, and whether the event is among ``event``."""
    code = places(calls.table.event_handle[rows], event)
    number = calls.table.process[rows].astype(np.int64) * max(1, event.size) + np.maximum(code, 0)
    return number * len(calls) + rows, code >= 0


def wait_edges(
    nodes: WorkNodes, calls: HostCalls, streams: StreamHandles, order: LaneOrder, records: EventRecords
) -> EventWaits:
    """One edge per wait whose record and streams are known and lie in different lanes."""
    rows = calls.rows(CallKind.WAIT)
    record = records.latest(rows)
    recorded = record >= 0
    lane = streams.lane_at(rows)
    known = record[recorded]
    source = np.full(rows.size, NOT_RECORDED, dtype=np.int64)
    source[recorded] = records.node[known]
    named = calls.table.event_handle[rows] != NO_HANDLE
    unresolved = recorded & (lane < 0)
    unresolved[recorded] |= records.unresolved[known]
    target = order.first_after(lane, call_place(rows))
    joined = (source >= 0) & (target >= 0)
    joined[joined] = nodes.lane[source[joined]] != nodes.lane[target[joined]]
    # A queue that stands in for streams holds work of others too: its last node may not be the recorded one.
    confidence = Confidence.PROBABLE if nodes.by_queue else Confidence.CERTAIN
    return EventWaits(
        edges=EdgeTable.of_kind(source[joined], target[joined], EdgeKind.EVENT, confidence),
        row=rows[joined],
        unrecorded=int((named & ~recorded).sum()),
        unresolved=int((unresolved | ~named).sum()),
    )
