"""Which symbol rules the critical path, now and after another one has become faster."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.path import last_segment, sum_on_path
from rpl_analysis.critical_path.solve import advance
from rpl_analysis.critical_path.weights import scale_positions
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import DispatchGraph, NodeWeights
    from rpl_analysis.critical_path.segment_sums import SegmentSums

__all__ = ["Dominance", "dominance_after", "dominant_symbol"]


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
