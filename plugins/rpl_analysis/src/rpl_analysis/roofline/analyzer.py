"""The roofline analyzer: times and quantities in, every kernel under its ceilings out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.architecture import architecture_of
from rpl_analysis.facts import INSTRUCTION_MIX, KERNEL_QUANTITIES, KERNEL_TIMES, ROOFLINE
from rpl_analysis.options import FLOP_MODEL
from rpl_analysis.roofline.model import RooflineResult, RooflineStatus
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.metric import Exactness, Metric, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_analysis.counters.model import KernelQuantities
    from rpl_analysis.instruction_mix.mix import KernelMix, NoMix
    from rpl_analysis.roofline.kernel import KernelFigures
    from rpl_analysis.roofline.model import KernelRoofline
    from rpl_analysis.runtime.model import KernelTime

__all__ = ["RooflineAnalyzer"]

_HOW_TO_COLLECT = "rpl profile --roofline -- ./app"


class RooflineAnalyzer(Analyzer):
    """Divides work and traffic per launch (counters) by time per launch (timing runs)."""

    name = "roofline"
    summary = "arithmetic intensity and achieved rates against the ceilings of the device"
    requires = frozenset({KERNEL_TIMES, KERNEL_QUANTITIES})
    wants = frozenset({INSTRUCTION_MIX})
    provides = frozenset({ROOFLINE})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        quantities = context.facts.get(KERNEL_QUANTITIES)
        requested = context.options[FLOP_MODEL]
        if context.device is None or quantities is None:
            return AnalysisOutcome({ROOFLINE: _without_quantities(context)})
        # Imported for recordings with counters only: start-up is most of a small analysis.
        from rpl_analysis.roofline.application import application_roofline
        from rpl_analysis.roofline.kernel import kernel_roofline
        from rpl_analysis.roofline.warnings import roofline_diagnostics

        times: Mapping[str, KernelTime] = context.facts[KERNEL_TIMES] or {}
        mixes: Mapping[str, KernelMix | NoMix] = context.facts.get(INSTRUCTION_MIX) or {}
        figures = _kernel_figures(times, quantities, context.recording.origin)
        kernels = tuple(attrs.evolve(kernel, mix=mixes.get(kernel.name)) for kernel in figures)
        device = attrs.evolve(context.device, architecture_facts=architecture_of(context))
        placed = {k.name: kernel_roofline(k, device, requested) for k in kernels}
        usable = any(k.flops.value is not None or k.bytes.value is not None for k in placed.values())
        result = RooflineResult(
            RooflineStatus.AVAILABLE if usable else RooflineStatus.UNAVAILABLE,
            requested,
            reason=None if usable else _why_unusable(placed.values()),
            how_to_collect=None if usable else _HOW_TO_COLLECT,
            device=device.name,
            compute_ceilings=device.compute_ceilings,
            memory_ceilings=device.memory_ceilings,
            kernels=placed,
            application=application_roofline(kernels, device, requested, placed) if usable else None,
        )
        return AnalysisOutcome({ROOFLINE: result}, roofline_diagnostics(result, device))


def _without_quantities(context: AnalysisContext) -> RooflineResult:
    requested = context.options[FLOP_MODEL]
    missing = context.recording.counters_missing
    if not context.recording.counter_passes and missing is not None:
        return RooflineResult(RooflineStatus.UNAVAILABLE, requested, missing, _HOW_TO_COLLECT)
    if not context.recording.counter_passes:
        # An emulator has no counters that could be collected.
        how = None if context.recording.origin is Origin.MODELLED else _HOW_TO_COLLECT
        return RooflineResult(RooflineStatus.NOT_COLLECTED, requested, "no counter pass was recorded", how)
    return RooflineResult(
        RooflineStatus.UNAVAILABLE,
        requested,
        "counters were recorded, but the device is unknown, so their meaning is too",
        "name the device with --device, or install its plugin",
    )


def _kernel_figures(
    times: Mapping[str, KernelTime], quantities: Mapping[str, KernelQuantities], origin: Origin
) -> tuple[KernelFigures, ...]:
    """Kernels in the order of their times, then those that only counter passes saw, by name."""
    names = dict.fromkeys((*times, *sorted(quantities)))
    return tuple(_figures_of(name, times.get(name), quantities.get(name), origin) for name in names)


def _figures_of(
    name: str, time: KernelTime | None, quantities: KernelQuantities | None, origin: Origin
) -> KernelFigures:
    from rpl_analysis.roofline.kernel import KernelFigures

    figures = {} if quantities is None else {q: value.per_launch for q, value in quantities.values.items()}
    launches = None if time is None else time.launches
    if quantities is not None and launches is not None and launches != quantities.launches:
        figures = {quantity: _as_estimate(metric) for quantity, metric in figures.items()}
    counted = 0 if quantities is None else quantities.launches
    return KernelFigures(name, figures, _time(time, origin), launches, counted)


def _as_estimate(metric: Metric) -> Metric:
    """A mean over other launches than the timed ones: exact no longer."""
    if metric.exactness is Exactness.EXACT:
        return attrs.evolve(metric, exactness=Exactness.ESTIMATE)
    return metric


def _time(time: KernelTime | None, origin: Origin) -> Metric:
    if time is None or not time.launches:
        return Metric.unknown("ns", "no timing run has this kernel")
    if time.total_ns <= 0:
        return Metric.unknown("ns", "its dispatches have a duration of zero")
    per_launch = time.total_ns / time.launches
    return Metric(per_launch, "ns", time.exactness, origin, formula="mean (end - start) per launch")


def _why_unusable(placed: Iterable[KernelRoofline]) -> str:
    reasons = [kernel.bytes.reason for kernel in placed if kernel.bytes.reason]
    return reasons[0] if reasons else "no kernel has counters"
