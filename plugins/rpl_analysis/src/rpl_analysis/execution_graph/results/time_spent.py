"""What time was spent on: the makespan along the as-executed path, and the idle time of a set of nodes.

A wait on the path is the host's until the node's API call began; what is left is the wait for a
synchronisation if one released the node, else the launch. Without API calls the host's part counts as launch.

Idle time is blamed on what the node that ended it had waited for. Until its launch was called that is
``sync`` while the thread was in a call that waits, else the ``host``; work that was queued already waited for
an event or stream (``sync``) or for its launch (``launch``). Work that starts 1 ms after its launch returned,
or a copy after its call began, though nothing recorded ran meanwhile, waited for something not recorded
(``unattributed``). Where copies are not recorded, the part of ``sync`` and ``host`` that the thread spent in
calls that copy is probably ``copying``. docs/reference/execution-graph.md, 3.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.contracts.dag import BreakdownPart, IdleCallPart, IdlePart
from rpl_analysis.critical_path.graph import DEFAULT_TOLERANCE_NS
from rpl_analysis.critical_path.intervals import BusyTime
from rpl_analysis.critical_path.segmented import carried_max, running_max
from rpl_analysis.execution_graph.graph import BLOCK, EdgeKind, is_constant
from rpl_analysis.execution_graph.results.domain import NO_SYMBOL
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import CriticalPath
    from rpl_analysis.execution_graph.results.domain import Domain, SolvedDomain
    from rpl_analysis.execution_graph.results.loads import HostTimeline, Pieces

    Int64Column = NDArray[np.int64]

__all__ = [
    *("IDLE_CAUSES", "QUEUED_WAITS", "IdleIntervals", "IdleTime", "Releases", "break_down", "find_releases"),
    *("idle_intervals", "sum_idle_time"),
]

#: Kinds of edges that hold back work which the host has submitted already.
QUEUED_WAITS = (EdgeKind.EVENT, EdgeKind.MEASURED_EVENT, EdgeKind.NULL_STREAM)
#: An idle GPU starts what is queued within microseconds; what takes this long is no launch (chosen).
_LATE_NS = 1_000_000


#: What idle time is blamed on, in the order of the fields of ``IdlePart``.
IDLE_CAUSES = ("host", "sync", "launch", "unattributed", "copying")
_HOST, _SYNC, _LAUNCH, _UNATTRIBUTED, _COPYING = range(len(IDLE_CAUSES))

_UNKNOWN = np.int64(np.iinfo(np.int64).min)


def break_down(solved: SolvedDomain, path: CriticalPath) -> BreakdownPart:
    """The parts of ``path``, which is as executed; they add up to the makespan."""
    domain, rows = solved.domain, path.rows
    execution = solved.graph.to_rows(solved.weights.execution_ns)
    submitted = _submitted_ns(solved)
    # Host synchronisations, which belong to no symbol, take no time.
    kernel_ns = copy_ns = host_ns = held_ns = 0
    waits = _after_queued_wait(solved, path)
    for first in range(0, rows.size, BLOCK):
        block = slice(first, first + BLOCK)
        own, symbol = rows[block], domain.symbol[rows[block]]
        is_copy = symbol >= domain.work.kernel_symbols
        copy_ns += int(execution[own][is_copy].sum())
        kernel_ns += int(execution[own][~is_copy & (symbol != NO_SYMBOL)].sum())
        host = _host_part(submitted[own], path.wait_ns[block])
        # What was over before the call held nothing back: behind a part of the host comes the launch.
        held = (waits[block] & (host == 0)) | (symbol == NO_SYMBOL)
        host_ns += int(host.sum())
        held_ns += int(path.wait_ns[block][held].sum() - host[held].sum())
    return BreakdownPart(
        kernel_ns=kernel_ns,
        copy_ns=copy_ns,
        launch_gap_ns=path.waiting_ns - host_ns - held_ns,
        host_gap_ns=host_ns,
        sync_wait_ns=held_ns,
    )


def _submitted_ns(solved: SolvedDomain) -> Int64Column:
    """Per row the time from its begin to that of its API call, which lies before it; int64 min if unknown."""
    domain, graph = solved.domain, solved.graph
    if is_constant(domain.submitted_ns) and domain.submitted_ns[0] < 0:
        return np.broadcast_to(_UNKNOWN, domain.submitted_ns.shape)
    # Times of the graph count from its first begin.
    submitted = domain.submitted_ns - int(domain.begin_ns.min())
    submitted -= graph.to_rows(graph.begin_ns)
    submitted[domain.submitted_ns < 0] = _UNKNOWN
    return submitted


def _host_part(submitted_ns: Int64Column, wait_ns: Int64Column) -> Int64Column:
    """The part of each wait before the API call of the node that waits."""
    known = submitted_ns != _UNKNOWN
    return np.where(known, np.clip(np.where(known, submitted_ns, 0) + wait_ns, 0, wait_ns), 0)


def _after_queued_wait(solved: SolvedDomain, path: CriticalPath) -> NDArray[np.bool_]:
    """Per node of the path whether it was entered by an edge that holds back submitted work."""
    entered = path.entered_by >= 0
    queued = np.zeros(path.rows.size, dtype=np.bool_)
    kinds = solved.edges.kind[path.entered_by[entered]]
    queued[path.run_start[entered]] = np.isin(kinds, QUEUED_WAITS)
    return queued


@frozen(eq=False)
class Releases:
    """Per work node: begin of its API call (-1 unknown).

    ``held``: an event or another stream was the last to hold it back after it had been submitted. ``copies``:
    it is a copy. ``host``: which calls the threads were in, ``None`` without calls.
    """

    submitted_ns: Int64Column
    held: NDArray[np.bool_]
    copies: NDArray[np.bool_]
    host: HostTimeline | None = None


def find_releases(domain: Domain, host: HostTimeline | None) -> Releases:
    """What is known about the release of every work node of ``domain``."""
    count = len(domain.work)
    edges, copies = domain.trusted_edges(), domain.symbol[:count] >= domain.work.kernel_symbols
    queued = np.flatnonzero(np.isin(edges.kind, QUEUED_WAITS))
    if not queued.size:
        nothing = np.broadcast_to(np.bool_(False), count)
        return Releases(domain.submitted_ns[:count], nothing, copies, host)
    # A wait for what had ended before the launch, or before the stream's own work, held nothing back.
    target = edges.target[queued]
    until = np.full(count, -1, dtype=np.int64)
    np.maximum.at(until, target, domain.end_ns[edges.source[queued]])
    held = (until > domain.submitted_ns[:count]) & (domain.submitted_ns[:count] >= 0)
    lanes = np.flatnonzero(np.isin(domain.lane[:count], domain.lane[target]))
    held[lanes] &= until[lanes] > _lane_free_ns(domain, lanes)
    return Releases(domain.submitted_ns[:count], held, copies, host)


def _lane_free_ns(domain: Domain, rows: Int64Column) -> Int64Column:
    """When the work before each node of whole lanes had ended; work beside it, of one graph, left out."""
    order = rows[np.argsort(domain.lane[rows], kind="stable")]
    opens = np.diff(domain.lane[order], prepend=-1) != 0
    reached = carried_max(domain.end_ns[order], opens)
    reached[reached > domain.begin_ns[order] + DEFAULT_TOLERANCE_NS] = 0
    free = np.empty_like(reached)
    free[np.searchsorted(rows, order)] = running_max(reached, np.cumsum(opens) - 1)
    return free


@frozen(eq=False)
class IdleTime:
    """``calls`` add up to the idle time before work whose submission is recorded."""

    busy: BusyTime
    idle: IdlePart
    calls: tuple[IdleCallPart, ...] = ()


def sum_idle_time(
    begin_ns: Int64Column, end_ns: Int64Column, releases: Releases, rows: Int64Column | None = None
) -> IdleTime:
    """Busy and idle time of work nodes that ascend by begin; ``rows`` are their rows in ``releases``."""
    if not begin_ns.size:
        return IdleTime(BusyTime(total_ns=0, busy_ns=0, makespan_ns=0), IdlePart(0, 0, 0, 0, 0))
    host = releases.host
    total_ns, known_ns, blamed = 0, 0, np.zeros(5, dtype=np.int64)
    in_calls = np.zeros(0 if host is None else len(host.names) + 1, dtype=np.int64)
    reached_ns = int(begin_ns[0])
    # In blocks: the intervals between millions of nodes would need several columns.
    for first in range(0, begin_ns.size, BLOCK):
        begin, end = begin_ns[first : first + BLOCK], end_ns[first : first + BLOCK]
        total_ns += int((end - begin).sum())
        busy_until = np.maximum.accumulate(np.append(reached_ns, end))
        reached_ns = int(busy_until[-1])
        ender = np.flatnonzero(begin > busy_until[:-1])
        node = ender + first if rows is None else rows[ender + first]
        since = busy_until[ender]
        if host is not None:
            known_ns += int((begin[ender] - since)[host.thread[node] >= 0].sum())
        blamed += _blamed(since, begin[ender], node, releases, in_calls)
    makespan_ns = reached_ns - int(begin_ns[0])
    busy = BusyTime(total_ns=total_ns, busy_ns=makespan_ns - int(blamed.sum()), makespan_ns=makespan_ns)
    named = () if host is None else _named(host.names, in_calls, known_ns, makespan_ns - busy.busy_ns)
    return IdleTime(busy, IdlePart(*blamed.tolist()), named)


def _named(
    names: tuple[str, ...], in_calls: Int64Column, known_ns: int, idle_ns: int
) -> tuple[IdleCallPart, ...]:
    """Longest first; calls without a name and the time outside of calls are one entry without a name."""
    sums: dict[str | None, int] = {None: known_ns - int(in_calls[:-1].sum())}
    for name, ns in zip(names, in_calls.tolist(), strict=False):
        sums[name] = sums.get(name, 0) + ns
    ordered = sorted(((ns, name) for name, ns in sums.items() if ns), key=lambda p: (-p[0], p[1] or ""))
    return tuple(IdleCallPart(name, ns, ns / idle_ns) for ns, name in ordered)


def _behind_unrecorded(
    submitted_ns: Int64Column, begin_ns: Int64Column, node: Int64Column, releases: Releases
) -> Int64Column:
    """How long queued work waited for what is not recorded.

    A launch may load code before it queues, so it counts from its return; a copy, which returns when it has
    copied, from the begin of its call.
    """
    if releases.host is None:
        return np.zeros_like(submitted_ns)
    returned = np.where(releases.copies[node], submitted_ns, releases.host.returned_ns[node])
    behind = begin_ns - np.clip(returned, submitted_ns, begin_ns)
    return np.where(behind >= _LATE_NS, behind, 0)


def _blamed(
    begin_ns: Int64Column,
    end_ns: Int64Column,
    ender: Int64Column,
    releases: Releases,
    in_calls: Int64Column,
) -> tuple[int, int, int, int, int]:
    """Times between ``begin_ns`` and ``end_ns`` in the order of the fields of ``IdlePart``.

    Adds the time in each function to ``in_calls``, whose last entry is for calls without one.
    """
    submitted = _submitted(begin_ns, end_ns, ender, releases)
    queued = end_ns - submitted
    known = releases.submitted_ns[ender] >= 0
    held = releases.held[ender]
    behind = _behind_unrecorded(submitted, end_ns, ender, releases)
    copying = waiting = 0
    for piece in () if releases.host is None else releases.host.pieces(ender, begin_ns, end_ns):
        np.add.at(in_calls, piece.function, piece.ns)
        for cause, _, start, stop in _blocked(piece, begin_ns, submitted):
            spent = int((stop - start).sum())
            copying, waiting = (copying + spent, waiting) if cause == _COPYING else (copying, waiting + spent)
    return (
        int((submitted - begin_ns)[known].sum()) - copying - waiting,
        waiting + int(queued[held].sum()),
        int((queued - behind)[known & ~held].sum()),
        int(queued[~known].sum() + behind[known & ~held].sum()),
        copying,
    )


def _submitted(
    begin_ns: Int64Column, end_ns: Int64Column, ender: Int64Column, releases: Releases
) -> Int64Column:
    """When in each gap the launch was called; its begin where that was earlier, or is unknown."""
    return np.clip(releases.submitted_ns[ender], begin_ns, end_ns)


def _blocked(
    piece: Pieces, begin_ns: Int64Column, submitted_ns: Int64Column
) -> Iterator[tuple[int, Int64Column, Int64Column, Int64Column]]:
    """Cause, gap, begin and end of the time before launches in calls that copy, and in others that wait."""
    for cause, which in ((_COPYING, piece.copies), (_SYNC, piece.waits & ~piece.copies)):
        of = np.flatnonzero(which & (piece.call_begin_ns < submitted_ns[piece.gap]))
        gap = piece.gap[of]
        start = np.maximum(piece.call_begin_ns[of], begin_ns[gap])
        yield cause, gap, start, np.minimum(start + piece.ns[of], submitted_ns[gap])


@frozen(eq=False)
class IdleIntervals:
    """Idle time cut where its cause changes, in time order. ``node`` ended the gap, ``cause`` indexes
    ``IDLE_CAUSES``."""

    node: Int64Column
    cause: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column


def idle_intervals(
    begin_ns: Int64Column, end_ns: Int64Column, releases: Releases, rows: Int64Column | None = None
) -> IdleIntervals:
    """What ``sum_idle_time`` adds up, interval by interval; the arguments are the same."""
    busy_until = np.maximum.accumulate(end_ns)
    ender = np.flatnonzero(begin_ns[1:] > busy_until[:-1]) + 1
    node = ender if rows is None else rows[ender]
    since, until = busy_until[ender - 1], begin_ns[ender]
    submitted = _submitted(since, until, node, releases)
    behind = _behind_unrecorded(submitted, until, node, releases)
    late = until - np.where(releases.held[node], 0, behind)
    gaps, nothing = np.arange(ender.size), np.zeros(ender.size, np.int64)
    # A thread is in one outermost call at a time: what it was in is the sum of what began and ended.
    gap, time, change = [gaps, gaps, gaps], [since, submitted, late], [nothing, nothing, nothing]
    for piece in () if releases.host is None else releases.host.pieces(node, since, until):
        for blocked, of, start, stop in _blocked(piece, since, submitted):
            own = np.full(of.size, blocked - _HOST)
            gap, time, change = [*gap, of, of], [*time, start, stop], [*change, own, -own]
    at, place = np.concatenate(time), np.concatenate(gap)
    order = np.lexsort((at, place))
    at, place = at[order], place[order]
    of_host = _HOST + np.cumsum(np.concatenate(change)[order])
    last = place != np.append(place[1:], -1)
    end = np.where(last, until[place], np.append(at[1:], 0))
    queued = np.where(releases.submitted_ns[node] >= 0, _LAUNCH, _UNATTRIBUTED)
    queued[releases.held[node]] = _SYNC
    of_work = np.where(at < late[place], queued[place], _UNATTRIBUTED)
    cause = np.where(at < submitted[place], of_host, of_work)
    some = end > at
    at, end, place, cause = at[some], end[some], place[some], cause[some]
    opens = np.flatnonzero((np.diff(place, prepend=-1) != 0) | (np.diff(cause, prepend=-1) != 0))
    ends = np.append(opens[1:], place.size) - 1 if place.size else opens
    return IdleIntervals(node[place[opens]], cause[opens], at[opens], end[ends])
