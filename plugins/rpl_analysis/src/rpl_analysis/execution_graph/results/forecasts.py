"""What a faster kernel brings end to end, and which one dominates then: the graph solved again each time.

Both weightings are asked: dispatch intervals alone, and as executed, where launches, host time and waits stay
as they were recorded. Model: durations do not depend on what runs beside them
(docs/reference/execution-graph.md, 3.3).
"""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.contracts.dag import DominancePart, ForecastPart, GainPart, SpeedupForecastPart
from rpl_analysis.critical_path.path import dominance_after
from rpl_analysis.critical_path.weights import shrunk
from rpl_analysis.critical_path.whatif import Scenario, what_if_by
from rpl_analysis.execution_graph.results.unknown_order import ChangedWork
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import NodeWeights
    from rpl_analysis.critical_path.path import Dominance
    from rpl_analysis.critical_path.whatif import SegmentSums, WhatIf
    from rpl_analysis.execution_graph.results.domain import SolvedDomain
    from rpl_analysis.execution_graph.results.unknown_order import LaneOrder

__all__ = [
    "SPEEDUPS",
    "DominanceShift",
    "at_no_cost",
    "find_dominance_shift",
    "forecast_symbols",
    "most_gain_ns",
    "rank_forecasts",
    "rank_gains",
]

#: The shift is searched in steps of 1 / _STEPS, the finest speed-ups that the engine tells apart.
_STEPS = 1000
#: Inside a step it follows from the times on the path, exactly while that path stays.
_DECIMALS = 6
#: Speed-ups beyond this are not searched: the shift is reported at infinity only (chosen).
_LARGEST_SPEEDUP = 64.0

#: The speed-ups that docs/reference/execution-graph.md, 3.3 lists.
SPEEDUPS = (1.25, 1.5, 2.0, inf)
#: By which the forecasts are ranked: a speed-up that a kernel can reach, unlike infinity (chosen).
RANKED_BY = 2.0


def forecast_symbols(
    solved: SolvedDomain,
    executed: NodeWeights,
    symbols: Sequence[int],
    sums: SegmentSums | None,
    order: LaneOrder,
) -> dict[int, ForecastPart]:
    """Forecasts for ``symbols``; ``executed`` are the as-executed weights, ``sums`` as in what-ifs."""
    scenarios = [Scenario(symbol, speedup) for symbol in symbols for speedup in SPEEDUPS]
    of_symbol = solved.domain.symbol
    alone, application = what_if_by(solved.graph, (solved.weights, executed), of_symbol, scenarios, sums)
    of_symbols: dict[int, list[SpeedupForecastPart]] = {symbol: [] for symbol in symbols}
    for path, run in zip(alone, application, strict=True):
        of_symbols[path.scenario.symbol].append(_forecast(path, run))
    if not order.known:
        for symbol, parts in of_symbols.items():
            own = np.flatnonzero(solved.domain.work.symbol == symbol)
            of_symbols[symbol] = _ranged(parts, own, solved, order)
    work = solved.domain.work
    return {
        symbol: ForecastPart(
            name=work.symbol_names[symbol],
            kind="kernel" if symbol < work.kernel_symbols else "copy",
            speedups=tuple(answers),
        )
        for symbol, answers in of_symbols.items()
    }


def _forecast(path: WhatIf, run: WhatIf) -> SpeedupForecastPart:
    return SpeedupForecastPart(
        speedup=_told(path.scenario.speedup),
        critical_path_ns=path.predicted_ns,
        application_ns=run.predicted_ns,
        application_gain_ns=run.gain_ns,
        application_speedup=run.application_speedup,
        application_gain_at_most_ns=None,
    )


def _ranged(
    parts: Sequence[SpeedupForecastPart], own: NDArray[np.int64], solved: SolvedDomain, order: LaneOrder
) -> list[SpeedupForecastPart]:
    """The same under any order of lanes: both ends, the lower one in the place of what the graph says.

    ``own`` are the rows of the symbol that ``parts`` are about.
    """
    work, makespan, ranged = solved.domain.work, solved.graph.makespan_ns, []
    changed, duration = ChangedWork.of(work, own), work.end_ns[own] - work.begin_ns[own]
    for part in parts:
        saved = duration - shrunk(duration, inf if part.speedup is None else part.speedup)
        gain = changed.gain_range(saved, makespan, part.critical_path_ns if order.certain else None)
        left = makespan - gain.least_ns
        ranged.append(
            attrs.evolve(
                part,
                application_ns=left,
                application_gain_ns=gain.least_ns,
                application_speedup=makespan / left if left else None,
                application_gain_at_most_ns=gain.most_ns,
            )
        )
    return ranged


def _told(speedup: float) -> float | None:
    """As results hold it: infinitely fast is ``None``."""
    return None if speedup == inf else speedup


def at_no_cost(forecast: ForecastPart) -> SpeedupForecastPart:
    """What is forecast if the kernels of the name took no time."""
    return next(answer for answer in forecast.speedups if answer.speedup is None)


def most_gain_ns(answer: SpeedupForecastPart) -> int:
    """The upper end of what the application gains."""
    most = answer.application_gain_at_most_ns
    return answer.application_gain_ns if most is None else most


def rank_forecasts(forecasts: Sequence[ForecastPart], time_ns: Mapping[str, int]) -> tuple[ForecastPart, ...]:
    """By the most that is gained end to end at twice the speed, then at no cost, then by time and name."""

    def key(forecast: ForecastPart) -> tuple[int, int, int, str]:
        gains = {answer.speedup: most_gain_ns(answer) for answer in forecast.speedups}
        return (-gains[RANKED_BY], -gains[None], -time_ns[forecast.name], forecast.name)

    return tuple(sorted(forecasts, key=key))


def rank_gains(forecasts: Sequence[ForecastPart], idle_ns: int, makespan_ns: int) -> tuple[GainPart, ...]:
    """Idle time, kernels and copies by the most that each costs the application, largest first.

    ``forecasts`` are ranked: that order stays among equals.
    """
    gains = []
    if idle_ns:
        left = makespan_ns - idle_ns
        gains.append((idle_ns, GainPart("idle", None, idle_ns, makespan_ns / left if left else None, None)))
    for forecast in forecasts:
        free = at_no_cost(forecast)
        if (most := most_gain_ns(free)) > 0:
            gain = free.application_gain_ns, free.application_speedup, free.application_gain_at_most_ns
            gains.append((most, GainPart(forecast.kind, forecast.name, *gain)))
    return tuple(gain for _, gain in sorted(gains, key=lambda entry: -entry[0]))


@frozen
class DominanceShift:
    """``steps`` at the usual speed-ups; ``at`` is where another symbol overtakes."""

    steps: tuple[DominancePart, ...]
    at: float | None


def find_dominance_shift(solved: SolvedDomain, dominant: int, sums: SegmentSums | None) -> DominanceShift:
    """The shift away from symbol ``dominant``, in the exec-only weighting."""
    answers = _ask(solved, dominant, SPEEDUPS, sums)
    names = solved.domain.work.symbol_names
    steps = tuple(
        DominancePart(
            _told(speedup), names[answer.symbol] if answer else None, answer.fraction if answer else None
        )
        for speedup, answer in zip(SPEEDUPS, answers, strict=True)
    )
    low, lead = 1.0, _ask(solved, dominant, (1.0,), sums)[0]
    for speedup, answer in zip(SPEEDUPS, answers, strict=True):
        if answer is None or answer.symbol != dominant:
            return DominanceShift(steps, _Bracket(solved, dominant, sums).shift(low, lead, speedup))
        low, lead = speedup, answer
    return DominanceShift(steps, None)


@frozen(eq=False)
class _Bracket:
    """The search for the shift between a speed-up that keeps ``dominant`` first and one that does not."""

    solved: SolvedDomain
    dominant: int
    sums: SegmentSums | None

    def shift(self, low: float, at_low: Dominance | None, high: float) -> float:
        """The speed-up above ``low`` and up to ``high`` from which on another symbol is dominant."""
        if high == inf:
            high = 2 * low
            while (found := self._still_first(high)) is not None:
                if high >= _LARGEST_SPEEDUP:
                    return inf
                low, at_low, high = high, found, 2 * high
        kept, lost = round(low * _STEPS), round(high * _STEPS)
        while lost - kept > 1:
            # While the path stays, the next symbol overtakes where the lead is used up: two looks then do.
            overtaken = ceil(kept * at_low.lead) if at_low and at_low.lead < inf else lost
            for tried in (overtaken, overtaken - 1, (kept + lost) // 2):
                if not kept < tried < lost:
                    continue
                found = self._still_first(tried / _STEPS)
                if found is None:
                    lost = tried
                else:
                    kept, at_low = tried, found
        exact = kept * at_low.lead if at_low else kept
        return round(min(max(exact, kept), lost) / _STEPS, _DECIMALS)

    def _still_first(self, speedup: float) -> Dominance | None:
        (answer,) = _ask(self.solved, self.dominant, (speedup,), self.sums)
        return answer if answer is not None and answer.symbol == self.dominant else None


def _ask(
    solved: SolvedDomain, dominant: int, speedups: tuple[float, ...], sums: SegmentSums | None
) -> list[Dominance | None]:
    return dominance_after(solved.graph, solved.weights, solved.domain.symbol, dominant, speedups, sums)
