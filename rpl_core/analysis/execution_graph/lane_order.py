"""Nodes by lane in order of submission, and who was submitted to a lane last before or first after a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.analysis.critical_path.segmented import running_max

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.analysis.execution_graph.submission import Submissions

    Int64Column = NDArray[np.int64]

__all__ = ["LaneOrder", "order_lanes"]

_UINT16_VALUES = 65536


@attrs.frozen(eq=False)
class LaneOrder:
    """``node[i]`` in the order of (lane, submission, begin); ``rank`` is the inverse, per node.

    ``in_start_order`` has the nodes by (lane, begin). ``last_to_end[i]``: the node that ends last among the
    lane's nodes up to i, which is ``node[i]`` unless nodes of the lane overlap. ``disagreements``:
    neighbours that began in another order than they were submitted. ``key`` ascends: lane times ``span`` plus
    place of submission plus 1.
    """

    node: Int64Column
    in_start_order: Int64Column
    rank: Int64Column
    key: Int64Column
    span: int
    last_to_end: Int64Column
    disagreements: int

    def last_before(self, lane: NDArray[np.integer], place: Int64Column) -> Int64Column:
        """The node that ends last among those submitted to each lane before ``place``; -1 for none.

        Shape (q,); a lane of -1 gives -1.
        """
        key = lane * np.int64(self.span) + np.clip(place + 1, 0, self.span - 1)
        found = np.searchsorted(self.key, key, side="left") - 1
        return self._checked(self.last_to_end, found, lane)

    def first_after(self, lane: NDArray[np.integer], place: Int64Column) -> Int64Column:
        """The first node submitted to each lane after ``place``; -1 for none."""
        key = lane * np.int64(self.span) + np.clip(place + 1, 0, self.span - 1)
        return self._checked(self.node, np.searchsorted(self.key, key, side="right"), lane)

    def _checked(self, nodes: Int64Column, index: Int64Column, lane: NDArray[np.integer]) -> Int64Column:
        inside = (index >= 0) & (index < nodes.size) & (lane >= 0)
        index = np.where(inside, index, 0)
        if nodes.size:
            inside &= self.key[index] // self.span == lane
            return np.where(inside, nodes[index], -1)
        return np.full(index.size, -1, dtype=np.int64)


def order_lanes(
    lane: NDArray[np.int32], lanes: int, end_ns: Int64Column, submissions: Submissions
) -> LaneOrder:
    """Order the nodes of every lane, numbered below ``lanes``; nodes ascend by begin.

    A node of unknown submission follows its predecessor in time.
    """
    narrow = lane.astype(np.uint16) if lanes < _UINT16_VALUES else lane
    # Stable, so that this is start order inside a lane. numpy sorts 16 bits by radix.
    in_start_order = node = np.argsort(narrow, kind="stable") if lanes > 1 else np.arange(lane.size)
    lane_at = lane[node].astype(np.int64)
    span = int(submissions.place.max(initial=-1)) + 3
    place = submissions.place[node] + 1
    if bool((place == 0).any()):
        place = running_max(place, lane_at)
    key = lane_at * span + place
    descents = int((key[1:] < key[:-1]).sum())
    if descents:
        order = np.argsort(key, kind="stable")
        node, key, lane_at = node[order], key[order], lane_at[order]
    rank = node
    if lanes > 1 or descents:
        rank = np.empty_like(node)
        rank[node] = np.arange(node.size)
    return LaneOrder(
        node=node,
        in_start_order=in_start_order,
        rank=rank,
        key=key,
        span=span,
        last_to_end=_last_to_end(node, end_ns[node], lane_at),
        disagreements=descents,
    )


def _last_to_end(node: Int64Column, end_ns: Int64Column, lane: Int64Column) -> Int64Column:
    if bool(((end_ns[1:] >= end_ns[:-1]) | (lane[1:] != lane[:-1])).all()):
        return node
    # Ends relative to the first one stay small enough for the running maximum's keys.
    reached = running_max(end_ns - end_ns.min(), lane) + end_ns.min()
    is_last = end_ns >= reached
    return node[np.maximum.accumulate(np.where(is_last, np.arange(node.size), 0))]
