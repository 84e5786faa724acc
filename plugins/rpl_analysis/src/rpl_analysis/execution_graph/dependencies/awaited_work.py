"""What each synchronising call had waited for when it returned: pairs of a call and a node.

Stream and event synchronisation name one node; what waits for many lanes is ``device_waits``' knowledge.
Calls that block as a side effect (copies, frees) are known by rules with exceptions, so they count as waiting
only for what had ended when they returned. So do asynchronous copies, which wait if the host's memory is not
pinned: what no recording says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.graph import DEFAULT_TOLERANCE_NS
from rpl_analysis.critical_path.segmented import carried_max, running_max
from rpl_analysis.execution_graph.dependencies.device_waits import AwaitedPairs, device_waits
from rpl_analysis.execution_graph.graph import Confidence
from rpl_analysis.execution_graph.host_program.calls import last_surely_before
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, CallKind
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.event_edges import EventRecords
    from rpl_analysis.execution_graph.dependencies.pending_waits import PendingWork
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.host_program.stream_handles import StreamHandles

    Int64Column = NDArray[np.int64]

__all__ = ["AwaitedWork", "awaited_work"]


@frozen(eq=False)
class AwaitedWork:
    """Pairs, ascending by (thread, lane, call): ``call`` (row), ``node``, ``confidence``.

    Only news is kept: per thread and lane each pair names a later node than those before it, or is the first
    that is certain of it.
    ``inconsistent`` counts certain pairs whose node ended after the call returned, ``unresolved`` calls whose
    stream, event or device is unknown.
    """

    call: Int64Column
    node: Int64Column
    confidence: NDArray[np.int8]
    inconsistent: int
    unresolved: int


def awaited_work(
    program: HostProgram,
    records: EventRecords,
    pending: PendingWork,
    status: NDArray[np.int8],
    of_host: NDArray[np.bool_],
) -> AwaitedWork:
    """All pairs of the trace. The program's API calls must be known. ``of_host``: copies to or from hosts."""
    calls, streams = program.calls, program.streams
    assert calls is not None
    assert streams is not None
    by_stream, unresolved_streams = _stream_syncs(program, calls, streams)
    by_event, unresolved_events = _event_syncs(calls, records, pending)
    by_device, unresolved_devices = device_waits(program, calls, streams, status)
    behind_waits = AwaitedPairs(*pending.of_syncs())
    parts = [by_stream, behind_waits, by_event, *by_device, _own_work(program, calls, of_host)]
    pairs, inconsistent = _consistent(
        AwaitedPairs(
            np.concatenate([part.call for part in parts]),
            np.concatenate([part.node for part in parts]),
            np.concatenate([part.confidence for part in parts]),
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


def _stream_syncs(program: HostProgram, calls: HostCalls, streams: StreamHandles) -> tuple[AwaitedPairs, int]:
    rows = calls.rows(CallKind.STREAM_SYNC)
    lane = streams.lane_at(rows)
    node = last_surely_before(program, lane, rows)
    return AwaitedPairs.made(rows, node, Confidence.CERTAIN), int((lane < 0).sum())


def _event_syncs(calls: HostCalls, records: EventRecords, pending: PendingWork) -> tuple[AwaitedPairs, int]:
    rows = calls.rows(CallKind.EVENT_SYNC)
    unnamed = int((calls.table.event_handle[rows] == NO_HANDLE).sum())
    record = records.latest(rows)
    rows, record = rows[record >= 0], record[record >= 0]
    unresolved = unnamed + int(records.unresolved[record].sum())
    further, node, doubt = pending.of_records(record)
    call = np.concatenate([rows, rows[further]])
    known = np.concatenate([records.node[record], node])
    unsure = np.where(records.is_sure(record, rows), Confidence.CERTAIN, Confidence.PROBABLE)
    doubts = np.concatenate([unsure, np.maximum(doubt, unsure[further])]).astype(np.int8)
    has_node = known >= 0
    return AwaitedPairs(call[has_node], known[has_node], doubts[has_node]), unresolved


def _own_work(program: HostProgram, calls: HostCalls, of_host: NDArray[np.bool_]) -> AwaitedPairs:
    """Copies and kernels that a blocking call itself submitted, or a copy that may have been one."""
    call = program.submissions.call
    own = (call >= 0) & (calls.kind[call] == CallKind.BLOCKING_COPY)
    returned_late = calls.table.end_ns[call] >= program.nodes.end_ns
    own |= of_host & (call >= 0) & (calls.kind[call] == CallKind.OTHER) & returned_late
    node = np.flatnonzero(own)
    return AwaitedPairs.made(call[node], node, Confidence.PROBABLE)


def _consistent(pairs: AwaitedPairs, program: HostProgram, calls: HostCalls) -> tuple[AwaitedPairs, int]:
    ended = program.nodes.end_ns[pairs.node] <= calls.table.end_ns[pairs.call] + DEFAULT_TOLERANCE_NS
    inconsistent = int((~ended & (pairs.confidence == Confidence.CERTAIN)).sum())
    if ended.all():
        return pairs, inconsistent
    return AwaitedPairs(pairs.call[ended], pairs.node[ended], pairs.confidence[ended]), inconsistent


def _news(pairs: AwaitedPairs, program: HostProgram, calls: HostCalls) -> AwaitedPairs:
    """Pairs that tell their thread something new about the lane, ascending by (thread, lane, call).

    What was known as probable only is news once it is certain.
    """
    lane, thread = program.nodes.lane[pairs.node], calls.thread[pairs.call]
    rank = program.order.rank[pairs.node]
    order = np.lexsort((-rank, pairs.confidence, pairs.call, lane, thread))
    lane, thread, rank = lane[order], thread[order], rank[order]
    opens = np.ones(order.size, dtype=np.bool_)
    opens[1:] = (lane[1:] != lane[:-1]) | (thread[1:] != thread[:-1])
    certain = pairs.confidence[order] == Confidence.CERTAIN
    new = rank + 1 > carried_max(rank + 1, opens)
    new |= certain & (rank + 1 > carried_max(np.where(certain, rank + 1, 0), opens))
    return AwaitedPairs(pairs.call[order][new], pairs.node[order][new], pairs.confidence[order][new])


def known_before(
    awaited: AwaitedWork,
    program: HostProgram,
    thread: Int64Column,
    lane: Int64Column,
    row: Int64Column,
    *,
    certain: bool,
) -> Int64Column:
    """Rank (in its lane's order) of the last node that each thread knew to have ended before a call.

    -1 where it knew of none in that lane. ``certain``: probable knowledge does not count. Shape (q,).
    """
    calls = program.calls
    counts = awaited.confidence == Confidence.CERTAIN if certain else np.ones(awaited.call.size, np.bool_)
    if calls is None or not counts.any():
        return np.full(row.size, NOT_RECORDED, dtype=np.int64)
    call, node = awaited.call[counts], awaited.node[counts]
    lanes, size = len(program.nodes.lanes), np.int64(len(calls))
    own = calls.thread[call].astype(np.int64) * lanes + program.nodes.lane[node]
    opens = np.ones(own.size, dtype=np.bool_)
    opens[1:] = own[1:] != own[:-1]
    reached = running_max(program.order.rank[node], np.cumsum(opens) - 1)
    key = own * size + call
    wanted = thread.astype(np.int64) * lanes + lane
    last = np.searchsorted(key, wanted * size + row) - 1
    index = np.maximum(last, 0)
    known = (last >= 0) & (key[index] // size == wanted)
    return np.where(known, reached[index], NOT_RECORDED)
