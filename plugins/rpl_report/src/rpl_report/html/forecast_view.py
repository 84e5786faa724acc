"""The what-if section: what a faster kernel brings end to end, as bars over one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import between
from rpl_core.values import frozen
from rpl_report.html.figures import factor, table_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.contracts.dag import DagDocument, DominancePart, ForecastPart, SpeedupForecastPart
    from rpl_report.html.kernel_identity import Colours, KernelNames

__all__ = ["ForecastBar", "ForecastView", "GainStep", "forecast_view"]


@frozen
class GainStep:
    """``gain`` and ``application`` with both ends where they differ; ``width``: of the widest, in percent."""

    speedup: str
    gain: str
    application: str
    width: float


@frozen
class ForecastBar:
    name: str
    target: str | None
    css: str
    kind: str
    steps: tuple[GainStep, ...]  # ascending speed-up; the last one is the ceiling
    path_ceiling: float | None
    speedup_ceiling: float | None


@frozen
class ForecastView:
    bars: tuple[ForecastBar, ...] = ()
    speedups: tuple[str, ...] = ()
    makespan_ns: int | None = None
    dominance: tuple[tuple[str, str, float | None], ...] = ()  # speed-up, then dominant kernel, its share
    dominant: str | None = None
    shift_at: str | None = None
    order_known: bool = True
    at_most: bool = False  # upper ends: nothing tells which gaps the host needed
    host_threads: int = 0


def forecast_view(dag: DagDocument, names: KernelNames, colours: Colours) -> ForecastView:
    gains = [_most(step) for entry in dag.forecasts for step in entry.speedups]
    widest = max(gains, default=0)
    symbols = {(symbol.name, symbol.kind): symbol for symbol in dag.symbols}
    bars = []
    for entry in dag.forecasts:
        symbol = symbols.get((entry.name, entry.kind))
        bars.append(
            ForecastBar(
                name=_named(entry.name, entry.kind, names),
                target=names.of(entry.name) if entry.kind == "kernel" else None,
                css=f"c{colours.of(entry.name, entry.kind)}",
                kind=entry.kind,
                steps=_steps(entry, widest, dag.makespan_ns),
                path_ceiling=symbol.path_ceiling if symbol else None,
                speedup_ceiling=symbol.speedup_ceiling if symbol else None,
            )
        )
    first = dag.dominant_work
    kinds = {symbol.name: symbol.kind for symbol in dag.symbols}
    return ForecastView(
        bars=tuple(bars),
        speedups=tuple(factor(step.speedup) for step in dag.forecasts[0].speedups) if dag.forecasts else (),
        makespan_ns=dag.makespan_ns,
        order_known=dag.order_known,
        at_most=dag.order_known and dag.sync_info == "none",
        host_threads=dag.host_threads or 0,
        dominance=tuple(_step(part, kinds, names) for part in dag.dominance),
        dominant=_named(first.name, first.kind, names) if first else None,
        shift_at=factor(dag.dominance_shift_at) if dag.dominance_shift_at is not None else None,
    )


def _steps(entry: ForecastPart, widest: int, makespan_ns: int | None) -> tuple[GainStep, ...]:
    return tuple(
        GainStep(
            speedup=factor(step.speedup),
            gain=between(*(table_time(gain, makespan_ns) for gain in _ends(step))),
            application=between(*(_as_fast(step, gain) for gain in _ends(step))),
            width=100 * max(_most(step), 0) / widest if widest > 0 else 0,
        )
        for step in entry.speedups
    )


def _ends(step: SpeedupForecastPart) -> tuple[int, ...]:
    most = step.application_gain_at_most_ns
    return (step.application_gain_ns,) if most is None else (step.application_gain_ns, most)


def _most(step: SpeedupForecastPart) -> int:
    return _ends(step)[-1]


def _as_fast(step: SpeedupForecastPart, gain_ns: int) -> str:
    """How many times as fast the application becomes by the gain."""
    if gain_ns == step.application_gain_ns:
        return factor(step.application_speedup)
    makespan = step.application_ns + step.application_gain_ns
    return factor(makespan / (makespan - gain_ns) if makespan > gain_ns else None)


def _step(part: DominancePart, kinds: Mapping[str, str], names: KernelNames) -> tuple[str, str, float | None]:
    dominant = part.dominant_symbol
    name = _named(dominant, kinds.get(dominant, "kernel"), names) if dominant else "nothing"
    return factor(part.speedup), name, part.fraction


def _named(name: str, kind: str, names: KernelNames) -> str:
    return names.work(name, kind) if kind == "copy" else names.short(name)
