"""Longest path, heads, tails and slack by prefix sums along segments and one pass over the edges.

With ``running`` the sum of weights along a segment, the longest path that ends at position j is
``running[j] + offset`` where ``offset`` is the largest advance that an edge into j or before it forced.
It changes at breakpoints only, so the sequential work is one step per edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.analysis.critical_path.contraction import contract
from rpl_core.analysis.critical_path.model import Solution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.analysis.critical_path.contraction import Contraction
    from rpl_core.analysis.critical_path.model import DispatchGraph, NodeWeights

    IntArray = NDArray[np.int64]

__all__ = ["Advance", "advance", "critical_path_ns", "heads", "segment_ends", "solve"]


@attrs.frozen(eq=False, kw_only=True)
class Advance:
    """One pass over a contraction: ``running`` per position is relative to its segment once ``base`` is off.

    ``base`` per segment, ``gain`` per ordered edge (what taking it adds at its target beyond the target's
    prefix sum), ``offset`` per breakpoint.
    """

    running: IntArray
    base: IntArray
    gain: IntArray
    offset: IntArray


def advance(contraction: Contraction, total_ns: IntArray, edge_lag_ns: IntArray) -> Advance:
    """Offsets of all breakpoints. ``edge_lag_ns`` is per edge of the graph, not in solving order.

    Sums across segments may wrap around in int64; differences inside one never do.
    """
    running = np.cumsum(total_ns)
    start = contraction.segment_start
    base = running[start] - total_ns[start]
    source, target = contraction.source_position, contraction.target_position
    reached = running[source] - base[contraction.segment[contraction.source]]
    before = running[target] - total_ns[target] - base[contraction.segment[contraction.target]]
    gain = reached + edge_lag_ns[contraction.edge] - before
    return Advance(running=running, base=base, gain=gain, offset=_offsets(contraction, gain))


def _offsets(contraction: Contraction, gain: IntArray) -> IntArray:
    offset = [0] * contraction.breakpoint.size
    steps = zip(
        contraction.target.tolist(),
        contraction.source.tolist(),
        contraction.previous[contraction.target].tolist(),
        gain.tolist(),
        strict=True,
    )
    for target, source, previous, added in steps:
        reached = offset[source] + added
        carried = offset[previous]
        if reached < carried:
            reached = carried
        if reached > offset[target]:
            offset[target] = reached
    return np.array(offset, dtype=np.int64)


def heads(contraction: Contraction, passed: Advance) -> IntArray:
    """Longest path that ends at each position, the position included. Reuses the memory of ``running``."""
    size = passed.running.size
    lift = passed.offset - passed.base[contraction.segment]
    head = passed.running
    head += np.repeat(lift, np.diff(contraction.breakpoint, append=size))
    return head


def critical_path_ns(contraction: Contraction, passed: Advance) -> int:
    """Length of the longest path: weights are not negative, so it ends at the end of a segment."""
    _, ends = segment_ends(contraction, passed)
    return int((ends + passed.offset[contraction.last_of_segment]).max(initial=0))


def segment_ends(contraction: Contraction, passed: Advance) -> tuple[IntArray, IntArray]:
    """Last position of every segment, and the segment's length without the advance of any edge."""
    count = contraction.segment_start.size
    last = np.append(contraction.segment_start[1:], passed.running.size)[:count] - 1
    return last, passed.running[last] - passed.base


def solve(graph: DispatchGraph, weights: NodeWeights) -> Solution:
    """Heads, tails and slack of every node, and the length of the critical path."""
    passed = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns)
    longest = critical_path_ns(graph.contraction, passed)
    if weights.recorded:
        assert longest <= graph.makespan_ns, "a path is longer than the makespan"
        assert weights.weighting == "exec_only" or longest == graph.makespan_ns, "waits do not add up"
    head = heads(graph.contraction, passed)
    slack = weights.total_ns - head
    head_ns = graph.to_rows(head)
    # One column at a time: with five million nodes each of them is 40 MB.
    del head, passed
    tail = _tails(graph, weights)
    slack -= tail
    slack += longest
    assert slack.size == 0 or int(slack.min()) == 0, "no node is critical"
    tail_ns = graph.to_rows(tail)
    del tail
    return Solution(
        weights=weights,
        critical_path_ns=longest,
        head_ns=head_ns,
        tail_ns=tail_ns,
        slack_ns=graph.to_rows(slack),
    )


def _tails(graph: DispatchGraph, weights: NodeWeights) -> IntArray:
    """Heads of the graph read backwards: positions, links, edges and time all reversed."""
    last = graph.size - 1
    first_of_next = np.append(graph.segment_start[1:], graph.size)[: graph.segment_start.size]
    contraction, cyclic = contract(
        (graph.size - first_of_next)[::-1],
        last - graph.edges.target,
        last - graph.edges.source,
        lambda position: (-graph.end_ns[last - position], -graph.begin_ns[last - position]),
    )
    assert cyclic.size == 0
    passed = advance(contraction, weights.total_ns[::-1], weights.edge_lag_ns)
    return heads(contraction, passed)[::-1]
