"""Where the critical path goes from one lane to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.interfaces.timeline import PathLinks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_report.timeline.lanes import LaneChoice
    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["MOST_LINKS", "path_links"]

#: Further changes of lane are not drawn (chosen for the size of the page: 20 bytes each).
MOST_LINKS = 6_000


def path_links(work: TimedWork, lanes: LaneChoice) -> tuple[PathLinks, Int64Column]:
    """The links between shown lanes, and the nodes at their ends. Too many keep those between long runs."""
    rows, nodes = work.path_rows, work.nodes
    lane = lanes.place[nodes.lane[rows]]
    change = np.flatnonzero((lane[1:] != lane[:-1]) & (lane[1:] >= 0) & (lane[:-1] >= 0))
    found = change.size
    if found > MOST_LINKS:
        change = np.sort(change[np.argsort(-_shorter_run(change, rows.size), kind="stable")[:MOST_LINKS]])
    begin = work.begin_ns()
    source, target = rows[change], rows[change + 1]
    links = PathLinks(
        source_lane=lane[change].astype(np.uint16),
        target_lane=lane[change + 1].astype(np.uint16),
        source_end_ns=begin[source] + nodes.duration_ns()[source],
        target_begin_ns=begin[target],
        left_out=int(found - change.size),
    )
    return links, np.concatenate([source, target])


def _shorter_run(change: Int64Column, length: int) -> Int64Column:
    """Nodes of the shorter one of the two runs that each change lies between."""
    bounds = np.concatenate([[-1], change, [length - 1]])
    runs = np.diff(bounds)
    return np.minimum(runs[:-1], runs[1:])
