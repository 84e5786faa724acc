"""Edges between chains: which are admitted, how the clock tolerance is paid for, which are implied anyway.

An end-to-start edge u -> v needs ``end[u] <= begin[v] + tolerance``. Where it holds by the tolerance only,
the overlapped part of v is clipped away, so that every path stays a set of disjoint intervals and no path
can be longer than the makespan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.segmented import carried_max
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.chains import ChainLayout

    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]

__all__ = ["PositionEdges", "SettledTimes", "drop_implied", "settle"]

#: Clipping can push on along edges inside one tolerance window; edges that still clash after this many
#: rounds are dropped. Recorded clocks need one.
_MOST_ROUNDS = 8
#: Keys of pairs of segments and a target must stay inside int64.
_MOST_KEYS = 2**62
_MOST_UINT16 = 0xFFFF


@frozen(eq=False, kw_only=True)
class PositionEdges:
    """Edges between positions; ``origin`` is the caller's edge number, negative for edges made here."""

    source: IntArray
    target: IntArray
    lag_ns: IntArray
    origin: IntArray

    @property
    def size(self) -> int:
        """Number of edges."""
        return int(self.source.size)

    def pick(self, which: BoolArray | IntArray) -> PositionEdges:
        """The edges that a mask or an index array selects, in its order."""
        return PositionEdges(
            source=self.source[which],
            target=self.target[which],
            lag_ns=self.lag_ns[which],
            origin=self.origin[which],
        )


@frozen(eq=False, kw_only=True)
class SettledTimes:
    """Clipped times on which every link and every kept edge runs forward, and the edges kept."""

    begin_ns: IntArray
    end_ns: IntArray
    edges: PositionEdges
    inconsistent_edges: int


def settle(
    layout: ChainLayout, recorded_begin_ns: IntArray, edges: PositionEdges, tolerance_ns: int
) -> SettledTimes:
    """Admit edges and clip times until nothing begins before what it depends on has ended."""
    begin, end = layout.begin_ns, layout.end_ns
    latest_begin = recorded_begin_ns[edges.target] + tolerance_ns
    kept = (edges.source != edges.target) & (end[edges.source] <= latest_begin)
    for _ in range(_MOST_ROUNDS):
        late = kept & (end[edges.source] > begin[edges.target])
        if not late.any():
            break
        begin = begin.copy()
        np.maximum.at(begin, edges.target[late], end[edges.source[late]])
        end = np.maximum(end, begin)
        np.maximum(begin, carried_max(end, ~layout.linked), out=begin)
        np.maximum(end, begin, out=end)
        kept &= end[edges.source] <= latest_begin
    kept &= end[edges.source] <= begin[edges.target]
    return SettledTimes(
        begin_ns=begin, end_ns=end, edges=edges.pick(kept), inconsistent_edges=int(kept.size - kept.sum())
    )


def _by_target(edges: PositionEdges, pair: IntArray) -> IntArray:
    """Edges by pair of segments, then target; of equal ones the latest source and the longest lag first."""
    if int(pair.max(initial=0)) <= _MOST_UINT16:
        # As a rule edges come by target within a segment: so few bits are sorted by counting, in their order.
        order = np.argsort(pair.astype(np.uint16), kind="stable")
        target, of_pair = edges.target[order], pair[order]
        if bool(((target[1:] > target[:-1]) | (of_pair[1:] > of_pair[:-1])).all()):
            return order
    positions = int(edges.target.max(initial=0)) + 1
    if int(pair.max(initial=0)) * positions < _MOST_KEYS:
        # As a rule no two edges share pair and target: one key then tells, and needs no stable sort.
        key = pair * positions + edges.target
        order = np.argsort(key)
        key = key[order]
        if bool((key[1:] > key[:-1]).all()):
            return order
    return np.lexsort((-edges.lag_ns, -edges.source, edges.target, pair))


def drop_implied(edges: PositionEdges, segment_start: IntArray) -> PositionEdges:
    """Without the edges that add nothing: a later wait on the same segment never needs an older source.

    An edge is implied if its target's segment has, at or before the target, waited for the same or a later
    node of the source's segment (the vector-clock test), or if it runs forward inside one segment. Edges
    with a lag of their own stay.
    """
    from_segment = np.searchsorted(segment_start, edges.source, side="right") - 1
    to_segment = np.searchsorted(segment_start, edges.target, side="right") - 1
    pair = to_segment * segment_start.size + from_segment
    order = _by_target(edges, pair)
    source, pair = edges.source[order], pair[order]
    opens = np.ones(edges.size, dtype=np.bool_)
    np.not_equal(pair[1:], pair[:-1], out=opens[1:])
    # Shifted by one: 0 means that nothing of the source's segment was waited for yet.
    source += 1
    adds = source > carried_max(source, opens)
    adds &= ~((from_segment == to_segment) & (edges.source < edges.target))[order]
    adds |= edges.lag_ns[order] > 0
    return edges.pick(order if adds.all() else order[adds])
