"""Nodes by lane in order of submission, and who was submitted to a lane last before or first after a call."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.segmented import running_max
from rpl_analysis.execution_graph.graph.numbering import BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.host_program.submission import Submissions

    Int64Column = NDArray[np.int64]

__all__ = ["LaneOrder", "order_lanes"]

_UINT16_VALUES = 65536


@attrs.frozen(eq=False, slots=False, kw_only=True)
class LaneOrder:
    """``node[i]`` in the order of (lane, submission, begin); ``in_start_order`` by (lane, begin).

    ``disagreements``: neighbours that began in another order than they were submitted. ``lane``, ``place``
    (of submission) and ``end_ns`` are per node. What only look-ups need is made when it is asked for.
    """

    node: Int64Column
    in_start_order: Int64Column
    lane: NDArray[np.int32]
    place: Int64Column
    end_ns: Int64Column
    span: int
    disagreements: int

    @cached_property
    def key(self) -> Int64Column:
        """Lane times ``span`` plus place of submission plus 1, which ascends along ``node``."""
        key: Int64Column = self.lane[self.node].astype(np.int64)
        key *= self.span
        key += self.place[self.node]
        key += 1
        return key

    @cached_property
    def rank(self) -> Int64Column:
        """Index of each node in ``node``."""
        rank = np.empty_like(self.node)
        rank[self.node] = np.arange(self.node.size)
        return rank

    @cached_property
    def last_to_end(self) -> Int64Column:
        """Entry i is the node that ends last among the lane's nodes up to i.

        That is ``node[i]`` unless nodes of the lane overlap.
        """
        return _last_to_end(self.node, self.end_ns[self.node], self.lane[self.node])

    def last_before(self, lane: NDArray[np.integer], place: Int64Column) -> Int64Column:
        """The node that ends last among those submitted to each lane before ``place``; -1 for none.

        Shape (q,); a lane of -1 gives -1.
        """
        key = lane * np.int64(self.span) + np.clip(place + 1, 0, self.span - 1)
        index = np.searchsorted(self.key, key, side="left") - 1
        return self._checked(self.last_to_end, index, lane)

    def first_after(self, lane: NDArray[np.integer], place: Int64Column) -> Int64Column:
        """The first node submitted to each lane after ``place``; -1 for none."""
        key = lane * np.int64(self.span) + np.clip(place + 1, 0, self.span - 1)
        return self._checked(self.node, np.searchsorted(self.key, key, side="right"), lane)

    def before(self, node: Int64Column) -> Int64Column:
        """The node that ends last among those submitted to the lane of each node before it; -1 for none."""
        return self._checked(self.last_to_end, self.rank[node] - 1, self.lane[node])

    def behind(self, node: Int64Column) -> Int64Column:
        """The next node submitted to the lane of each node; -1 for none."""
        return self._checked(self.node, self.rank[node] + 1, self.lane[node])

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
    if lanes > 1:
        narrow = lane.astype(np.uint16) if lanes < _UINT16_VALUES else lane
        # Stable, so that this is start order inside a lane. numpy sorts 16 bits by radix.
        node = np.argsort(narrow, kind="stable")
    else:
        node = np.arange(lane.size)
    place = submissions.place
    if int(place.min(initial=0)) < 0:
        filled = running_max(place[node] + 1, lane[node].astype(np.int64))
        place = np.empty_like(filled)
        place[node] = filled - 1
    order = LaneOrder(
        node=node,
        in_start_order=node,
        lane=lane,
        place=place,
        end_ns=end_ns,
        span=int(submissions.place.max(initial=-1)) + 3,
        disagreements=_descents(node, lane, place),
    )
    if not order.disagreements:
        return order
    return attrs.evolve(order, node=node[np.argsort(order.key, kind="stable")])


def _descents(node: Int64Column, lane: NDArray[np.int32], place: Int64Column) -> int:
    """Neighbours in a lane of which the later one to begin was submitted earlier."""
    descents = 0
    for first in range(1, node.size, BLOCK):
        own, before = node[first : first + BLOCK], node[first - 1 : first + BLOCK - 1][: node.size - first]
        descends = place[own] < place[before]
        if descends.any():
            descents += int((descends & (lane[own] == lane[before])).sum())
    return descents


def _last_to_end(node: Int64Column, end_ns: Int64Column, lane: NDArray[np.int32]) -> Int64Column:
    if bool(((end_ns[1:] >= end_ns[:-1]) | (lane[1:] != lane[:-1])).all()):
        return node
    # Ends relative to the first one stay small enough for the running maximum's keys.
    reached = running_max(end_ns - end_ns.min(), lane) + end_ns.min()
    is_last = end_ns >= reached
    return node[np.maximum.accumulate(np.where(is_last, np.arange(node.size), 0))]
