"""What a faster kernel brings end to end: the graph solved again, never the share extrapolated.

Both weightings are asked: dispatch intervals alone, and as executed, where launches, host time and waits stay
as they were recorded. Model: durations do not depend on what runs beside them (critical_path.md, 1.6).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from rpl_analysis.critical_path.whatif import Scenario, what_if
from rpl_analysis.execution_graph.model import Forecast, SpeedupForecast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.critical_path.model import NodeWeights
    from rpl_analysis.critical_path.segment_sums import SegmentSums
    from rpl_analysis.critical_path.whatif import WhatIf
    from rpl_analysis.execution_graph.domain import SolvedDomain

__all__ = ["SPEEDUPS", "forecast_symbols", "rank_forecasts"]

#: The speed-ups that critical_path.md, 1.6 asks for.
SPEEDUPS = (1.25, 1.5, 2.0, inf)
#: By which the forecasts are ranked: a speed-up that a kernel can reach, unlike infinity (chosen).
RANKED_BY = 2.0


def forecast_symbols(
    solved: SolvedDomain, executed: NodeWeights, symbols: Sequence[int], sums: SegmentSums | None
) -> dict[int, Forecast]:
    """Forecasts for ``symbols``; ``executed`` are the as-executed weights, ``sums`` as in what-ifs."""
    scenarios = [Scenario(symbol, speedup) for symbol in symbols for speedup in SPEEDUPS]
    of_symbol = solved.domain.symbol
    alone = what_if(solved.graph, solved.weights, of_symbol, scenarios, sums)
    application = what_if(solved.graph, executed, of_symbol, scenarios, sums)
    found: dict[int, list[SpeedupForecast]] = {symbol: [] for symbol in symbols}
    for path, run in zip(alone, application, strict=True):
        found[path.scenario.symbol].append(_forecast(path, run))
    work = solved.domain.work
    return {
        symbol: Forecast(
            name=work.symbol_names[symbol],
            kind="kernel" if symbol < work.kernel_symbols else "copy",
            speedups=tuple(answers),
        )
        for symbol, answers in found.items()
    }


def _forecast(path: WhatIf, run: WhatIf) -> SpeedupForecast:
    return SpeedupForecast(
        speedup=path.scenario.speedup,
        critical_path_ns=path.predicted_ns,
        application_ns=run.predicted_ns,
        application_gain_ns=run.gain_ns,
        application_speedup=run.application_speedup,
    )


def rank_forecasts(forecasts: Sequence[Forecast]) -> tuple[Forecast, ...]:
    """By end-to-end gain at twice the speed, then at no cost, then by name."""

    def key(forecast: Forecast) -> tuple[int, int, str]:
        gains = {answer.speedup: answer.application_gain_ns for answer in forecast.speedups}
        return (-gains[RANKED_BY], -gains[inf], forecast.name)

    return tuple(sorted(forecasts, key=key))
