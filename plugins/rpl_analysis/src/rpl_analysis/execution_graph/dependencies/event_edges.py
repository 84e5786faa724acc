"""Edges of event records and waits, as the API calls tell them.

A record stands for the last node submitted to its stream before it; a wait makes the next node submitted to
its stream depend on what the latest record of the event stood for (docs/reference/execution-graph.md, 2.3).
An event handle means something new after the event was destroyed or created; a wait on an event never
recorded is no edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.segmented import carried_max
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind, EdgeTable, places
from rpl_analysis.execution_graph.host_program.calls import (
    first_surely_after,
    last_surely_before,
    surely_before,
)
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, CallKind, distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.pending_waits import PendingWork
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.program import HostProgram

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]

__all__ = ["EventRecords", "EventWaits", "find_records", "find_waits", "wait_edges"]

#: ``EventRecords.node`` of a mark after which the event has no record.
_FORGOTTEN = -2


@frozen(eq=False)
class EventRecords:
    """Marks in the life of events, ascending by ``key`` (event, then row of the call).

    ``node``: the last one that the record stands for; -1 where nothing was submitted to the stream before, or
    the stream is unknown (``unresolved``). ``event``: the distinct handles ascending. ``lane`` is -1 where
    unknown.
    """

    calls: HostCalls
    event: NDArray[np.uint64]
    key: Int64Column
    node: Int64Column
    row: Int64Column
    lane: Int64Column
    unresolved: BoolColumn

    def latest(self, rows: Int64Column) -> Int64Column:
        """Index of the latest record of each call's event before the call; -1 for none."""
        if not self.key.size:
            return np.full(rows.size, NOT_RECORDED, dtype=np.int64)
        key, known = _event_key(self.calls, rows, self.event)
        index = np.searchsorted(self.key, key) - 1
        mark = np.maximum(index, 0)
        valid = known & (index >= 0) & (self._event_of(self.key[mark]) == self._event_of(key))
        return np.where(valid & (self.node[mark] != _FORGOTTEN), mark, NOT_RECORDED)

    def is_sure(self, record: Int64Column, rows: Int64Column) -> BoolColumn:
        """Whether each call surely meets that record, its event's latest: no other call overlaps them."""
        calls = self.calls
        begin, end = calls.table.begin_ns, calls.table.end_ns
        sure = surely_before(calls, self.row[record], rows)
        event = self._event_of(self.key)
        opens = np.ones(event.size, dtype=np.bool_)
        opens[1:] = event[1:] != event[:-1]
        # Earlier marks that had not returned when the record was called may have come after it.
        origin = int(begin.min(initial=0))
        returned = carried_max(end[self.row] - origin + 1, opens) - 1 + origin
        sure &= opens[record] | (returned[record] < begin[self.row[record]])
        # So may the next mark, called while the call that meets the record ran, have come before it.
        following = np.minimum(record + 1, event.size - 1)
        other = (following == record) | opens[following]
        sure &= other | (begin[self.row[following]] > end[rows])
        return sure

    def _event_of(self, key: Int64Column) -> Int64Column:
        number: Int64Column = key // np.int64(len(self.calls))
        return number


@frozen(eq=False)
class EventWaits:
    """One entry per wait call, ascending by ``row``: the record it meets, and the first node behind it.

    ``record`` indexes ``EventRecords``; it, ``lane`` and ``node`` are -1 where there is none.
    """

    row: Int64Column
    lane: Int64Column
    record: Int64Column
    node: Int64Column
    sure: BoolColumn
    unrecorded: int
    unresolved: int


def find_records(program: HostProgram) -> EventRecords:
    """All records, and the marks at which events were created or destroyed."""
    calls, streams = program.calls, program.streams
    assert calls is not None
    assert streams is not None
    table = calls.table
    rows = calls.rows(CallKind.RECORD, CallKind.EVENT_RESET)
    rows = rows[table.event_handle[rows] != NO_HANDLE]
    is_record = calls.kind[rows] == CallKind.RECORD
    lane = np.full(rows.size, NOT_RECORDED, dtype=np.int64)
    lane[is_record] = streams.lane_at(rows[is_record])
    node = np.where(is_record, last_surely_before(program, lane, rows), _FORGOTTEN)
    event = distinct_values(table.event_handle[rows])
    key, _ = _event_key(calls, rows, event)
    by_key = np.argsort(key, kind="stable")
    return EventRecords(
        calls=calls,
        event=event,
        key=key[by_key],
        node=node[by_key],
        row=rows[by_key],
        lane=lane[by_key],
        unresolved=(is_record & (lane < 0))[by_key],
    )


def _event_key(
    calls: HostCalls, rows: Int64Column, event: NDArray[np.uint64]
) -> tuple[Int64Column, NDArray[np.bool_]]:
    """(process, event, row) as one number, and whether the event is among ``event``."""
    code = places(calls.table.event_handle[rows], event)
    number = calls.table.process[rows].astype(np.int64) * max(1, event.size) + np.maximum(code, 0)
    return number * len(calls) + rows, code >= 0


def find_waits(program: HostProgram, records: EventRecords) -> EventWaits:
    """All waits of streams for events."""
    calls, streams = program.calls, program.streams
    assert calls is not None
    assert streams is not None
    rows = calls.rows(CallKind.WAIT)
    record = records.latest(rows)
    recorded = record >= 0
    lane = streams.lane_at(rows)
    named = calls.table.event_handle[rows] != NO_HANDLE
    unresolved = recorded & (lane < 0)
    unresolved[recorded] |= records.unresolved[record[recorded]]
    sure = np.zeros(rows.size, dtype=np.bool_)
    sure[recorded] = records.is_sure(record[recorded], rows[recorded])
    return EventWaits(
        row=rows,
        lane=lane,
        record=record,
        node=first_surely_after(program, lane, rows),
        sure=sure,
        unrecorded=int((named & ~recorded).sum()),
        unresolved=int((unresolved | ~named).sum()),
    )


def wait_edges(nodes: WorkNodes, waits: EventWaits, records: EventRecords, pending: PendingWork) -> EdgeTable:
    """One edge per wait and node that its record stands for, where that lies in another lane."""
    wait = np.flatnonzero((waits.record >= 0) & (waits.node >= 0))
    own = records.node[waits.record[wait]]
    further, node, doubt = pending.of_records(waits.record[wait])
    wait, source = np.concatenate([wait, wait[further]]), np.concatenate([own, node])
    doubts = np.concatenate([np.zeros(own.size, dtype=np.int8), doubt])
    target = waits.node[wait]
    joined = source >= 0
    joined[joined] = nodes.lane[source[joined]] != nodes.lane[target[joined]]
    # A queue that stands in for streams holds work of others too: its last node may not be the recorded one.
    probable = nodes.by_queue | ~waits.sure[wait]
    confidence = np.maximum(doubts, np.where(probable, Confidence.PROBABLE, Confidence.CERTAIN)).astype(
        np.int8
    )
    return EdgeTable.of_kind(source[joined], target[joined], EdgeKind.EVENT, confidence[joined])
