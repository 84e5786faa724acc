"""Rows to chains: canonical order, and who follows whom inside a chain when intervals overlap.

A chain is what a runtime runs in order: a stream, or a hardware queue where streams are unknown. The
order is (chain, begin, end, identity). Times leave this module relative to the first begin of the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.segmented import carried_max
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]

# Edges between chains: which are admitted, how the clock tolerance is paid for, which are implied anyway.
#
# An end-to-start edge u -> v needs ``end[u] <= begin[v] + tolerance``. Where it holds by the tolerance only,
# the overlapped part of v is clipped away, so that every path stays a set of disjoint intervals and no path
# can be longer than the makespan.

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


_UINT16_VALUES = 65536
#: Branches of a graph that all of the next one's wait for (chosen, as for edges out of a launch).
_MOST_SINKS = 64


@frozen(eq=False, kw_only=True)
class ChainLayout:
    """Chains in canonical order; arrays are per position except the repair edges.

    ``linked[p]``: p depends on p - 1. ``begin_ns``/``end_ns`` are clipped so that a linked node never begins
    before its predecessor ended; a node that lies inside the clipped part has become a point.
    ``repair_source``/``repair_target``: dependencies inside a chain that are no link.
    """

    begin_ns: IntArray
    end_ns: IntArray
    linked: BoolArray
    repair_source: IntArray
    repair_target: IntArray
    overlapping_nodes: int


def canonical_order(
    chain: NDArray[np.integer], begin_ns: IntArray, end_ns: IntArray, identity: NDArray[np.integer] | None
) -> IntArray:
    """Rows in the order (chain, begin, end, identity); ``identity`` defaults to the row number."""
    order = _by_chain(chain)
    if _is_canonical(order, chain, begin_ns, end_ns, identity):
        return order
    keys = (end_ns, begin_ns, chain) if identity is None else (identity, end_ns, begin_ns, chain)
    return np.lexsort(keys)


def _by_chain(chain: NDArray[np.integer]) -> IntArray:
    lowest, highest = int(chain.min()), int(chain.max())
    if lowest == highest:
        return np.arange(chain.size, dtype=np.int64)
    if highest - lowest < _UINT16_VALUES:
        # numpy sorts 16-bit integers by radix: 10 times faster than wider ones.
        return np.argsort((chain - lowest).astype(np.uint16), kind="stable")
    return np.argsort(chain, kind="stable")


def _is_canonical(
    order: IntArray,
    chain: NDArray[np.integer],
    begin_ns: IntArray,
    end_ns: IntArray,
    identity: NDArray[np.integer] | None,
) -> bool:
    """Whether rows of one chain already ascend in (begin, end, identity) along ``order``."""
    # One chain keeps its rows where they are.
    begin = begin_ns if int(chain.min()) == int(chain.max()) else begin_ns[order]
    not_after = np.flatnonzero(begin[1:] <= begin[:-1])
    del begin
    # Only neighbours whose begins do not ascend need a closer look: a handful in a real trace.
    first, second = order[not_after], order[not_after + 1]
    inside = chain[first] == chain[second]
    first, second = first[inside], second[inside]
    ascending = begin_ns[first] <= begin_ns[second]
    tied = begin_ns[first] == begin_ns[second]
    ascending &= ~tied | (end_ns[first] <= end_ns[second])
    tied &= end_ns[first] == end_ns[second]
    if identity is not None:
        ascending &= ~tied | (identity[first] <= identity[second])
    return bool(ascending.all())


def lay_out_chain(opens: BoolArray, begin_ns: IntArray, end_ns: IntArray, tolerance_ns: int) -> ChainLayout:
    """Links and clipped times of chains in canonical order; ``opens`` marks the first node of each chain.

    A node is linked to its predecessor if everything before it ended by its begin plus the tolerance. A node
    that overlaps by more hangs on the latest earlier node of its chain that had ended (clock and firmware
    inaccuracies, or several streams on one queue). The first node after such an overlap waits for all of it,
    and so do those beside it that wait for none of its own overlap: branches of a graph behind another's.
    """
    if bool(np.all((begin_ns[1:] >= end_ns[:-1]) | opens[1:])):
        nothing = np.zeros(0, dtype=np.int64)
        return ChainLayout(
            begin_ns=begin_ns,
            end_ns=end_ns,
            linked=~opens,
            repair_source=nothing,
            repair_target=nothing,
            overlapping_nodes=0,
        )
    reached = carried_max(end_ns, opens)
    serial = reached <= begin_ns + tolerance_ns
    block = np.cumsum(serial) - 1
    # Whatever ended before the block's first node ended before each of its nodes, up to the tolerance.
    begin = np.maximum(begin_ns, reached[serial][block])
    end = np.maximum(end_ns, begin)
    del reached
    overlapping = np.flatnonzero(~serial)
    parent = _latest_ended(overlapping, np.cumsum(opens), begin, end)
    linked = ~opens
    linked[overlapping] = parent == overlapping - 1
    hanging = (parent >= 0) & ~linked[overlapping]
    sink, join = _joins(opens, block, overlapping, parent)
    beside = overlapping[(parent >= 0) & (block[parent] < block[overlapping])]
    further = _beside_joins(sink, join, beside, np.flatnonzero(serial)[block[beside]])
    return ChainLayout(
        begin_ns=begin,
        end_ns=end,
        linked=linked,
        repair_source=np.concatenate([parent[hanging], sink, further[0]]),
        repair_target=np.concatenate([overlapping[hanging], join, further[1]]),
        overlapping_nodes=overlapping.size,
    )


def _latest_ended(
    overlapping: IntArray, chain_number: IntArray, begin_ns: IntArray, end_ns: IntArray
) -> IntArray:
    """Per overlapping position the earlier one of its chain that was last to end by its begin, or -1."""
    affected = np.zeros(int(chain_number[-1]) + 1, dtype=np.bool_)
    affected[chain_number[overlapping]] = True
    node = np.flatnonzero(affected[chain_number])
    position = np.concatenate([node, overlapping])
    when = np.concatenate([end_ns[node], begin_ns[overlapping]])
    # At equal times a question goes before its own node and after all earlier nodes.
    is_node = np.concatenate([np.ones(node.size, np.bool_), np.zeros(overlapping.size, np.bool_)])
    order = np.lexsort((is_node, position, when, chain_number[position]))
    node_sorted = is_node[order]
    last_node = np.maximum.accumulate(np.where(node_sorted, np.arange(order.size), -1))
    question = np.flatnonzero(~node_sorted)
    asked = position[order[question]]
    place = last_node[question]
    answer = np.where(place >= 0, position[order[place]], -1)
    answer[(answer >= 0) & (chain_number[answer] != chain_number[asked])] = -1
    parent = np.empty(overlapping.size, dtype=np.int64)
    parent[np.searchsorted(overlapping, asked)] = answer
    return parent


def _joins(
    opens: BoolArray, block: IntArray, overlapping: IntArray, parent: IntArray
) -> tuple[IntArray, IntArray]:
    """Edges from the nodes of an overlap that nothing in it follows to the first node after it."""
    followed = np.zeros(opens.size, dtype=np.bool_)
    inner = (parent >= 0) & (block[parent] == block[overlapping])
    followed[parent[inner]] = True
    last_of_block = np.append(np.flatnonzero(block[1:] != block[:-1]), opens.size - 1)
    join = last_of_block[block] + 1
    position = np.arange(opens.size)
    # The last node of a block is linked to the join already.
    is_sink = ~followed & (position != join - 1) & (join < opens.size)
    is_sink[is_sink] = ~opens[join[is_sink]]
    return position[is_sink], join[is_sink]


def _beside_joins(
    sink: IntArray, join: IntArray, beside: IntArray, first: IntArray
) -> tuple[IntArray, IntArray]:
    """The edges of ``sink`` to ``join`` again for nodes ``beside`` those joins, the ``first`` of their block.

    And those of the node before the join, which that one has as its link. Of an overlap without end, several
    streams on one queue, only the first node waits for all.
    """
    low, high = np.searchsorted(join, first, side="left"), np.searchsorted(join, first, side="right")
    count = np.where(high - low <= _MOST_SINKS, high - low, 0)
    which = np.repeat(low - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
    linked = high - low <= _MOST_SINKS
    return (
        np.concatenate([sink[which], first[linked] - 1]),
        np.concatenate([np.repeat(beside, count), beside[linked]]),
    )
