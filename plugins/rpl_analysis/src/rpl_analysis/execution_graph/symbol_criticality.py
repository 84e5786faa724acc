"""Every kernel and copy direction on the graph: weight, slack, ceilings."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.model import GraphSymbol
from rpl_analysis.runtime.grouping import group_durations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.execution_graph.domain import SolvedDomain
    from rpl_analysis.execution_graph.model import Forecast

__all__ = ["rank_symbols", "symbol_criticality"]


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
    forecasts: Mapping[int, Forecast],
    symbol_slack: Mapping[int, int],
) -> tuple[GraphSymbol, ...]:
    """All symbols in ``order``; forecasts and slack by symbol number, for those that were solved again."""
    sums, work = solved.sums, solved.domain.work
    length = max(solved.path.critical_path_ns, 1)
    slack = group_durations(work.symbol, solved.slack_ns[: len(work)], len(work.symbol_names))
    static = sums.static_ceiling()
    found = []
    for i in order:
        number = int(sums.symbol[i])
        of_symbol = slack.group(number)
        found.append(
            GraphSymbol(
                name=work.symbol_names[number],
                kind="kernel" if number < work.kernel_symbols else "copy",
                nodes=int(sums.nodes[i]),
                total_ns=int(sums.execution_ns[i]),
                on_path_ns=int(sums.on_path_ns[i]),
                criticality_weight=int(sums.on_path_ns[i]) / length,
                min_slack_ns=int(sums.min_slack_ns[i]),
                median_slack_ns=int(of_symbol[(of_symbol.size - 1) // 2]),
                critical_nodes=int(np.searchsorted(of_symbol, 0, side="right")),
                static_ceiling=static[i],
                speedup_ceiling=_ceiling(solved, forecasts.get(number)),
                slack_ns=symbol_slack.get(number),
            )
        )
    return tuple(found)


def _ceiling(solved: SolvedDomain, forecast: Forecast | None) -> float | None:
    """Speed-up of the exec-only path if the symbol cost nothing; None if nothing would be left."""
    if forecast is None:
        return None
    left = next(answer.critical_path_ns for answer in forecast.speedups if answer.speedup == inf)
    return solved.path.critical_path_ns / left if left else None
