"""Sums per symbol: how much of the path, of the time and of the slack belongs to each kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import CriticalPath, DispatchGraph, Slack, Solution

    IntArray = NDArray[np.int64]

__all__ = ["SymbolSums", "sum_by", "sum_symbols"]

_EXACT_IN_FLOAT64 = 2**53
_BLOCK = 2**16


@frozen(eq=False, kw_only=True)
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
    graph: DispatchGraph, solution: Solution | Slack, path: CriticalPath, symbol: NDArray[np.integer]
) -> SymbolSums:
    """Sums over the rows of each symbol; ``symbol`` has shape (n,)."""
    execution, slack_ns = graph.to_rows(solution.weights.execution_ns), solution.slack_ns
    group = symbol if int(symbol.min(initial=0)) >= 0 else np.maximum(symbol, -1) + 1
    shift = 0 if group is symbol else 1
    size = int(group.max(initial=-1)) + 1
    nodes, total = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    critical, min_slack = np.zeros(size, dtype=np.int64), np.full(size, np.iinfo(np.int64).max)
    for first in range(0, group.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        own, slack = group[block], slack_ns[block]
        nodes += np.bincount(own, minlength=size)
        spent = sum_by(own, execution[block], size)
        total += spent
        np.minimum.at(min_slack, own, slack)
        tight = slack == 0
        critical += spent if tight.all() else sum_by(own[tight], execution[block][tight], size)
    nodes_on_path, on_path = _on_path(path, group, execution, nodes, total)
    present = np.flatnonzero(nodes[shift:])
    return SymbolSums(
        critical_path_ns=path.critical_path_ns,
        symbol=present,
        nodes=nodes[shift:][present],
        execution_ns=total[shift:][present],
        nodes_on_path=nodes_on_path[shift:][present],
        on_path_ns=on_path[shift:][present],
        critical_ns=critical[shift:][present],
        min_slack_ns=min_slack[shift:][present],
    )


def _on_path(
    path: CriticalPath, group: NDArray[np.integer], execution: IntArray, nodes: IntArray, total: IntArray
) -> tuple[IntArray, IntArray]:
    """Nodes and execution per group on the path, where ``nodes`` and ``total`` are those of all rows."""
    if path.rows.size == group.size:
        return nodes, total
    count, spent = np.zeros_like(nodes), np.zeros_like(total)
    for first in range(0, path.rows.size, _BLOCK):
        rows = path.rows[first : first + _BLOCK]
        count += np.bincount(group[rows], minlength=nodes.size)
        spent += sum_by(group[rows], execution[rows], nodes.size)
    return count, spent


def sum_by(group: NDArray[np.integer], values: IntArray, size: int) -> IntArray:
    """Sum of ``values`` per group number below ``size``."""
    sums = np.zeros(size, dtype=np.int64)
    # In blocks, whose copies as indices and floats stay in the caches.
    for first in range(0, values.size, _BLOCK):
        block, groups = values[first : first + _BLOCK], group[first : first + _BLOCK]
        if int(block.min()) >= 0 and int(block.max()) * block.size < _EXACT_IN_FLOAT64:
            # No partial sum leaves what float64 holds exactly: three times as fast.
            sums += np.bincount(groups, weights=block, minlength=size).astype(np.int64)
        else:
            np.add.at(sums, groups, block)
    return sums
