"""Host synchronisation as nodes: what a thread submits after a wait returned depends on what it waited for.

Every synchronising call that brings news becomes a node without duration at the time it returned, in a chain
of its thread. It is the barrier that keeps a device synchronisation over S lanes at 2 S edges: one from the
last node of each lane, one to the first node that the thread submits to each lane afterwards. The edge to a
node lags by the host's time between the return and the submitting call, the edge between two
synchronisations by the time between the first one's return and the second one's call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.graph import DEFAULT_TOLERANCE_NS
from rpl_analysis.critical_path.segmented import carried_max
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind, EdgeTable, join_edges
from rpl_core.model.trace import NOT_RECORDED, CallKind, distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.awaited_work import AwaitedWork
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.program import HostProgram

    Int64Column = NDArray[np.int64]

__all__ = ["HostSyncs", "find_host_syncs", "no_host_syncs"]

#: ``HostSyncs.call`` of the point at which a thread's chain begins.
CHAIN_BEGIN = -1


@frozen(eq=False)
class HostSyncs:
    """Nodes of host threads, ascending by (thread, call); node numbers follow those of the work.

    ``call`` is the row of the call, CHAIN_BEGIN for the first node of each thread's chain, which stands for
    the beginning of the recording. ``inconsistent``: work that began before the wait it depends on returned.
    """

    call: Int64Column
    thread: Int64Column
    process: Int64Column
    time_ns: Int64Column
    edges: EdgeTable
    inconsistent: int

    def __len__(self) -> int:
        return int(self.call.shape[0])


def no_host_syncs() -> HostSyncs:
    """For a trace without API calls."""
    nothing = np.zeros(0, dtype=np.int64)
    return HostSyncs(nothing, nothing, nothing, nothing, join_edges([]), 0)


def find_host_syncs(program: HostProgram, awaited: AwaitedWork, begin_ns: Int64Column) -> HostSyncs:
    """Nodes and edges of all synchronising calls. ``begin_ns`` per process: when its clock's graph begins."""
    calls = program.calls
    assert calls is not None
    rows = distinct_values(awaited.call)
    after = _first_work_after(program, calls, rows)
    consistent = calls.table.end_ns[after.call] <= program.nodes.begin_ns[after.node] + DEFAULT_TOLERANCE_NS
    inconsistent = int((~consistent).sum())
    after = _After(after.call[consistent], after.node[consistent])
    used = rows[_is_used(calls, rows, after.call)]
    if not used.size:
        return attrs.evolve(no_host_syncs(), inconsistent=inconsistent)
    return _nodes_and_edges(program, calls, awaited, after, used, begin_ns, inconsistent)


@frozen(eq=False)
class _After:
    """Pairs: the first node of a lane that a thread submitted after a call."""

    call: Int64Column
    node: Int64Column


def _first_work_after(program: HostProgram, calls: HostCalls, rows: Int64Column) -> _After:
    order, submissions = program.order, program.submissions
    node = order.node
    submitted = submissions.call[node]
    latest = _latest_of_thread(calls, rows, submitted, submissions.thread[node])
    lane, thread = program.nodes.lane[node], submissions.thread[node].astype(np.int64)
    opens = np.ones(node.size, dtype=np.bool_)
    opens[1:] = lane[1:] != lane[:-1]
    if bool(((thread[1:] != thread[:-1]) & ~opens[1:]).any()):
        by_thread = np.lexsort((np.arange(node.size), thread, lane))
        node, latest, lane, thread = node[by_thread], latest[by_thread], lane[by_thread], thread[by_thread]
        opens[1:] = (lane[1:] != lane[:-1]) | (thread[1:] != thread[:-1])
    first = np.flatnonzero(latest + 1 > carried_max(latest + 1, opens))
    return _After(latest[first], node[first])


def _latest_of_thread(
    calls: HostCalls, rows: Int64Column, submitted: Int64Column, thread: NDArray[np.int32]
) -> Int64Column:
    """The last of ``rows`` (ascending) that the same thread made before each call, -1 for none."""
    threads = distinct_values(calls.thread[rows])
    if threads.size == 1:
        # The number of calls up to each row, as a table over all rows: no search per node.
        count = np.zeros(len(calls) + 1, dtype=np.int64)
        count[rows + 1] = 1
        np.cumsum(count, out=count)
        index = np.where(thread == threads[0], count[submitted], 0) - 1
        return np.where(index >= 0, rows[np.maximum(index, 0)], NOT_RECORDED)
    size = np.int64(len(calls))
    key = calls.thread[rows].astype(np.int64) * size + rows
    key.sort()
    index = np.searchsorted(key, thread * size + submitted) - 1
    latest = key[np.maximum(index, 0)] if key.size else index
    same = (index >= 0) & (submitted >= 0)
    if key.size:
        same &= latest // size == thread
    return np.where(same, latest % size, NOT_RECORDED)


def _is_used(calls: HostCalls, rows: Int64Column, used: Int64Column) -> NDArray[np.bool_]:
    """Calls at or before the last one of their thread that work depends on; later ones order nothing."""
    last = np.full(calls.threads, NOT_RECORDED, dtype=np.int64)
    np.maximum.at(last, calls.thread[used], used)
    return np.asarray(rows <= last[calls.thread[rows]])


def _nodes_and_edges(
    program: HostProgram,
    calls: HostCalls,
    awaited: AwaitedWork,
    after: _After,
    used: Int64Column,
    begin_ns: Int64Column,
    inconsistent: int,
) -> HostSyncs:
    threads = distinct_values(calls.thread[used]).astype(np.int64)
    call = np.concatenate([np.full(threads.size, CHAIN_BEGIN), used])
    thread = np.concatenate([threads, calls.thread[used]])
    order = np.lexsort((call, thread))
    call, thread = call[order], thread[order]
    is_begin = call == CHAIN_BEGIN
    process_of_thread = np.zeros(calls.threads, dtype=np.int64)
    process_of_thread[calls.thread] = calls.table.process
    process = process_of_thread[thread]
    time = np.where(is_begin, begin_ns[process], calls.table.end_ns[call])
    # Nothing before the graph begins or after its work ended may stretch it.
    time = np.clip(time, begin_ns[process], int(program.nodes.end_ns.max(initial=0)))
    number = np.full(len(calls), NOT_RECORDED, dtype=np.int64)
    number[call[~is_begin]] = np.flatnonzero(~is_begin) + len(program.nodes)
    edges = (
        _edges_into(calls, awaited, number),
        _edges_out(program, calls, after, number),
        _edges_along(calls, call, time, len(program.nodes)),
    )
    return HostSyncs(call, thread, process, time, join_edges(edges), inconsistent)


def _edges_into(calls: HostCalls, awaited: AwaitedWork, number: Int64Column) -> EdgeTable:
    kept = number[awaited.call] >= 0
    call = awaited.call[kept]
    table = EdgeTable.of_kind(awaited.node[kept], number[call], EdgeKind.HOST_SYNC, awaited.confidence[kept])
    return _with_blocking_kind(table, calls, call)


def _edges_out(program: HostProgram, calls: HostCalls, after: _After, number: Int64Column) -> EdgeTable:
    kept = number[after.call] >= 0
    call, node = after.call[kept], after.node[kept]
    submitted = program.submissions.call[node]
    lag = calls.table.begin_ns[submitted] - calls.table.end_ns[call]
    table = EdgeTable.of_kind(number[call], node, EdgeKind.HOST_SYNC, Confidence.CERTAIN, np.maximum(lag, 0))
    return _with_blocking_kind(table, calls, call)


def _with_blocking_kind(table: EdgeTable, calls: HostCalls, call: Int64Column) -> EdgeTable:
    """Calls that block as a side effect give edges of their own kind."""
    side_effect = np.isin(calls.kind[call], (CallKind.BLOCKING_COPY, CallKind.FREE, CallKind.OTHER))
    return attrs.evolve(table, kind=np.where(side_effect, np.int8(EdgeKind.BLOCKING_CALL), table.kind))


def _edges_along(calls: HostCalls, call: Int64Column, time_ns: Int64Column, first: int) -> EdgeTable:
    """From each synchronisation to the next of its thread; these count where waits are kept."""
    target = np.flatnonzero(call != CHAIN_BEGIN)
    lag = np.maximum(calls.table.begin_ns[call[target]] - time_ns[target - 1], 0)
    return EdgeTable.of_kind(target - 1 + first, target + first, EdgeKind.HOST_ORDER, Confidence.CERTAIN, lag)
