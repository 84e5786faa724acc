"""The graph with chains contracted: breakpoints where an edge enters a segment, in an order to solve them.

Between breakpoints a longest path is a prefix sum, so only breakpoints need sequential work. A breakpoint is
the first node of a segment (a run of linked positions) or the target of an edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.topology import order_breakpoints

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

__all__ = ["Contraction", "contract"]


@attrs.frozen(eq=False, kw_only=True)
class Contraction:
    """Breakpoints ascending by position; edges ordered so that each one's source is final when it is used.

    ``size`` of the graph, ``breakpoint`` positions, ``segment`` of each, ``previous``: the breakpoint before
    it in its segment or itself. Per edge: ``edge`` (index into the edges given), ``source_position``,
    ``target_position``, and the breakpoints ``source`` (the one that governs the source) and ``target``.
    """

    size: int
    segment_start: IntArray
    breakpoint: IntArray
    segment: IntArray
    previous: IntArray
    edge: IntArray
    source_position: IntArray
    target_position: IntArray
    source: IntArray
    target: IntArray

    @property
    def last_of_segment(self) -> IntArray:
        """The last breakpoint of each segment."""
        return np.searchsorted(self.segment, np.arange(self.segment_start.size), side="right") - 1

    @property
    def segment_end(self) -> IntArray:
        """The last position of each segment."""
        return np.append(self.segment_start[1:], self.size)[: self.segment_start.size] - 1


def contract(
    size: int,
    segment_start: IntArray,
    source_position: IntArray,
    target_position: IntArray,
    times_at: Callable[[IntArray], tuple[IntArray, IntArray]],
) -> tuple[Contraction, IntArray]:
    """Contract segments that begin at ``segment_start``, and name the edges that could not be kept.

    ``size``: positions of the graph. ``times_at`` gives two sort keys of positions that never descend along a
    link or an edge. Second result: numbers of the edges that close cycles among nodes of equal times; solve
    only once there are none.
    """
    breakpoint_ = _sorted_union(segment_start, target_position)
    segment = np.searchsorted(segment_start, breakpoint_, side="right") - 1
    previous = np.arange(breakpoint_.size) - (breakpoint_ != segment_start[segment])
    source = np.searchsorted(breakpoint_, source_position, side="right") - 1
    target = np.searchsorted(breakpoint_, target_position)
    edge, cyclic = order_breakpoints(previous, source, target, times_at(breakpoint_))
    contraction = Contraction(
        size=size,
        segment_start=segment_start,
        breakpoint=breakpoint_,
        segment=segment,
        previous=previous,
        edge=edge,
        source_position=source_position[edge],
        target_position=target_position[edge],
        source=source[edge],
        target=target[edge],
    )
    return contraction, cyclic


def _sorted_union(first: IntArray, second: IntArray) -> IntArray:
    # np.union1d hashes first, which is 15 times slower on positions.
    merged = np.sort(np.concatenate([first, second]))
    distinct = np.ones(merged.size, dtype=np.bool_)
    np.not_equal(merged[1:], merged[:-1], out=distinct[1:])
    return merged[distinct]
