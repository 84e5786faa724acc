"""Every kernel and copy direction on the graph: weight, slack, ceilings.

The slack of a symbol is how much it may slow down in total, spread evenly over its nodes, before the critical
path grows. The least slack of its nodes is safe but too little: they may lie on different paths. So slower
versions are solved again, and the largest one that left the path alone counts: a lower bound, itself safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.contracts.graph import SymbolCriticality
from rpl_analysis.critical_path.weights import shrunk
from rpl_analysis.critical_path.whatif import Scenario, what_if
from rpl_analysis.execution_graph.results.forecasts import at_no_cost
from rpl_analysis.runtime.timing import group_durations

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from rpl_analysis.contracts.graph import ForecastPart
    from rpl_analysis.critical_path.whatif import SegmentSums
    from rpl_analysis.execution_graph.results.domain import SolvedDomain

    Int64Column = NDArray[np.int64]

__all__ = ["find_symbol_slack", "rank_symbols", "symbol_criticality"]

#: Slow-downs tried per symbol and round, and rounds (chosen: the bound is then within a few percent).
_TRIES = 6
_ROUNDS = 2
#: The engine's speed-ups are fractions with denominators up to this.
_MOST_DENOMINATOR = 1000
_LARGEST_SLOWDOWN = 1e6


def rank_symbols(solved: SolvedDomain) -> list[int]:
    """Indices into ``solved.sums``: by weight on the path, then total time, then name."""
    sums, names = solved.sums, solved.domain.work.symbol_names
    return sorted(
        range(sums.symbol.size),
        key=lambda i: (-int(sums.on_path_ns[i]), -int(sums.execution_ns[i]), names[sums.symbol[i]]),
    )


def symbol_criticality(
    solved: SolvedDomain,
    order: list[int],
    forecasts: Mapping[int, ForecastPart],
    symbol_slack: Mapping[int, int],
) -> tuple[SymbolCriticality, ...]:
    """All symbols in ``order``; forecasts and slack by symbol number, for those that were solved again."""
    sums, work = solved.sums, solved.domain.work
    length = max(solved.path.critical_path_ns, 1)
    slack = group_durations(work.symbol, solved.slack_ns[: len(work)], len(work.symbol_names))
    static = sums.static_ceiling()
    symbols = []
    for i in order:
        number = int(sums.symbol[i])
        of_symbol = slack.group(number)
        symbols.append(
            SymbolCriticality(
                name=work.symbol_names[number],
                kind="kernel" if number < work.kernel_symbols else "copy",
                nodes=int(sums.nodes[i]),
                total_ns=int(sums.execution_ns[i]),
                on_path_ns=int(sums.on_path_ns[i]),
                criticality_weight=int(sums.on_path_ns[i]) / length,
                min_slack_ns=int(sums.min_slack_ns[i]),
                median_slack_ns=int(of_symbol[(of_symbol.size - 1) // 2]),
                critical_nodes=int(np.searchsorted(of_symbol, 0, side="right")),
                speedup_ceiling=static[i],
                path_ceiling=_path_ceiling(solved, forecasts.get(number)),
                application_ceiling=_application_ceiling(forecasts.get(number)),
                slack_ns=symbol_slack.get(number),
            )
        )
    return tuple(symbols)


def _path_ceiling(solved: SolvedDomain, forecast: ForecastPart | None) -> float | None:
    """Speed-up of the exec-only path if the symbol cost nothing; None if nothing would be left."""
    if forecast is None:
        return None
    left = at_no_cost(forecast).critical_path_ns
    return solved.path.critical_path_ns / left if left else None


def _application_ceiling(forecast: ForecastPart | None) -> float | None:
    """Speed-up of the application, which keeps its launches, host time and waits."""
    return None if forecast is None else at_no_cost(forecast).application_speedup


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
        from fractions import Fraction  # rarely needed, and dear to import

        steps = np.geomspace(self.low, self.high, _TRIES + 2)[1:]
        exact = {Fraction(1 / factor).limit_denominator(_MOST_DENOMINATOR) for factor in steps.tolist()}
        return sorted((factor for factor in exact if 0 < factor < 1), reverse=True)


def find_symbol_slack(
    solved: SolvedDomain, symbols: list[int], sums: SegmentSums | None = None
) -> dict[int, int]:
    """Slack in ns per symbol of ``symbols``; 0 for those on a critical path."""
    least = dict(zip(solved.sums.symbol.tolist(), solved.sums.min_slack_ns.tolist(), strict=True))
    safe = {symbol: int(least[symbol]) for symbol in symbols}
    searches = [_search(solved, symbol, safe[symbol]) for symbol in symbols if safe[symbol] > 0]
    for _ in range(_ROUNDS):
        open_ones = [search for search in searches if search.high > search.low]
        if not open_ones:
            break
        _try(solved, open_ones, sums)
    return safe | {search.symbol: max(search.slack_ns, safe[search.symbol]) for search in searches}


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
