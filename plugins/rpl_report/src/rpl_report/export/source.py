"""What is exported: the timing run that the documents speak of, its work as tracks for viewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_report.timeline.lanes import identify_lane, split_overlaps
from rpl_report.timeline.work import timed_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from rpl_core.model.architecture import Architecture
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Float64Column
    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]


@frozen(eq=False)
class ExportedRun:
    """A timing run with path and slack, the recording that it is from, and what is known of its GPU."""

    work: TimedWork
    recording: Recording
    architecture: Architecture | None = None

    def counters(self) -> Mapping[str, Float64Column]:
        """Values of the counter passes per dispatch of the timing run, NaN where none was read."""
        from rpl_analysis.counters.join import counters_by_dispatch

        return counters_by_dispatch(self.recording, self.work.trace, self.architecture)


def exported_run(recording: Recording, architecture: Callable[[str], Architecture | None]) -> ExportedRun:
    """Dispatches and copies with path and slack. Raises ``BadDataError`` if nothing was timed."""
    chosen = median_run(recording)
    work = timed_work(chosen[1], with_idle=True) if chosen else None
    if work is None:
        raise BadDataError(
            f"there is nothing to export: {why_no_graph(recording)}",
            next_step="record a kernel trace without counters",
        )
    recorded = {agent.architecture for agent in recording.gpu_agents if agent.architecture}
    return ExportedRun(work, recording, architecture(recorded.pop()) if len(recorded) == 1 else None)


# Viewers draw an interval inside another one as its callee; kernels that run at once are none of each
# other's, so a lane whose nodes overlap gets more than one track.


@frozen(eq=False)
class WorkTrack:
    """``rows`` of work nodes, ascending by begin, without overlap. ``process`` indexes the trace's."""

    label: str
    process: int
    rows: Int64Column


def work_tracks(work: TimedWork) -> list[WorkTrack]:
    """All nodes, by lane."""
    nodes = work.nodes
    by_lane = np.argsort(nodes.lane, kind="stable")
    bounds = np.searchsorted(nodes.lane[by_lane], np.arange(len(nodes.lanes) + 1))
    tracks = []
    for lane in range(len(nodes.lanes)):
        rows = by_lane[bounds[lane] : bounds[lane + 1]]
        identity = identify_lane(work, lane)
        for number, part in enumerate(split_overlaps(nodes.begin_ns[rows], nodes.end_ns[rows])):
            label = identity.label() if number == 0 else f"{identity.label()} (overlapping {number})"
            tracks.append(WorkTrack(label, identity.process, rows[part]))
    return tracks


def path_intervals(work: TimedWork) -> tuple[Int64Column, Int64Column]:
    """Begin and end of the path's nodes, in the order of ``work.path_rows``, as recorded but for overlap.

    Neighbours may overlap by the tolerance of the clock; the earlier one is cut there.
    """
    nodes, rows = work.nodes, work.path_rows
    begin = np.maximum.accumulate(nodes.begin_ns[rows]) if rows.size else nodes.begin_ns[rows]
    end = np.maximum(nodes.end_ns[rows], begin)
    end[:-1] = np.minimum(end[:-1], begin[1:])
    return begin, end
