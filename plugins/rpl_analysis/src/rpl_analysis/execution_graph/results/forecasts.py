"""What a faster kernel brings end to end, and which one dominates then: the graph solved again each time.

Both weightings are asked: dispatch intervals alone, and as executed, where launches, host time and waits stay
as they were recorded. Model: durations do not depend on what runs beside them
(docs/reference/execution-graph.md, 3.3).
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING

from rpl_analysis.critical_path.dominance import dominance_after
from rpl_analysis.critical_path.whatif import Scenario, what_if
from rpl_analysis.execution_graph.results.model import DominanceStep, Forecast, SpeedupForecast
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.critical_path.dominance import Dominance
    from rpl_analysis.critical_path.model import NodeWeights
    from rpl_analysis.critical_path.segment_sums import SegmentSums
    from rpl_analysis.critical_path.whatif import WhatIf
    from rpl_analysis.execution_graph.results.domain import SolvedDomain

__all__ = ["SPEEDUPS", "DominanceShift", "find_dominance_shift", "forecast_symbols", "rank_forecasts"]

#: Halvings of the interval around the shift (in logarithms): it is known to a few percent (chosen).
_HALVINGS = 5
#: Speed-ups beyond this are not searched: the shift is reported at infinity only (chosen).
_LARGEST_SPEEDUP = 64.0

#: The speed-ups that docs/reference/execution-graph.md, 3.3 lists.
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
    of_symbols: dict[int, list[SpeedupForecast]] = {symbol: [] for symbol in symbols}
    for path, run in zip(alone, application, strict=True):
        of_symbols[path.scenario.symbol].append(_forecast(path, run))
    work = solved.domain.work
    return {
        symbol: Forecast(
            name=work.symbol_names[symbol],
            kind="kernel" if symbol < work.kernel_symbols else "copy",
            speedups=tuple(answers),
        )
        for symbol, answers in of_symbols.items()
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


@frozen
class DominanceShift:
    """``steps`` at the usual speed-ups; ``at`` is the smallest tried one with another dominant symbol."""

    steps: tuple[DominanceStep, ...]
    at: float | None


def find_dominance_shift(solved: SolvedDomain, dominant: int, sums: SegmentSums | None) -> DominanceShift:
    """The shift away from symbol ``dominant``, in the exec-only weighting."""
    answers = _ask(solved, dominant, SPEEDUPS, sums)
    names = solved.domain.work.symbol_names
    steps = tuple(
        DominanceStep(speedup, names[answer.symbol] if answer else None, answer.fraction if answer else None)
        for speedup, answer in zip(SPEEDUPS, answers, strict=True)
    )
    low = 1.0
    for speedup, answer in zip(SPEEDUPS, answers, strict=True):
        if answer is None or answer.symbol != dominant:
            return DominanceShift(steps, _narrowed(solved, dominant, low, speedup, sums))
        low = speedup
    return DominanceShift(steps, None)


def _narrowed(
    solved: SolvedDomain, dominant: int, low: float, high: float, sums: SegmentSums | None
) -> float:
    """The smallest tried speed-up above ``low`` and up to ``high`` with another dominant symbol."""
    if high == inf:
        high = 2 * low
        while not _shifted(solved, dominant, high, sums):
            if high >= _LARGEST_SPEEDUP:
                return inf
            low, high = high, 2 * high
    for _ in range(_HALVINGS):
        # Two decimals are what is reported, and what is asked for must be what is reported.
        middle = round(sqrt(low * high), 2)
        if not low < middle < high:
            break
        if _shifted(solved, dominant, middle, sums):
            high = middle
        else:
            low = middle
    return high


def _shifted(solved: SolvedDomain, dominant: int, speedup: float, sums: SegmentSums | None) -> bool:
    (answer,) = _ask(solved, dominant, (speedup,), sums)
    return answer is None or answer.symbol != dominant


def _ask(
    solved: SolvedDomain, dominant: int, speedups: tuple[float, ...], sums: SegmentSums | None
) -> list[Dominance | None]:
    return dominance_after(solved.graph, solved.weights, solved.domain.symbol, dominant, speedups, sums)
