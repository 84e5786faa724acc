"""Work nodes as tracks for viewers: one per lane, more where nodes of a lane overlap.

Viewers draw an interval inside another one as its callee; kernels that run at once are none of each other's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen
from rpl_report.timeline.lanes import identify_lane
from rpl_report.timeline.range_lanes import split_overlaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["WorkTrack", "path_intervals", "work_tracks"]


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
