"""One critical path out of a solved graph, as runs along chains and the edges between them.

Deterministic: wherever several predecessors are equally long, the one with the smallest (begin, chain,
identity) is taken, and a path goes on to predecessors of length 0 if there are any.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.model import PATH_BEGIN, CriticalPath
from rpl_analysis.critical_path.solve import advance, critical_path_ns, segment_heads
from rpl_analysis.critical_path.symbols import sum_by
from rpl_analysis.critical_path.weights import scale_positions
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import DispatchGraph, NodeWeights
    from rpl_analysis.critical_path.solve import Advance
    from rpl_analysis.critical_path.whatif import SegmentSums

    IntArray = NDArray[np.int64]

_NO_EDGE = -1


def trace_path(graph: DispatchGraph, weights: NodeWeights) -> CriticalPath:
    """The critical path of ``weights``; empty for an empty graph."""
    passed = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns)
    first, last, edge = _runs(graph, passed)
    run_start = np.cumsum(last - first + 1) - (last - first + 1)
    positions = _places(first, last)
    execution = weights.execution_ns[positions]
    entered = edge != _NO_EDGE
    lag = weights.edge_lag_ns[edge[entered]]
    if weights.total_ns is weights.execution_ns and not lag.any():
        wait = np.broadcast_to(np.int64(0), execution.shape)
    else:
        wait = weights.total_ns[positions] - execution
        wait[run_start[entered]] += lag
    entered_by = np.full(edge.size, PATH_BEGIN, dtype=np.int64)
    entered_by[entered] = graph.edges.origin[edge[entered]]
    path = CriticalPath(
        weighting=weights.weighting,
        critical_path_ns=critical_path_ns(graph.contraction, passed),
        rows=graph.order[positions],
        wait_ns=wait,
        run_start=run_start,
        entered_by=entered_by,
        execution_ns=int(execution.sum()),
        waiting_ns=int(wait.sum()),
    )
    assert path.execution_ns + path.waiting_ns == path.critical_path_ns, "the path does not add up"
    return path


def sum_on_path(
    graph: DispatchGraph, weights: NodeWeights, group_at: NDArray[np.integer], size: int
) -> tuple[IntArray, int]:
    """Execution on the critical path per group, and the path's length.

    ``group_at`` has a group below ``size`` for every position. The path is that of ``trace_path``.
    """
    passed = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns)
    first, last, _ = _runs(graph, passed)
    positions = _places(first, last)
    sums = sum_by(group_at[positions], weights.execution_ns[positions], size)
    return sums, critical_path_ns(graph.contraction, passed)


def _places(first: IntArray, last: IntArray) -> IntArray | slice:
    """All positions of the runs, in their order; a slice, which gathers nothing, where there is one run."""
    if first.size == 1:
        return slice(int(first[0]), int(last[0]) + 1)
    length = last - first + 1
    run_start = np.cumsum(length) - length
    positions: IntArray = np.arange(int(length.sum()))
    positions += np.repeat(first - run_start, length)
    return positions


def _runs(graph: DispatchGraph, passed: Advance) -> tuple[IntArray, IntArray, IntArray]:
    """First and last position of every run in time order, and the graph edge that entered it."""
    if graph.size == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    contraction = graph.contraction
    chosen = _chosen_edge(graph, passed)
    stops = (chosen != _NO_EDGE) | (contraction.previous == np.arange(chosen.size))
    # The breakpoint at which the run that holds a breakpoint was entered.
    entry = np.maximum.accumulate(np.where(stops, np.arange(chosen.size), 0))
    position, governing = _terminal(graph, passed)
    runs: list[tuple[int, int, int]] = []
    while True:
        begin = int(entry[governing])
        edge = int(chosen[begin])
        if edge == _NO_EDGE:
            runs.append((int(contraction.breakpoint[begin]), position, _NO_EDGE))
            break
        runs.append((int(contraction.breakpoint[begin]), position, int(contraction.edge[edge])))
        position, governing = int(contraction.source_position[edge]), int(contraction.source[edge])
    first, last, edges = np.array(runs[::-1], dtype=np.int64).T
    return first, last, edges


def _chosen_edge(graph: DispatchGraph, passed: Advance) -> IntArray:
    """Per breakpoint the ordered edge a critical path into it uses; none if it comes along the chain."""
    contraction = graph.contraction
    source, target = contraction.source, contraction.target
    tight = np.flatnonzero(passed.offset[source] + passed.gain == passed.offset[target])
    from_position = contraction.source_position[tight]
    order = np.lexsort((from_position, graph.begin_ns[from_position], target[tight]))
    tight, from_position = tight[order], from_position[order]
    reached, leading = np.unique(target[tight], return_index=True)
    tight, from_position = tight[leading], from_position[leading]
    before = np.maximum(contraction.breakpoint[reached] - 1, 0)
    chain_is_tight = (contraction.previous[reached] != reached) & (
        passed.offset[contraction.previous[reached]] == passed.offset[reached]
    )
    chain_is_smaller = (graph.begin_ns[before] < graph.begin_ns[from_position]) | (
        (graph.begin_ns[before] == graph.begin_ns[from_position]) & (before <= from_position)
    )
    chosen = np.full(contraction.breakpoint.size, _NO_EDGE, dtype=np.int64)
    by_edge = ~(chain_is_tight & chain_is_smaller)
    chosen[reached[by_edge]] = tight[by_edge]
    return chosen


def _terminal(graph: DispatchGraph, passed: Advance) -> tuple[int, int]:
    """Where the path ends: position and governing breakpoint of the smallest longest segment end."""
    contraction = graph.contraction
    chosen = last_segment(graph, segment_heads(contraction, passed))
    return int(contraction.segment_end[chosen]), int(contraction.last_of_segment[chosen])


def last_segment(graph: DispatchGraph, length: IntArray) -> int:
    """The segment with which the critical path ends, given the longest path that ends with each."""
    last = graph.contraction.segment_end
    longest = np.flatnonzero(length == length.max())
    return int(longest[np.lexsort((last[longest], graph.begin_ns[last[longest]]))[0]])


# Which symbol rules the critical path, now and after another one has become faster.


@frozen(kw_only=True)
class Dominance:
    """The symbol with the most execution on the critical path, and its share of the path.

    ``lead`` is its time over that of the next symbol on that path; infinite without another one.
    """

    symbol: int
    fraction: float
    lead: float


def dominant_symbol(
    graph: DispatchGraph, weights: NodeWeights, symbol: NDArray[np.integer]
) -> Dominance | None:
    """The dominant symbol of ``weights``, the smallest of equals; None if no symbol has time on the path.

    ``symbol`` is per row, negative where a node belongs to none.
    """
    return _dominant(graph, weights, np.maximum(symbol[graph.order], -1) + 1)


def _dominant(graph: DispatchGraph, weights: NodeWeights, group_at: NDArray[np.integer]) -> Dominance | None:
    """``group_at`` is the symbol plus 1 per position, 0 where a node belongs to none."""
    sums, length = sum_on_path(graph, weights, group_at, int(group_at.max(initial=0)) + 1)
    return _leader(sums[1:], length)


def _leader(spent: NDArray[np.int64], length: int) -> Dominance | None:
    """``spent`` is per symbol on a path of that length."""
    if not spent.any():
        return None
    chosen = int(spent.argmax())
    most = int(spent[chosen])
    second = int(np.delete(spent, chosen).max(initial=0))
    return Dominance(symbol=chosen, fraction=most / length, lead=most / second if second else inf)


def dominance_after(
    graph: DispatchGraph,
    weights: NodeWeights,
    symbol: NDArray[np.integer],
    chosen: int,
    speedups: Sequence[float],
    sums: SegmentSums | None,
) -> list[Dominance | None]:
    """The dominant symbol after ``chosen`` became faster by each of ``speedups``, in their order.

    ``sums``: what ``segment_sums`` made of the graph, None for one with edges; the answer is the same.
    """
    if sums is not None:
        return _without_edges(graph, weights, sums, chosen, speedups)
    group_at = np.maximum(symbol[graph.order], -1) + 1
    position = np.flatnonzero(group_at == chosen + 1)
    return [_dominant(graph, scale_positions(weights, position, speedup), group_at) for speedup in speedups]


def _without_edges(
    graph: DispatchGraph, weights: NodeWeights, sums: SegmentSums, chosen: int, speedups: Sequence[float]
) -> list[Dominance | None]:
    recorded = advance(graph.contraction, weights.total_ns, weights.edge_lag_ns).length
    leaders: list[Dominance | None] = []
    for speedup in speedups:
        saved = sums.saved(chosen, speedup)
        segment = last_segment(graph, recorded - saved)
        spent = sums.spent_in(segment)
        if chosen < spent.size:
            spent[chosen] -= saved[segment]
        leaders.append(_leader(spent, int(recorded[segment] - saved[segment])))
    return leaders
