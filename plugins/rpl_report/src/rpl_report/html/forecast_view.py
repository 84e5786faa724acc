"""The what-if section: what a faster kernel brings end to end, as bars over one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_report.html.figures import factor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.contracts.dag import DagDocument, DominancePart, ForecastPart
    from rpl_report.html.kernel_identity import Colours, KernelNames

__all__ = ["ForecastBar", "ForecastView", "GainStep", "forecast_view"]


@frozen
class GainStep:
    """``width`` in percent of the widest bar."""

    speedup: str
    gain_ns: int
    application_speedup: float | None
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


def forecast_view(dag: DagDocument, names: KernelNames, colours: Colours) -> ForecastView:
    gains = [step.application_gain_ns for entry in dag.forecasts for step in entry.speedups]
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
                steps=_steps(entry, widest),
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
        dominance=tuple(_step(part, kinds, names) for part in dag.dominance),
        dominant=_named(first.name, first.kind, names) if first else None,
        shift_at=factor(dag.dominance_shift_at) if dag.dominance_shift_at is not None else None,
    )


def _steps(entry: ForecastPart, widest: int) -> tuple[GainStep, ...]:
    return tuple(
        GainStep(
            speedup=factor(step.speedup),
            gain_ns=step.application_gain_ns,
            application_speedup=step.application_speedup,
            width=100 * max(step.application_gain_ns, 0) / widest if widest > 0 else 0,
        )
        for step in entry.speedups
    )


def _step(part: DominancePart, kinds: Mapping[str, str], names: KernelNames) -> tuple[str, str, float | None]:
    dominant = part.dominant_symbol
    name = _named(dominant, kinds.get(dominant, "kernel"), names) if dominant else "nothing"
    return factor(part.speedup), name, part.fraction


def _named(name: str, kind: str, names: KernelNames) -> str:
    return names.work(name, kind) if kind == "copy" else names.short(name)
