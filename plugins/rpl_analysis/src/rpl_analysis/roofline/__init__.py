"""The roofline: work and traffic of each kernel against the ceilings of the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.contracts.roofline import (
    ApplicationRooflineDoc,
    CeilingsPart,
    ComputeCeilingDoc,
    KernelRooflineDoc,
    MemoryCeilingDoc,
    RooflineResult,
    RooflineStatus,
)
from rpl_analysis.counters.quantities import (
    KernelQuantities,
    exactness_of_part,
    exactness_of_sum,
    is_open_above,
    low_or_middle,
)
from rpl_analysis.facts import INSTRUCTION_MIX, KERNEL_QUANTITIES, KERNEL_TIMES, ROOFLINE
from rpl_analysis.occupancy import architecture_of
from rpl_analysis.options import FLOP_MODEL
from rpl_analysis.text import shown_names
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.device import CeilingOrigin, DeviceModel
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.text import counted

if TYPE_CHECKING:
    from rpl_analysis.instruction_mix import KernelMix, NoMix
    from rpl_analysis.roofline.kernel import KernelFigures
    from rpl_analysis.runtime.timing import KernelTime

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
        from rpl_analysis.roofline.kernel import kernel_roofline

        times: Mapping[str, KernelTime] = context.facts[KERNEL_TIMES] or {}
        mixes: Mapping[str, KernelMix | NoMix] = context.facts.get(INSTRUCTION_MIX) or {}
        figures = _kernel_figures(times, quantities, context.recording.origin)
        kernels = tuple(attrs.evolve(kernel, mix=mixes.get(kernel.name)) for kernel in figures)
        device = attrs.evolve(context.device, architecture_facts=architecture_of(context))
        placed = tuple(kernel_roofline(kernel, device, requested) for kernel in kernels)
        usable = any(k.flops.value is not None or k.bytes.value is not None for k in placed)
        result = RooflineResult(
            status=RooflineStatus.AVAILABLE if usable else RooflineStatus.UNAVAILABLE,
            requested_flop_model=requested,
            reason=None if usable else _why_unusable(placed),
            how_to_collect=None if usable else _HOW_TO_COLLECT,
            device=device.name,
            ceilings=device_ceilings(device),
            kernels=placed,
            application=application_roofline(kernels, device, requested, placed) if usable else None,
        )
        return AnalysisOutcome({ROOFLINE: result}, roofline_diagnostics(result, device))


def _without_quantities(context: AnalysisContext) -> RooflineResult:
    requested = context.options[FLOP_MODEL]
    missing = context.recording.counters_missing
    if not context.recording.counter_passes and missing is not None:
        return RooflineResult(
            status=RooflineStatus.UNAVAILABLE,
            requested_flop_model=requested,
            reason=missing,
            how_to_collect=_HOW_TO_COLLECT,
        )
    if not context.recording.counter_passes:
        # An emulator has no counters that could be collected.
        how = None if context.recording.origin is Origin.MODELLED else _HOW_TO_COLLECT
        return RooflineResult(
            status=RooflineStatus.NOT_COLLECTED,
            requested_flop_model=requested,
            reason="no counter pass was recorded",
            how_to_collect=how,
        )
    return RooflineResult(
        status=RooflineStatus.UNAVAILABLE,
        requested_flop_model=requested,
        reason="counters were recorded, but the device is unknown, so their meaning is too",
        how_to_collect="name the device with --device, or install its plugin",
    )


def device_ceilings(device: DeviceModel) -> CeilingsPart:
    """All that are known, as documents hold them."""
    return CeilingsPart(
        compute=tuple(
            ComputeCeilingDoc(c.data_type, c.pipe, c.peak_gflops, c.origin, c.source)
            for c in device.compute_ceilings
        ),
        memory=tuple(
            MemoryCeilingDoc(c.level, c.peak_gbps, c.origin, c.source) for c in device.memory_ceilings
        ),
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


def _why_unusable(placed: Iterable[KernelRooflineDoc]) -> str:
    reasons = [kernel.bytes.reason for kernel in placed if kernel.bytes.reason]
    return reasons[0] if reasons else "no kernel has counters"


# What a reader of the roofline should know: fallbacks, other launch counts, ceilings exceeded.


def roofline_diagnostics(result: RooflineResult, device: DeviceModel) -> tuple[Diagnostic, ...]:
    """Diagnostics about all kernels together, in a fixed order."""
    if result.status is not RooflineStatus.AVAILABLE:
        return (_unusable(result),)
    called = shown_names(kernel.name for kernel in result.kernels)
    kernels = tuple(attrs.evolve(kernel, name=called[kernel.name]) for kernel in result.kernels)
    return (
        *_fallbacks(kernels, device),
        *_untyped(kernels),
        *_launches(kernels),
        *_coverage(kernels),
        *_exceeded(kernels, device),
    )


def _unusable(result: RooflineResult) -> Diagnostic:
    return Diagnostic(
        "roofline.unavailable",
        f"counters were recorded, but neither FLOPs nor bytes follow from them: {result.reason}",
        cause="the recording holds other counters than the roofline needs",
        remedy=result.how_to_collect,
    )


def _fallbacks(kernels: Sequence[KernelRooflineDoc], device: DeviceModel) -> list[Diagnostic]:
    replaced = [kernel for kernel in kernels if kernel.models.fallback]
    best = device.counter_map.memory_bytes[0]
    legacy = [kernel for kernel in kernels if kernel.byte_source not in (None, best)]
    diagnostics = []
    if replaced:
        diagnostics.append(
            Diagnostic(
                "roofline.other_flop_model",
                f"{replaced[0].models.fallback}: low confidence",
                cause="the counters of the model asked for were not recorded",
                remedy="collect the recommended set with `rpl profile --roofline`",
                count=len(replaced),
            )
        )
    if legacy:
        sources = legacy[0].bytes.counters or (legacy[0].byte_source or "",)
        diagnostics.append(
            Diagnostic(
                "roofline.legacy_bytes",
                f"bytes come from {' and '.join(sources)}, the recording has nothing better",
                remedy="collect the recommended set with `rpl profile --roofline`",
                count=len(legacy),
            )
        )
    return diagnostics


def _untyped(kernels: Sequence[KernelRooflineDoc]) -> list[Diagnostic]:
    from rpl_analysis.roofline.kernel import untyped_flops

    untyped = [(kernel, rest) for kernel in kernels if (rest := untyped_flops(kernel.models, kernel.types))]
    if not untyped:
        return []
    kernel, rest = untyped[0]
    return [
        Diagnostic(
            "roofline.untyped_flops",
            f"{rest:.4g} FLOP per launch of {kernel.name} are of no data type that the device declares, so"
            " shares of the arithmetic ceilings are lower bounds",
            cause="the counter map counts them in flops, but no entry of CounterMap.work does",
            remedy="report it to the author of the device plugin",
            count=len(untyped),
        )
    ]


def _launches(kernels: Sequence[KernelRooflineDoc]) -> list[Diagnostic]:
    known = [kernel for kernel in kernels if kernel.launches is not None and kernel.counter_launches]
    differing = [kernel for kernel in known if kernel.launches != kernel.counter_launches]
    if not differing:
        return []
    first = differing[0]
    launches = counted(first.launches, "launch", "launches", shown=f"{first.launches:g}")
    return [
        Diagnostic(
            "roofline.launches_differ",
            f"{first.name} has {launches} per timing run and {first.counter_launches} in the"
            " counter passes; figures per launch are compared, as estimates",
            cause="the counter passes were filtered, or the application launches differently from run to run",
            count=len(differing),
        )
    ]


def _coverage(kernels: Sequence[KernelRooflineDoc]) -> list[Diagnostic]:
    timeless = [kernel for kernel in kernels if kernel.counter_launches and kernel.time_ns.value is None]
    uncounted = [kernel for kernel in kernels if not kernel.counter_launches]
    diagnostics = []
    if timeless:
        diagnostics.append(
            Diagnostic(
                "roofline.no_time",
                f"kernels with counters have no usable time, so no rates ({timeless[0].name}:"
                f" {timeless[0].time_ns.reason})",
                remedy="record a kernel trace without counters",
                count=len(timeless),
            )
        )
    if uncounted:
        diagnostics.append(
            Diagnostic(
                "roofline.no_counters",
                f"kernels of the timing run are in no counter pass, e.g. {uncounted[0].name}",
                Severity.INFO,
                cause="the counter passes were filtered, or the kernels only run sometimes",
                count=len(uncounted),
            )
        )
    return diagnostics


def _exceeded(kernels: Sequence[KernelRooflineDoc], device: DeviceModel) -> list[Diagnostic]:
    memory = [kernel for kernel in kernels if "hbm" in kernel.exceeds_ceiling]
    arithmetic = [kernel for kernel in kernels if set(kernel.exceeds_ceiling) - {"hbm"}]
    diagnostics = []
    if memory:
        diagnostics.append(_above_bandwidth(memory, device))
    if arithmetic:
        first = arithmetic[0]
        kinds = ", ".join(name for name in first.exceeds_ceiling if name != "hbm")
        diagnostics.append(
            Diagnostic(
                "roofline.above_peak",
                f"{first.name} seems to exceed the theoretical peak of {kinds}: not a record, a wrong figure",
                cause="counter passes and timing run did different work, or the clock exceeds the data sheet",
                remedy="compare the launches of the passes, or give --clock-mhz",
                count=len(arithmetic),
            )
        )
    return diagnostics


def _above_bandwidth(kernels: Sequence[KernelRooflineDoc], device: DeviceModel) -> Diagnostic:
    llc, first = device.llc_bytes, kernels[0]
    fits = llc is not None and all(k.bytes.value is not None and k.bytes.value <= llc for k in kernels)
    if fits:
        cause = "its data fit the Infinity Cache, whose hits count as traffic beyond L2"
    else:
        cause = "Infinity Cache hits count as traffic beyond L2, or the runs did different work"
    ceiling = device.memory_ceiling("hbm", CeilingOrigin.SPEC)
    assert ceiling is not None  # nothing exceeds an unknown ceiling
    return Diagnostic(
        "roofline.above_bandwidth",
        f"{first.name} moves {first.achieved_gbps.value:.0f} GB/s, above the HBM ceiling of"
        f" {ceiling.peak_gbps:g} GB/s ({ceiling.source}): not HBM bandwidth",
        Severity.INFO if fits else Severity.WARNING,
        cause=cause,
        count=len(kernels),
    )


# The whole application on the roofline: work and traffic of all kernels over their summed time.

#: Name of the application's entry; no kernel symbol contains a space.
APPLICATION = "all kernels"


def application_roofline(
    kernels: Sequence[KernelFigures],
    device: DeviceModel,
    requested_model: str,
    placed: Sequence[KernelRooflineDoc],
) -> ApplicationRooflineDoc | None:
    """Sums over one run: figures per launch times launches per timing run, over the summed kernel time.

    A kernel without counters makes the sums lower bounds. ``None`` when no kernel has a time. ``placed`` are
    the same kernels on the roofline.
    """
    from rpl_analysis.roofline.kernel import KernelFigures, additive, kernel_roofline

    timed = [kernel for kernel in kernels if kernel.launches and kernel.time_ns.value is not None]
    if not timed:
        return None
    names = [name for name in additive(device.counter_map) if any(name in k.figures for k in timed)]
    totals = {name: _total(name, timed) for name in names}
    total_ns = sum(_spent(kernel) for kernel in timed)
    counted = [kernel for kernel in timed if kernel.counter_launches]
    figures = KernelFigures(
        APPLICATION,
        totals,
        _total_time(timed, total_ns),
        1.0,
        sum(kernel.counter_launches for kernel in counted),
    )
    share = sum(_spent(kernel) for kernel in counted) / total_ns if total_ns else None
    roofline = kernel_roofline(figures, device, requested_model)
    by_name = {kernel.name: kernel for kernel in placed}
    corrections = {name: _corrected(name, timed, by_name) for name in roofline.corrections}
    roofline = attrs.evolve(roofline, corrections=corrections)
    return ApplicationRooflineDoc(roofline, len(timed), len(counted), share)


def _spent(kernel: KernelFigures) -> float:
    return (kernel.time_ns.value or 0.0) * (kernel.launches or 0.0)


def _total_time(timed: Sequence[KernelFigures], total_ns: float) -> Metric:
    exactness = exactness_of_sum(kernel.time_ns.exactness for kernel in timed)
    origin = Origin.weakest([k.time_ns.origin for k in timed if k.time_ns.origin is not None])
    return Metric(total_ns, "ns", exactness, origin, formula="sum of kernel times of one run")


def _total(name: str, timed: Sequence[KernelFigures]) -> Metric:
    parts = [(k.figures[name], k.launches or 0.0) for k in timed if name in k.figures]
    known = [(metric, launches) for metric, launches in parts if metric.value is not None]
    missing = tuple(sorted({counter for metric, _ in parts for counter in metric.missing}))
    unit = parts[0][0].unit
    if not known:
        return Metric.unknown(unit, parts[0][0].reason or "not recorded", missing)
    exactness = exactness_of_sum(metric.exactness for metric, _ in known)
    lacking = len(known) < len(timed)
    if lacking:
        exactness = exactness_of_part(exactness)
    upper = sum((m.value or 0.0 if m.upper is None else m.upper) * n for m, n in known)
    return Metric(
        value=sum(low_or_middle(metric, exactness) * launches for metric, launches in known),
        unit=unit,
        exactness=exactness,
        origin=Origin.weakest([m.origin for m, _ in known if m.origin is not None]),
        formula=f"sum of {name} x launches over kernels",
        counters=tuple(sorted({counter for metric, _ in known for counter in metric.counters})),
        missing=missing,
        upper=upper if exactness is Exactness.INTERVAL else None,
        note=f"known for {len(known)} of {len(timed)} kernels" if lacking else None,
        partial=exactness is Exactness.ESTIMATE and (lacking or is_open_above(*(m for m, _ in known))),
    )


def _corrected(
    correction: str, timed: Sequence[KernelFigures], placed: Mapping[str, KernelRooflineDoc]
) -> Metric:
    """The sum of one correction; unknown with a kernel of which it is unknown."""
    parts = [(placed[k.name].corrections[correction], k.launches or 0.0) for k in timed]
    lacking = [
        (k.name, metric.reason) for k, (metric, _) in zip(timed, parts, strict=True) if metric.value is None
    ]
    if lacking:
        return Metric.unknown("FLOP", f"{lacking[0][0]}: {lacking[0][1]}")
    origins = [metric.origin for metric, _ in parts if metric.origin is not None]
    return Metric(
        value=sum((metric.value or 0.0) * launches for metric, launches in parts),
        unit="FLOP",
        exactness=Exactness.ESTIMATE,
        origin=Origin.weakest(origins) if origins else None,
        formula=f"sum of {correction} x launches over kernels",
    )
