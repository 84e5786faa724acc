"""Node weights: execution alone, execution with the observed waits, and either with one symbol sped up.

As executed, a node begins its ``wait`` after the last of its dependencies allowed it to: replaying the graph
with these waits gives every recorded time back, so the longest path equals the makespan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.model import NodeWeights
from rpl_core.errors import BadDataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import DispatchGraph, Weighting

    IntArray = NDArray[np.int64]

__all__ = ["scale_positions", "scale_symbol", "shrunk", "weigh"]

#: Speed-ups are taken to the nearest fraction with a denominator up to this, to stay in integers.
_MOST_DENOMINATOR = 1000


def weigh(graph: DispatchGraph, weighting: Weighting) -> NodeWeights:
    """Weights of the graph as recorded."""
    execution = graph.end_ns - graph.begin_ns
    if weighting == "exec_only":
        return NodeWeights(
            weighting=weighting,
            execution_ns=execution,
            total_ns=execution,
            edge_lag_ns=np.zeros(graph.edges.size, dtype=np.int64),
            recorded=True,
        )
    edges = graph.edges
    lag = np.minimum(edges.lag_ns, graph.begin_ns[edges.target] - graph.end_ns[edges.source])
    allowed = np.zeros_like(graph.end_ns)
    allowed[1:] = graph.end_ns[:-1]
    # A segment's first node depends on nothing in its chain: it waits from the beginning of the recording.
    allowed[graph.segment_start] = 0
    np.maximum.at(allowed, edges.target, graph.end_ns[edges.source] + lag)
    return NodeWeights(
        weighting=weighting,
        execution_ns=execution,
        total_ns=np.subtract(graph.end_ns, allowed, out=allowed),
        edge_lag_ns=lag,
        recorded=True,
    )


def shrunk(execution_ns: IntArray, speedup: float) -> IntArray:
    """``ceil(execution / speedup)`` in integers, 0 for an infinite speed-up; below 1 it is a slow-down.

    Rounded up, so that no predicted gain exceeds what the speed-up can give. Raises BadDataError unless
    ``speedup`` is above 0 and the result fits.
    """
    if speedup == float("inf"):
        return np.zeros_like(execution_ns)
    if not speedup > 0:
        raise BadDataError(f"speed-up {speedup} is not above 0")
    numerator, denominator = speedup.as_integer_ratio()
    if denominator > _MOST_DENOMINATOR:
        from fractions import Fraction  # rarely needed, and dear to import

        numerator, denominator = Fraction(speedup).limit_denominator(_MOST_DENOMINATOR).as_integer_ratio()
    longest = int(execution_ns.sum())
    if numerator == 0 or longest * max(denominator, denominator / numerator) >= 2**61:
        raise BadDataError(f"speed-up {speedup} makes {longest} ns of execution too long to add up")
    return -(-execution_ns * denominator // numerator)


def scale_symbol(
    graph: DispatchGraph, weights: NodeWeights, symbol: NDArray[np.integer], chosen: int, speedup: float
) -> NodeWeights:
    """``weights`` with every node of symbol ``chosen`` (``symbol`` is per row) ``speedup`` times as fast."""
    return scale_positions(weights, np.flatnonzero(symbol[graph.order] == chosen), speedup)


def scale_positions(weights: NodeWeights, position: IntArray, speedup: float) -> NodeWeights:
    """``weights`` with the nodes at these positions ``speedup`` times as fast."""
    execution, total = weights.execution_ns.copy(), weights.total_ns.copy()
    execution[position] = shrunk(weights.execution_ns[position], speedup)
    total[position] += execution[position] - weights.execution_ns[position]
    return attrs.evolve(weights, execution_ns=execution, total_ns=total, recorded=False)
