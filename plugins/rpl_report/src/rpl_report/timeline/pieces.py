"""What is visible of each node in its lane: overlapping nodes of one lane share the time without overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.segmented import running_max
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["LanePieces", "lane_pieces"]


@frozen(eq=False, kw_only=True)
class LanePieces:
    """Disjoint intervals by (lane, begin), one for each node that is not hidden behind earlier ones.

    ``lane`` is the place among the shown lanes, ``row`` the node.
    """

    lane: Int64Column
    row: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column

    def pick(self, which: NDArray[np.bool_]) -> LanePieces:
        """The pieces that a mask selects."""
        return LanePieces(
            lane=self.lane[which],
            row=self.row[which],
            begin_ns=self.begin_ns[which],
            end_ns=self.end_ns[which],
        )

    def extent(self, lanes: int) -> tuple[Int64Column, Int64Column]:
        """First begin and last end per lane, 0 where a lane shows nothing."""
        first, last = np.zeros(lanes, dtype=np.int64), np.zeros(lanes, dtype=np.int64)
        first[self.lane[::-1]] = self.begin_ns[::-1]
        last[self.lane] = self.end_ns
        return first, last


def lane_pieces(work: TimedWork, place: Int64Column) -> LanePieces:
    """The pieces of all lanes whose ``place`` is not negative. Nodes without duration have none."""
    nodes = work.nodes
    lane = place[nodes.lane]
    rows = np.argsort(lane, kind="stable")
    rows = rows[lane[rows] >= 0]
    lane = lane[rows]
    begin = work.begin_ns()[rows]
    end = begin + nodes.duration_ns()[rows]
    reached = np.zeros_like(end)
    if rows.size:
        reached[1:] = running_max(end, lane)[:-1]
        reached[1:][lane[1:] != lane[:-1]] = 0
    begin = np.maximum(begin, reached)
    pieces = LanePieces(lane=lane, row=rows, begin_ns=begin, end_ns=end)
    return pieces.pick(begin < end)
