"""Which symbol rules the critical path, now and after another one has become faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.analysis.critical_path.path import trace_path
from rpl_core.analysis.critical_path.symbols import sum_by
from rpl_core.analysis.critical_path.weights import scale_symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
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
    path = trace_path(graph, weights)
    execution = graph.to_rows(weights.execution_ns)[path.rows]
    on_path = symbol[path.rows]
    counted = on_path >= 0
    sums = sum_by(on_path[counted], execution[counted], int(on_path.max(initial=-1)) + 1)
    if not sums.any():
        return None
    chosen = int(sums.argmax())
    return Dominance(symbol=chosen, fraction=int(sums[chosen]) / path.critical_path_ns)


def dominance_after(
    graph: DispatchGraph,
    weights: NodeWeights,
    symbol: NDArray[np.integer],
    chosen: int,
    speedups: Sequence[float],
) -> list[Dominance | None]:
    """The dominant symbol after ``chosen`` became faster by each of ``speedups``, in their order."""
    return [
        dominant_symbol(graph, scale_symbol(graph, weights, symbol, chosen, speedup), symbol)
        for speedup in speedups
    ]
