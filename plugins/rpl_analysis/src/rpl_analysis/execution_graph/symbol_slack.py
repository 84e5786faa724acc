"""How much a symbol may slow down in total, spread evenly over its nodes, before the critical path grows.

The least slack of its nodes is safe but too little: they may lie on different paths. So slower versions are
solved again, and the largest one that left the path alone is reported: a lower bound, itself safe.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.weights import shrunk
from rpl_analysis.critical_path.whatif import Scenario, what_if

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.segment_sums import SegmentSums
    from rpl_analysis.execution_graph.domain import SolvedDomain

    Int64Column = NDArray[np.int64]

__all__ = ["find_symbol_slack"]

#: Slow-downs tried per symbol and round, and rounds (chosen: the bound is then within a few percent).
_TRIES = 6
_ROUNDS = 2
#: The engine's speed-ups are fractions with denominators up to this.
_MOST_DENOMINATOR = 1000
_LARGEST_SLOWDOWN = 1e6


@attrs.define
class _Search:
    """Slow-down factors between one that is safe (``low``) and one that is not, or not known to be."""

    symbol: int
    execution_ns: Int64Column
    slack_ns: int
    low: float
    high: float

    def factors(self) -> list[Fraction]:
        """Speed-ups below 1 to try, from the smallest slow-down to the largest."""
        steps = np.geomspace(self.low, self.high, _TRIES + 2)[1:]
        exact = {Fraction(1 / factor).limit_denominator(_MOST_DENOMINATOR) for factor in steps.tolist()}
        return sorted((factor for factor in exact if 0 < factor < 1), reverse=True)


def find_symbol_slack(
    solved: SolvedDomain, symbols: list[int], sums: SegmentSums | None = None
) -> dict[int, int]:
    """Slack in ns per symbol of ``symbols``; 0 for those on a critical path."""
    least = dict(zip(solved.sums.symbol.tolist(), solved.sums.min_slack_ns.tolist(), strict=True))
    found = {symbol: int(least[symbol]) for symbol in symbols}
    searches = [_search(solved, symbol, found[symbol]) for symbol in symbols if found[symbol] > 0]
    for _ in range(_ROUNDS):
        _try(solved, [search for search in searches if search.high > search.low], sums)
    return found | {search.symbol: max(search.slack_ns, found[search.symbol]) for search in searches}


def _search(solved: SolvedDomain, symbol: int, least_ns: int) -> _Search:
    of_symbol = solved.domain.symbol[solved.graph.order] == symbol
    execution = solved.weights.execution_ns[of_symbol]
    slack = solved.slack_ns[solved.graph.order[of_symbol]]
    total = int(execution.sum())
    # A path through the node that limits most grows by that node's share at least, and by all at most.
    limiting = int(execution[slack == least_ns].max(initial=0))
    low = 1 + least_ns / total if total else 1.0
    high = min(1 + least_ns / limiting, _LARGEST_SLOWDOWN) if limiting else low
    return _Search(symbol, execution, least_ns, low, max(low, high))


def _try(solved: SolvedDomain, searches: list[_Search], sums: SegmentSums | None) -> None:
    """One round: narrow every search by the answers for all its factors."""
    asked = [(search, factor) for search in searches for factor in search.factors()]
    scenarios = [Scenario(search.symbol, float(factor)) for search, factor in asked]
    answers = what_if(solved.graph, solved.weights, solved.domain.symbol, scenarios, sums)
    for (search, factor), answer in zip(asked, answers, strict=True):
        slowdown = float(1 / factor)
        if answer.predicted_ns > answer.recorded_ns:
            search.high = min(search.high, slowdown)
        elif slowdown <= search.high:
            search.low = max(search.low, slowdown)
            longer = shrunk(search.execution_ns, float(factor))
            search.slack_ns = max(search.slack_ns, int((longer - search.execution_ns).sum()))
