"""The critical path as runs of consecutive lane members, and paths almost as long; both bounded in number.

A path almost as long is the longest one through a symbol that lies beside the critical path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.contracts.dag import NearPathPart, PathSegment, PathSharePart
from rpl_analysis.critical_path.model import PATH_BEGIN
from rpl_analysis.critical_path.path import trace_path
from rpl_analysis.critical_path.symbols import sum_by
from rpl_analysis.execution_graph.graph import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.execution_graph.results.domain import SolvedDomain
    from rpl_core.model.trace import Queue, Stream, Trace

__all__ = ["find_near_paths", "path_segments"]

#: Paths that are reported, and symbols named on each (chosen).
MOST_PATHS = 5
_MOST_SHARES = 3

#: Longer paths keep their longest segments only: dag.json must not grow with the trace (chosen).
MAX_SEGMENTS = 1000


def path_segments(trace: Trace, solved: SolvedDomain) -> tuple[tuple[PathSegment, ...], int]:
    """The segments in time order and how many shorter ones were left out."""
    path, domain = solved.path, solved.domain
    starts = path.run_start
    ends = np.append(starts[1:], path.rows.size)
    totals = np.concatenate([[0], np.cumsum(domain.end_ns[path.rows] - domain.begin_ns[path.rows])])
    busy = totals[ends] - totals[starts]
    # Runs along a host thread hold no work.
    kept = np.flatnonzero(path.rows[starts] < len(domain.work)) if starts.size else starts
    total = kept.size
    if kept.size > MAX_SEGMENTS:
        kept = np.sort(kept[np.argsort(-busy[kept], kind="stable")[:MAX_SEGMENTS]])
    segments = tuple(_segment(trace, solved, i, int(ends[i]), int(busy[i])) for i in kept.tolist())
    return segments, int(total - kept.size)


def _segment(trace: Trace, solved: SolvedDomain, run: int, end: int, busy_ns: int) -> PathSegment:
    path, work = solved.path, solved.domain.work
    rows = path.rows[path.run_start[run] : end]
    first = int(rows[0])
    dispatches = rows[~work.is_copy[rows]]
    ids = trace.dispatches.dispatch_id[work.row[dispatches]]
    lanes, lane = work.lanes, int(work.lane[first])
    return PathSegment(
        process=trace.processes[int(work.process[first])].pid,
        agent=_agent(trace, int(work.agent[first])),
        stream=_lane_id(trace.streams, int(lanes.stream[lane])),
        queue=_lane_id(trace.queues, int(lanes.queue[lane])),
        first_dispatch=int(ids[0]) if ids.size else None,
        last_dispatch=int(ids[-1]) if ids.size else None,
        nodes=int(rows.size),
        busy_ns=busy_ns,
        entered_by=_entered_by(solved, int(path.entered_by[run])),
    )


def _entered_by(solved: SolvedDomain, edge: int) -> str | None:
    if edge == PATH_BEGIN:
        return None
    kind = EdgeKind(solved.edges.kind[edge]) if edge >= 0 else EdgeKind.STREAM
    return kind.name.lower()


def _agent(trace: Trace, index: int) -> int | None:
    return trace.agents[index].index if 0 <= index < len(trace.agents) else None


def _lane_id(lanes: Sequence[Stream] | Sequence[Queue], index: int) -> int | None:
    return lanes[index].id if 0 <= index < len(lanes) else None


def find_near_paths(solved: SolvedDomain) -> tuple[NearPathPart, ...]:
    """For the symbols with the least slack above zero, longest first."""
    sums = solved.sums
    names = solved.domain.work.symbol_names
    beside = np.flatnonzero(sums.min_slack_ns > 0)
    order = sorted(beside.tolist(), key=lambda i: (int(sums.min_slack_ns[i]), names[sums.symbol[i]]))
    return tuple(_through(solved, int(sums.symbol[i])) for i in order[:MOST_PATHS])


def _through(solved: SolvedDomain, symbol: int) -> NearPathPart:
    graph, slack = solved.graph, solved.slack_ns
    own = np.flatnonzero(solved.domain.symbol == symbol)
    node = int(own[np.argmin(slack[own])])
    # A node that alone outweighs every path is on the longest one; its own weight is then taken off again.
    total = solved.weights.total_ns.copy()
    total[graph.order == node] += solved.path.critical_path_ns + 1
    path = trace_path(graph, attrs.evolve(solved.weights, total_ns=total, recorded=False))
    of_path = solved.domain.symbol[path.rows]
    counted = of_path >= 0
    execution = graph.to_rows(solved.weights.execution_ns)[path.rows]
    spent = sum_by(of_path[counted], execution[counted], len(solved.domain.work.symbol_names))
    names = solved.domain.work.symbol_names
    leading = sorted(np.flatnonzero(spent).tolist(), key=lambda i: (-int(spent[i]), names[i]))[:_MOST_SHARES]
    return NearPathPart(
        through=names[symbol],
        length_ns=solved.path.critical_path_ns - int(slack[node]),
        slack_ns=int(slack[node]),
        shares=tuple(PathSharePart(names[i], int(spent[i])) for i in leading),
    )
