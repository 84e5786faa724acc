"""The graph with chains contracted: breakpoints where an edge enters a segment, in an order to solve them.

Between breakpoints a longest path is a prefix sum, so only breakpoints need sequential work. A breakpoint is
the first node of a segment (a run of linked positions) or the target of an edge. Edges are processed by time,
and by counting where times tie: zero-duration nodes at one instant may depend on each other in any direction.
Their cycles (possible only there) are cut the same way for every row order of the input.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.segmented import running_max
from rpl_core.model.trace import distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]

__all__ = ["Contraction", "Sweeps", "contract"]

#: Edges on any path up to which sweeps over all of them beat a step per edge (measured).
_MOST_SWEEPS = 2
#: So many of the first edges tell of most graphs that their paths take more (chosen).
_FIRST_EDGES = 2**14


@frozen(eq=False, kw_only=True)
class Contraction:
    """Breakpoints ascending by position; edges ordered so that each one's source is final when it is used.

    ``size`` of the graph, ``breakpoint`` positions, ``segment`` of each, ``previous``: the breakpoint before
    it in its segment or itself. Per edge: ``edge`` (index into the edges given), ``source_position``,
    ``target_position``, and the breakpoints ``source`` (the one that governs the source), ``target`` and
    ``carried``: the one before the target, or the target itself once an edge has entered it. Edges into one
    target follow each other, so that an offset is the larger of what comes along the edge and of ``carried``.
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
    carried: IntArray
    sweeps: Sweeps | None

    @property
    def last_of_segment(self) -> IntArray:
        """The last breakpoint of each segment."""
        return np.searchsorted(self.segment, np.arange(self.segment_start.size), side="right") - 1

    @property
    def segment_end(self) -> IntArray:
        """The last position of each segment."""
        return np.append(self.segment_start[1:], self.size)[: self.segment_start.size] - 1


@frozen(eq=False, kw_only=True)
class Sweeps:
    """Offsets by array operations, for a graph in which no path takes more than ``count`` edges.

    A sweep takes every edge once and carries what it brings along the segments; so many settle all offsets.
    ``edge`` are the ordered edges by target, ``source`` their breakpoints; ``first`` is where the edges into
    each of the breakpoints ``entered`` begin, ``first_into`` where those into each of the segments ``into``.
    """

    count: int
    segment: IntArray
    edge: IntArray
    source: IntArray
    first: IntArray
    entered: IntArray
    first_into: IntArray
    into: IntArray

    def offsets(self, gain: IntArray) -> IntArray:
        """Offset per breakpoint; ``gain`` is per ordered edge."""
        return self.carry(self._last_brought(gain[self.edge]))

    def at_ends(self, by_target: IntArray) -> IntArray:
        """Of these the one at the end of each segment, which costs a part of all; gains by target."""
        offset = np.zeros(int(self.segment[-1]) + 1, dtype=np.int64)
        if self.into.size:
            offset[self.into] = np.maximum.reduceat(self._last_brought(by_target), self.first_into)
        return np.maximum(offset, 0, out=offset)

    def _last_brought(self, by_target: IntArray) -> IntArray:
        """What each edge by target brings in the last sweep."""
        brought = by_target
        for _ in range(1, self.count):
            brought = self.carry(brought)[self.source] + by_target
        return brought

    def carry(self, brought: IntArray) -> IntArray:
        """Per breakpoint the most that edges into it or before it in its segment bring, 0 at least."""
        if self.first.size < brought.size:
            brought = np.maximum.reduceat(brought, self.first)
        offset = np.zeros(self.segment.size, dtype=np.int64)
        offset[self.entered] = np.maximum(brought, 0)
        return running_max(offset, self.segment)


def _shallow(segment: IntArray, source: IntArray, target: IntArray) -> Sweeps | None:
    """The sweeps over ordered edges between breakpoints; None where it takes too many."""
    if target.size > _FIRST_EDGES:
        early = slice(_FIRST_EDGES)
        some = _sorted_union(source[early], target[early])
        if _shallow(segment[some], *(np.searchsorted(some, end[early]) for end in (source, target))) is None:
            return None
    edge = np.argsort(target, kind="stable")
    ordered = target[edge]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    first_into = np.flatnonzero(np.diff(segment[ordered], prepend=-1))
    sweeps = Sweeps(
        count=1,
        segment=segment,
        edge=edge,
        source=source[edge],
        first=first,
        entered=ordered[first],
        first_into=first_into,
        into=segment[ordered[first_into]],
    )
    taken = np.zeros(segment.size, dtype=np.int64)
    for count in range(_MOST_SWEEPS + 1):
        through = sweeps.carry(taken[sweeps.source] + 1)
        if np.array_equal(through, taken):
            return attrs.evolve(sweeps, count=count)
        taken = through
    return None


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
    edge, cyclic = _order_breakpoints(previous, source, target, times_at(breakpoint_))
    target = target[edge]
    again = np.flatnonzero(target[1:] == target[:-1]) + 1
    carried = previous[target]
    carried[again] = target[again]
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
        target=target,
        carried=carried,
        sweeps=_shallow(segment, source[edge], target),
    )
    return contraction, cyclic


def _sorted_union(first: IntArray, second: IntArray) -> IntArray:
    # np.union1d hashes first, which is 15 times slower on positions.
    return distinct_values(np.concatenate([first, second]))


def _order_breakpoints(
    previous: IntArray, source: IntArray, target: IntArray, times: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """Edge numbers so that all edges into a breakpoint come before all edges out of it or what follows it.

    ``previous[b]`` is the breakpoint that b continues, or b itself. ``times`` never descend along an edge.
    Second result: edges that close cycles, left out of the first.
    """
    time_rank = _ranks(np.lexsort((times[1], times[0])))
    against_time = time_rank[source] >= time_rank[target]
    if not against_time.any():
        return np.argsort(time_rank[target], kind="stable"), np.zeros(0, dtype=np.int64)
    rank, unordered = _rank_by_counting(previous, source, target)
    # What counting left over sits on or behind a cycle: cut it at the edges that time order refuses.
    cyclic = unordered[target] & unordered[source] & against_time
    rank = np.where(unordered, previous.size + time_rank, rank)
    order = np.argsort(rank[target], kind="stable")
    return order[~cyclic[order]], np.flatnonzero(cyclic)


def _ranks(order: IntArray) -> IntArray:
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank


def _rank_by_counting(
    previous: IntArray, source: IntArray, target: IntArray
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Kahn's algorithm: ranks of the breakpoints it reaches, and a mask of those it does not."""
    continued = np.flatnonzero(previous != np.arange(previous.size))
    tail = np.concatenate([source, previous[continued]])
    head = np.concatenate([target, continued])
    by_tail = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[by_tail], np.arange(previous.size + 1)).tolist()
    heads = head[by_tail].tolist()
    waiting = np.bincount(head, minlength=previous.size).tolist()
    ready = deque(node for node, count in enumerate(waiting) if count == 0)
    rank = np.zeros(previous.size, dtype=np.int64)
    unordered = np.ones(previous.size, dtype=np.bool_)
    done = 0
    while ready:
        node = ready.popleft()
        rank[node], unordered[node] = done, False
        done += 1
        for follower in heads[first[node] : first[node + 1]]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    return rank, unordered
