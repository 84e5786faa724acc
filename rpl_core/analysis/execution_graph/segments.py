"""The critical path as runs of consecutive chain members, bounded in number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.analysis.execution_graph.model import GraphSegment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.analysis.critical_path.model import CriticalPath
    from rpl_core.analysis.execution_graph.nodes import WorkNodes
    from rpl_core.model.trace import Queue, Stream, Trace

#: Longer paths keep their longest segments only: dag.json must not grow with the trace (chosen).
MAX_SEGMENTS = 1000


def path_segments(trace: Trace, work: WorkNodes, path: CriticalPath) -> tuple[tuple[GraphSegment, ...], int]:
    """The segments in time order and how many shorter ones were left out."""
    starts = path.run_start
    ends = np.append(starts[1:], path.rows.size)
    durations = work.end_ns[path.rows] - work.begin_ns[path.rows]
    totals = np.concatenate([[0], np.cumsum(durations)])
    busy = totals[ends] - totals[starts]
    kept = np.arange(starts.size)
    if starts.size > MAX_SEGMENTS:
        kept = np.sort(np.argsort(-busy, kind="stable")[:MAX_SEGMENTS])
    segments = tuple(_segment(trace, work, path, int(starts[i]), int(ends[i]), int(busy[i])) for i in kept)
    return segments, int(starts.size - kept.size)


def _segment(
    trace: Trace, work: WorkNodes, path: CriticalPath, start: int, end: int, busy_ns: int
) -> GraphSegment:
    rows = path.rows[start:end]
    first = int(rows[0])
    dispatches = rows[~work.is_copy[rows]]
    ids = trace.dispatches.dispatch_id[work.row[dispatches]]
    lane = int(work.lane[first])
    return GraphSegment(
        process=trace.processes[int(work.process[first])].pid,
        agent=_agent(trace, int(work.agent[first])),
        stream=None if work.by_queue else _lane_id(trace.streams, lane),
        queue=_lane_id(trace.queues, lane) if work.by_queue else None,
        first_dispatch=int(ids[0]) if ids.size else None,
        last_dispatch=int(ids[-1]) if ids.size else None,
        nodes=int(rows.size),
        busy_ns=busy_ns,
    )


def _agent(trace: Trace, index: int) -> int | None:
    return trace.agents[index].index if 0 <= index < len(trace.agents) else None


def _lane_id(lanes: Sequence[Stream] | Sequence[Queue], index: int) -> int | None:
    return lanes[index].id if 0 <= index < len(lanes) else None
