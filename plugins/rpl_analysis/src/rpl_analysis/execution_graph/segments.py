"""The critical path as runs of consecutive lane members, bounded in number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.model import PATH_BEGIN
from rpl_analysis.execution_graph.edge_table import EdgeKind
from rpl_analysis.execution_graph.model import GraphSegment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.execution_graph.domain import SolvedDomain
    from rpl_core.model.trace import Queue, Stream, Trace

__all__ = ["path_segments"]

#: Longer paths keep their longest segments only: dag.json must not grow with the trace (chosen).
MAX_SEGMENTS = 1000


def path_segments(trace: Trace, solved: SolvedDomain) -> tuple[tuple[GraphSegment, ...], int]:
    """The segments in time order and how many shorter ones were left out."""
    path, domain = solved.path, solved.domain
    starts = path.run_start
    ends = np.append(starts[1:], path.rows.size)
    totals = np.concatenate([[0], np.cumsum(domain.end_ns[path.rows] - domain.begin_ns[path.rows])])
    busy = totals[ends] - totals[starts]
    # Runs along a host thread hold no work.
    kept = np.flatnonzero(path.rows[starts] < len(domain.work)) if starts.size else starts
    found = kept.size
    if kept.size > MAX_SEGMENTS:
        kept = np.sort(kept[np.argsort(-busy[kept], kind="stable")[:MAX_SEGMENTS]])
    segments = tuple(_segment(trace, solved, i, int(ends[i]), int(busy[i])) for i in kept.tolist())
    return segments, int(found - kept.size)


def _segment(trace: Trace, solved: SolvedDomain, run: int, end: int, busy_ns: int) -> GraphSegment:
    path, work = solved.path, solved.domain.work
    rows = path.rows[path.run_start[run] : end]
    first = int(rows[0])
    dispatches = rows[~work.is_copy[rows]]
    ids = trace.dispatches.dispatch_id[work.row[dispatches]]
    lanes, lane = work.lanes, int(work.lane[first])
    return GraphSegment(
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
