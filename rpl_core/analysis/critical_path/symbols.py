"""Sums per symbol: how much of the path, of the time and of the slack belongs to each kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.analysis.critical_path.model import CriticalPath, DispatchGraph, Solution

    IntArray = NDArray[np.int64]

__all__ = ["SymbolSums", "sum_by", "sum_symbols"]

_EXACT_IN_FLOAT64 = 2**53


@attrs.frozen(eq=False, kw_only=True)
class SymbolSums:
    """One entry per symbol that occurs, ascending by ``symbol``; nodes with a negative symbol are left out.

    ``execution_ns``: all its nodes, clipped like the graph. ``on_path_ns``: its execution on the reported
    path. ``critical_ns``: its execution on nodes without slack, more than ``on_path_ns`` if paths tie.
    ``min_slack_ns``: the least slack of its nodes.
    """

    critical_path_ns: int
    symbol: IntArray
    nodes: IntArray
    execution_ns: IntArray
    nodes_on_path: IntArray
    on_path_ns: IntArray
    critical_ns: IntArray
    min_slack_ns: IntArray

    def criticality(self) -> NDArray[np.float64] | None:
        """Share of the critical path per symbol, ``d ln CP / d ln w`` while the path is the only one.

        None if the path has no length.
        """
        return self.on_path_ns / self.critical_path_ns if self.critical_path_ns else None

    def static_ceiling(self) -> list[float | None]:
        """``1 / (1 - f)`` per symbol: no speed-up of the symbol alone can gain more; None where f is 1."""
        rest = (self.critical_path_ns - self.on_path_ns).tolist()
        return [self.critical_path_ns / ns if ns else None for ns in rest]


def sum_symbols(
    graph: DispatchGraph, solution: Solution, path: CriticalPath, symbol: NDArray[np.integer]
) -> SymbolSums:
    """Sums over the rows of each symbol; ``symbol`` has shape (n,)."""
    execution, slack = graph.to_rows(solution.weights.execution_ns), solution.slack_ns
    on_path = path.rows[symbol[path.rows] >= 0]
    path_symbol, path_execution = symbol[on_path], execution[on_path]
    counted = symbol >= 0
    if not counted.all():
        symbol, execution, slack = symbol[counted], execution[counted], slack[counted]
    nodes = np.bincount(symbol)
    present = np.flatnonzero(nodes)
    min_slack = np.full(nodes.size, np.iinfo(np.int64).max)
    np.minimum.at(min_slack, symbol, slack)
    critical = slack == 0
    return SymbolSums(
        critical_path_ns=path.critical_path_ns,
        symbol=present,
        nodes=nodes[present],
        execution_ns=sum_by(symbol, execution, nodes.size)[present],
        nodes_on_path=np.bincount(path_symbol, minlength=nodes.size)[present],
        on_path_ns=sum_by(path_symbol, path_execution, nodes.size)[present],
        critical_ns=sum_by(symbol[critical], execution[critical], nodes.size)[present],
        min_slack_ns=min_slack[present],
    )


def sum_by(group: NDArray[np.integer], values: IntArray, size: int) -> IntArray:
    """Sum of ``values`` per group number below ``size``."""
    if values.size and int(values.min()) >= 0 and int(values.sum()) < _EXACT_IN_FLOAT64:
        # No partial sum exceeds the total, so that float64 adds exactly: three times as fast.
        return np.bincount(group, weights=values, minlength=size).astype(np.int64)
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, group, values)
    return sums
