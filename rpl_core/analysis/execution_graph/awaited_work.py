"""What each synchronising call had waited for when it returned: pairs of a call and a node.

Stream and event synchronisation name one node, device synchronisation the last node of every lane of the
current device. Calls that block as a side effect (copies, frees) are known by rules with exceptions, so they
count as waiting only for what had ended when they returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.analysis.critical_path.graph import DEFAULT_TOLERANCE_NS
from rpl_core.analysis.critical_path.segmented import carried_max
from rpl_core.analysis.execution_graph.calls import CallKind
from rpl_core.analysis.execution_graph.edge_table import Confidence
from rpl_core.analysis.execution_graph.null_streams import Blocking
from rpl_core.analysis.execution_graph.submission import call_place
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.analysis.execution_graph.calls import HostCalls
    from rpl_core.analysis.execution_graph.event_edges import EventRecords
    from rpl_core.analysis.execution_graph.handles import StreamHandles
    from rpl_core.analysis.execution_graph.host_program import HostProgram

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]

__all__ = ["AwaitedWork", "awaited_work"]

#: Threads that synchronise a device times nodes of their process, above which nothing is resolved.
_MOST_PAIRS = 2**28


@attrs.frozen(eq=False)
class AwaitedWork:
    """Pairs, ascending by (thread, lane, call): ``call`` (row), ``node``, ``confidence``.

    Only news is kept: per thread and lane each pair names a later node than the one before it.
    ``inconsistent`` counts certain pairs whose node ended after the call returned, ``unresolved`` calls whose
    stream, event or device is unknown.
    """

    call: Int64Column
    node: Int64Column
    confidence: NDArray[np.int8]
    inconsistent: int
    unresolved: int


@attrs.frozen(eq=False)
class _Pairs:
    call: Int64Column
    node: Int64Column
    confidence: NDArray[np.int8]

    @classmethod
    def made(cls, call: Int64Column, node: Int64Column, confidence: Confidence) -> _Pairs:
        known = node >= 0
        return cls(call[known], node[known], np.full(int(known.sum()), confidence, dtype=np.int8))


def awaited_work(program: HostProgram, records: EventRecords, status: NDArray[np.int8]) -> AwaitedWork:
    """All pairs of the trace. The program's API calls must be known."""
    calls, streams = program.calls, program.streams
    assert calls is not None
    assert streams is not None
    by_stream, unresolved_streams = _stream_syncs(program, calls, streams)
    by_event, unresolved_events = _event_syncs(calls, records)
    by_device, unresolved_devices = _device_syncs(program, calls, streams, status)
    found = [by_stream, by_event, *by_device, _own_work(program, calls)]
    pairs, inconsistent = _consistent(
        _Pairs(
            np.concatenate([part.call for part in found]),
            np.concatenate([part.node for part in found]),
            np.concatenate([part.confidence for part in found]),
        ),
        program,
        calls,
    )
    news = _news(pairs, program, calls)
    return AwaitedWork(
        call=news.call,
        node=news.node,
        confidence=news.confidence,
        inconsistent=inconsistent,
        unresolved=unresolved_streams + unresolved_events + unresolved_devices,
    )


def _stream_syncs(program: HostProgram, calls: HostCalls, streams: StreamHandles) -> tuple[_Pairs, int]:
    rows = calls.rows(CallKind.STREAM_SYNC)
    lane = streams.lane_at(rows)
    node = program.order.last_before(lane, call_place(rows))
    return _Pairs.made(rows, node, Confidence.CERTAIN), int((lane < 0).sum())


def _event_syncs(calls: HostCalls, records: EventRecords) -> tuple[_Pairs, int]:
    rows = calls.rows(CallKind.EVENT_SYNC)
    unnamed = int((calls.table.event_handle[rows] == NO_HANDLE).sum())
    record = records.latest(rows)
    rows, record = rows[record >= 0], record[record >= 0]
    unresolved = unnamed + int(records.unresolved[record].sum())
    return _Pairs.made(rows, records.node[record], Confidence.CERTAIN), unresolved


def _own_work(program: HostProgram, calls: HostCalls) -> _Pairs:
    """Copies and kernels that a blocking call itself submitted."""
    call = program.submissions.call
    node = np.flatnonzero((call >= 0) & (calls.kind[call] == CallKind.BLOCKING_COPY))
    return _Pairs.made(call[node], node, Confidence.PROBABLE)


def _device_syncs(
    program: HostProgram, calls: HostCalls, streams: StreamHandles, status: NDArray[np.int8]
) -> tuple[list[_Pairs], int]:
    """Device-wide waits, and null streams, whose synchronisation waits for all blocking streams too."""
    lanes = program.nodes.lanes
    with_null = lanes.is_null | (status == Blocking.YES) | (status == Blocking.ASSUMED)
    of_stream = calls.rows(CallKind.STREAM_SYNC)
    copies = calls.rows(CallKind.BLOCKING_COPY)
    submitted = np.zeros(len(calls), dtype=np.bool_)
    submitted[program.submissions.call[program.submissions.call >= 0]] = True
    groups = (
        (calls.rows(CallKind.DEVICE_SYNC), np.ones(len(lanes), dtype=np.bool_), Confidence.CERTAIN),
        (calls.rows(CallKind.FREE), np.ones(len(lanes), dtype=np.bool_), Confidence.PROBABLE),
        (of_stream[streams.is_null(of_stream)], with_null, Confidence.PROBABLE),
        (copies[~submitted[copies]], with_null, Confidence.PROBABLE),
    )
    pairs: list[_Pairs] = []
    unresolved = 0
    for rows, taken, confidence in groups:
        agent = streams.device.agent_at(rows)
        unresolved += int((agent < 0).sum()) if confidence is Confidence.CERTAIN else 0
        pairs += _waits_for_lanes(program, calls, rows[agent >= 0], agent[agent >= 0], taken, confidence)
    return pairs, unresolved


def _waits_for_lanes(
    program: HostProgram,
    calls: HostCalls,
    rows: Int64Column,
    agent: Int64Column,
    taken: BoolColumn,
    confidence: Confidence,
) -> list[_Pairs]:
    """Pairs of each call with the last node before it in every taken lane of its agent.

    Found from the nodes: the first call after a node waits for it unless the lane's next node comes before
    that call too. So the cost does not grow with lanes times calls.
    """
    key = calls.thread[rows].astype(np.int64) * (int(agent.max(initial=0)) + 1) + agent
    numbers = np.unique(key)
    if numbers.size * len(program.nodes) > _MOST_PAIRS:
        return []
    found = []
    for number in numbers.tolist():
        own = key == number
        process, device = int(calls.table.process[rows[own][0]]), int(agent[own][0])
        lanes = program.nodes.lanes
        inside = taken & (lanes.process == process) & (lanes.agent == device)
        found.append(_pairs_of_thread(program, rows[own], inside, confidence))
    return found


def _pairs_of_thread(
    program: HostProgram, rows: Int64Column, lanes: BoolColumn, confidence: Confidence
) -> _Pairs:
    order = program.order
    index = np.arange(order.node.size)
    if not lanes.all():
        index = np.flatnonzero(lanes[program.nodes.lane[order.node]])
    place = order.key[index] % order.span - 1
    following = np.searchsorted(call_place(rows), place, side="right")
    lane = order.key[index] // order.span
    is_last = np.ones(index.size, dtype=np.bool_)
    is_last[:-1] = (lane[1:] != lane[:-1]) | (following[1:] != following[:-1])
    is_last &= following < rows.size
    return _Pairs.made(rows[following[is_last]], order.last_to_end[index[is_last]], confidence)


def _consistent(pairs: _Pairs, program: HostProgram, calls: HostCalls) -> tuple[_Pairs, int]:
    ended = program.nodes.end_ns[pairs.node] <= calls.table.end_ns[pairs.call] + DEFAULT_TOLERANCE_NS
    inconsistent = int((~ended & (pairs.confidence == Confidence.CERTAIN)).sum())
    if ended.all():
        return pairs, inconsistent
    return _Pairs(pairs.call[ended], pairs.node[ended], pairs.confidence[ended]), inconsistent


def _news(pairs: _Pairs, program: HostProgram, calls: HostCalls) -> _Pairs:
    """Pairs that tell their thread something new about the lane, ascending by (thread, lane, call)."""
    lane, thread = program.nodes.lane[pairs.node], calls.thread[pairs.call]
    rank = program.order.rank[pairs.node]
    order = np.lexsort((pairs.confidence, -rank, pairs.call, lane, thread))
    lane, thread, rank = lane[order], thread[order], rank[order]
    opens = np.ones(order.size, dtype=np.bool_)
    opens[1:] = (lane[1:] != lane[:-1]) | (thread[1:] != thread[:-1])
    new = order[rank + 1 > carried_max(rank + 1, opens)]
    return _Pairs(pairs.call[new], pairs.node[new], pairs.confidence[new])


def known_before(
    awaited: AwaitedWork, program: HostProgram, thread: Int64Column, lane: Int64Column, row: Int64Column
) -> Int64Column:
    """Rank (in its lane's order) of the last node that each thread knew to have ended before a call.

    -1 where it knew of none in that lane. Shape (q,).
    """
    calls = program.calls
    if calls is None or not awaited.call.size:
        return np.full(row.size, NOT_RECORDED, dtype=np.int64)
    lanes, size = len(program.nodes.lanes), np.int64(len(calls))
    of_thread = calls.thread[awaited.call].astype(np.int64)
    key = (of_thread * lanes + program.nodes.lane[awaited.node]) * size + awaited.call
    wanted = thread.astype(np.int64) * lanes + lane
    found = np.searchsorted(key, wanted * size + row) - 1
    index = np.maximum(found, 0)
    known = (found >= 0) & (key[index] // size == wanted)
    return np.where(known, program.order.rank[awaited.node[index]], NOT_RECORDED)
