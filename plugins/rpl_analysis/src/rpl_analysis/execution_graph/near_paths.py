"""Paths almost as long as the critical one: for symbols beside it, the longest path through one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.path import trace_path
from rpl_analysis.critical_path.symbols import sum_by
from rpl_analysis.execution_graph.model import NearPath, PathShare

if TYPE_CHECKING:
    from rpl_analysis.execution_graph.domain import SolvedDomain

__all__ = ["find_near_paths"]

#: Paths that are reported, and symbols named on each (chosen).
MOST_PATHS = 5
_MOST_SHARES = 3


def find_near_paths(solved: SolvedDomain) -> tuple[NearPath, ...]:
    """For the symbols with the least slack above zero, longest first."""
    sums = solved.sums
    names = solved.domain.work.symbol_names
    beside = np.flatnonzero(sums.min_slack_ns > 0)
    order = sorted(beside.tolist(), key=lambda i: (int(sums.min_slack_ns[i]), names[sums.symbol[i]]))
    return tuple(_through(solved, int(sums.symbol[i])) for i in order[:MOST_PATHS])


def _through(solved: SolvedDomain, symbol: int) -> NearPath:
    graph, slack = solved.graph, solved.slack_ns
    own = np.flatnonzero(solved.domain.symbol == symbol)
    node = int(own[np.argmin(slack[own])])
    # A node that alone outweighs every path is on the longest one; its own weight is then taken off again.
    total = solved.weights.total_ns.copy()
    total[graph.order == node] += solved.path.critical_path_ns + 1
    path = trace_path(graph, attrs.evolve(solved.weights, total_ns=total, recorded=False))
    of_path = solved.domain.symbol[path.rows]
    counted = of_path >= 0
    execution = graph.to_rows(solved.weights.execution_ns)[path.rows]
    spent = sum_by(of_path[counted], execution[counted], len(solved.domain.work.symbol_names))
    names = solved.domain.work.symbol_names
    leading = sorted(np.flatnonzero(spent).tolist(), key=lambda i: (-int(spent[i]), names[i]))[:_MOST_SHARES]
    return NearPath(
        through=names[symbol],
        length_ns=solved.path.critical_path_ns - int(slack[node]),
        slack_ns=int(slack[node]),
        shares=tuple(PathShare(names[i], int(spent[i])) for i in leading),
    )
