"""Which symbol rules the critical path, now and after another one has become faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.analysis.critical_path.path import sum_on_path
from rpl_core.analysis.critical_path.weights import scale_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rpl_core.analysis.critical_path.model import DispatchGraph, NodeWeights

__all__ = ["Dominance", "dominance_after", "dominant_symbol"]


@attrs.frozen(kw_only=True)
class Dominance:
    """The symbol with the most execution on the critical path, and its share of the path."""

    symbol: int
    fraction: float


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
    of_symbol = sums[1:]
    if not of_symbol.any():
        return None
    chosen = int(of_symbol.argmax())
    return Dominance(symbol=chosen, fraction=int(of_symbol[chosen]) / length)


def dominance_after(
    graph: DispatchGraph,
    weights: NodeWeights,
    symbol: NDArray[np.integer],
    chosen: int,
    speedups: Sequence[float],
) -> list[Dominance | None]:
    """The dominant symbol after ``chosen`` became faster by each of ``speedups``, in their order."""
    group_at = np.maximum(symbol[graph.order], -1) + 1
    position = np.flatnonzero(group_at == chosen + 1)
    return [_dominant(graph, scale_positions(weights, position, speedup), group_at) for speedup in speedups]
