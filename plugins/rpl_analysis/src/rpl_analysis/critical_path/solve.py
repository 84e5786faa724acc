"""Longest path, heads, tails and slack by prefix sums along segments and one pass over the edges.

With ``running`` the sum of weights along a segment, the longest path that ends at position j is
``running[j] + offset`` where ``offset`` is the largest advance that an edge into j or before it forced.
It changes at breakpoints only, so the sequential work is one step per edge.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.contraction import contract
from rpl_analysis.critical_path.model import Slack, Solution
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.contraction import Contraction
    from rpl_analysis.critical_path.model import DispatchGraph, NodeWeights

    IntArray = NDArray[np.int64]

__all__ = ["Advance", "advance", "critical_path_ns", "heads", "segment_heads", "solve", "solve_slack"]

_BLOCK = 2**16


@frozen(eq=False, kw_only=True)
class Advance:
    """One pass over a contraction: ``length`` per segment is without the advance of any edge.

    ``gain`` per ordered edge (what taking it adds at its target beyond the target's prefix sum), ``offset``
    per breakpoint.
    """

    length: IntArray
    gain: IntArray
    offset: IntArray


def advance(contraction: Contraction, total_ns: IntArray, edge_lag_ns: IntArray) -> Advance:
    """Offsets of all breakpoints. ``edge_lag_ns`` is per edge of the graph, not in solving order."""
    start = contraction.segment_start
    if not contraction.edge.size:
        # Nothing but sums of segments: no prefix sums of every node.
        length = np.add.reduceat(total_ns, start) if start.size else np.zeros(0, dtype=np.int64)
        return Advance(length=length, gain=edge_lag_ns, offset=np.zeros_like(contraction.breakpoint))
    running = np.cumsum(total_ns)
    base = running[start] - total_ns[start]
    source, target = contraction.source_position, contraction.target_position
    reached = running[source] - base[contraction.segment[contraction.source]]
    before = running[target] - total_ns[target] - base[contraction.segment[contraction.target]]
    gain = reached + edge_lag_ns[contraction.edge] - before
    length = running[contraction.segment_end] - base
    del running
    return Advance(length=length, gain=gain, offset=_offsets(contraction, gain))


def _offsets(contraction: Contraction, gain: IntArray) -> IntArray:
    if contraction.sweeps is not None:
        return contraction.sweeps.offsets(gain)
    # In 64 bits and in blocks: as Python numbers offsets and edges would need five times their memory.
    offset = array("q", bytes(8 * contraction.breakpoint.size))
    for first in range(0, gain.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        steps = zip(
            contraction.target[block].tolist(),
            contraction.source[block].tolist(),
            contraction.carried[block].tolist(),
            gain[block].tolist(),
            strict=True,
        )
        for target, source, carried, added in steps:
            by_edge, along = offset[source] + added, offset[carried]
            offset[target] = by_edge if by_edge > along else along
    return np.frombuffer(offset, np.int64)


def heads(contraction: Contraction, passed: Advance, total_ns: IntArray) -> IntArray:
    """Longest path that ends at each position, the position included; ``total_ns`` as for ``advance``.

    Sums across segments may wrap around in int64; differences inside one never do.
    """
    head = np.cumsum(total_ns)
    start = contraction.segment_start
    lift = passed.offset - (head[start] - total_ns[start])[contraction.segment]
    head += np.repeat(lift, np.diff(contraction.breakpoint, append=contraction.size))
    return head


def critical_path_ns(contraction: Contraction, passed: Advance) -> int:
    """Length of the longest path: weights are not negative, so it ends at the end of a segment."""
    return int(segment_heads(contraction, passed).max(initial=0))


def segment_heads(contraction: Contraction, passed: Advance) -> IntArray:
    """Longest path that ends with each segment."""
    return passed.length + passed.offset[contraction.last_of_segment]


def solve(graph: DispatchGraph, weights: NodeWeights) -> Solution:
    """Heads, tails and slack of every node, and the length of the critical path."""
    longest, head = _longest(graph, weights)
    tail = _tails(graph, weights)
    slack = _slack(weights, longest, head, tail)
    head_ns, tail_ns = graph.to_rows(head), graph.to_rows(tail)
    return Solution(
        weights=weights,
        critical_path_ns=longest,
        head_ns=head_ns,
        tail_ns=tail_ns,
        slack_ns=graph.to_rows(slack),
    )


def solve_slack(graph: DispatchGraph, weights: NodeWeights, group: NDArray[np.integer], groups: int) -> Slack:
    """Slack of every node, and the longest path that ends in each group of rows.

    ``group`` (n,) is per row, below ``groups``, -1 for none; the nodes of a segment are of one group.
    """
    longest_ns = np.zeros(groups + 1, dtype=np.int64)  # the last entry is what -1 means
    if graph.edges.size:
        longest, head = _longest(graph, weights)
        np.maximum.at(longest_ns, group[graph.order], head)
        slack = graph.to_rows(_slack(weights, longest, head, _tails(graph, weights)))
        return Slack(weights=weights, slack_ns=slack, longest_ns=longest_ns[:groups])
    # Every path is a segment or a part of one.
    passed = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns)
    longest = critical_path_ns(graph.contraction, passed)
    _check_length(graph, weights, longest)
    np.maximum.at(longest_ns, group[graph.order[graph.segment_start]], passed.length)
    rest = longest - passed.length
    if rest.size == 1:
        slack = np.broadcast_to(rest, graph.size)
    else:
        slack = graph.to_rows(np.repeat(rest, np.diff(graph.segment_start, append=graph.size)))
    return Slack(weights=weights, slack_ns=slack, longest_ns=longest_ns[:groups])


def _longest(graph: DispatchGraph, weights: NodeWeights) -> tuple[int, IntArray]:
    passed = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns)
    longest = critical_path_ns(graph.contraction, passed)
    _check_length(graph, weights, longest)
    return longest, heads(graph.contraction, passed, weights.total_ns)


def _check_length(graph: DispatchGraph, weights: NodeWeights, longest: int) -> None:
    if weights.recorded:
        assert longest <= graph.makespan_ns, "a path is longer than the makespan"
        assert weights.weighting == "exec_only" or longest == graph.makespan_ns, "waits do not add up"


def _slack(weights: NodeWeights, longest: int, head: IntArray, tail: IntArray) -> IntArray:
    slack = weights.total_ns - head
    slack -= tail
    slack += longest
    assert slack.size == 0 or int(slack.min()) == 0, "no node is critical"
    return slack


def _tails(graph: DispatchGraph, weights: NodeWeights) -> IntArray:
    """Heads of the graph read backwards: positions, links, edges and time all reversed."""
    last = graph.size - 1
    first_of_next = np.append(graph.segment_start[1:], graph.size)[: graph.segment_start.size]
    contraction, cyclic = contract(
        graph.size,
        (graph.size - first_of_next)[::-1],
        last - graph.edges.target,
        last - graph.edges.source,
        lambda position: (-graph.end_ns[last - position], -graph.begin_ns[last - position]),
    )
    assert cyclic.size == 0
    backwards = weights.total_ns[::-1]
    return heads(contraction, advance(contraction, backwards, weights.edge_lag_ns), backwards)[::-1]
