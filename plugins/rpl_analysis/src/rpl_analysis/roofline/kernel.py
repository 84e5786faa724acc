"""One kernel on the roofline, from its quantities per launch and its time per launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.sums_of_quantities import exactness_of_sum
from rpl_analysis.roofline.corrections import flop_corrections
from rpl_analysis.roofline.model import KernelRoofline, LevelTraffic
from rpl_analysis.roofline.quotients import quotient
from rpl_analysis.roofline.roofs import Rates, bound_of, exceeded_ceilings, roof_of
from rpl_analysis.roofline.vocabulary import CACHES, HBM_BYTES, LEGACY_BYTES, LEVELS
from rpl_analysis.roofline.work import compare_models, dominant_type, selected_flops, work_by_type
from rpl_core.model.device import CeilingOrigin
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_analysis.instruction_mix.model import KernelMix, NoMix
    from rpl_core.model.device import DeviceModel

__all__ = ["KernelFigures", "kernel_roofline"]


@attrs.frozen
class KernelFigures:
    """Quantities per launch by name, and the time per launch that they are set against (ns).

    ``mix`` comes from the kernel's code object; ``None`` where none was at hand.
    """

    name: str
    figures: Mapping[str, Metric]
    time_ns: Metric
    launches: float | None
    counter_launches: int
    mix: KernelMix | NoMix | None = None


def kernel_roofline(kernel: KernelFigures, device: DeviceModel, requested_model: str) -> KernelRoofline:
    """Place a kernel on the roofline of ``device``; unknown parts carry their reason."""
    figures, time_ns = kernel.figures, kernel.time_ns
    models = compare_models(figures, requested_model)
    flops = selected_flops(models)
    moved, source = _bytes(figures)
    work, traffic = _name(models.selected), source or HBM_BYTES
    types = work_by_type(figures, time_ns)
    rates = Rates(
        models,
        types,
        quotient(flops, time_ns, "GFLOP/s", f"{work} / time"),
        quotient(moved, time_ns, "GB/s", f"{traffic} / time"),
        dominant_type(models, types, device),
    )
    spec = roof_of(rates, device, CeilingOrigin.SPEC)
    measured = roof_of(rates, device, CeilingOrigin.MEASURED)
    per_byte = quotient(_arithmetic(flops, figures, models.selected), moved, "OP/B", "operations / bytes")
    levels = _levels(figures, flops, time_ns, device)
    bound, reason = bound_of(per_byte, (spec, measured), moved)
    return KernelRoofline(
        name=kernel.name,
        launches=kernel.launches,
        counter_launches=kernel.counter_launches,
        time_ns=time_ns,
        flops=flops,
        models=models,
        bytes=moved,
        byte_source=source,
        operational_intensity=quotient(flops, moved, "FLOP/B", f"{work} / {traffic}"),
        achieved_gflops=rates.gflops,
        achieved_gbps=rates.gbps,
        dominant=rates.dominant,
        spec=spec,
        measured=measured,
        bound=bound,
        bound_reason=reason,
        types=types,
        levels=levels,
        caches={name: figures[name] for name in CACHES if name in figures},
        exceeds_ceiling=exceeded_ceilings(rates, levels, device),
        corrections=flop_corrections(figures, kernel.mix),
    )


def _name(model: str | None) -> str:
    return "flops_valu_width" if model == "valu_width" else "flops"


def _bytes(figures: Mapping[str, Metric]) -> tuple[Metric, str | None]:
    """Bytes beyond L2 and the quantity they came from; the legacy source only where nothing better exists."""
    best = figures.get(HBM_BYTES, Metric.unknown("B", f"the device defines no {HBM_BYTES}"))
    if best.value is not None:
        return best, HBM_BYTES
    legacy = figures.get(LEGACY_BYTES)
    if legacy is not None and legacy.value is not None:
        return legacy, LEGACY_BYTES
    return best, None


def _arithmetic(flops: Metric, figures: Mapping[str, Metric], model: str | None) -> Metric:
    """FLOPs plus 8-bit integer matrix operations: what an arithmetic ceiling can limit."""
    integer = figures.get("mfma_ops_i8")
    if model == "valu_width" or flops.value is None or integer is None:
        return flops
    if integer.value is None:
        return attrs.evolve(flops, exactness=Exactness.LOWER_BOUND, missing=flops.missing + integer.missing)
    exactness = exactness_of_sum((flops.exactness, integer.exactness))
    upper = None if flops.upper is None else flops.upper + integer.value
    return attrs.evolve(flops, value=flops.value + integer.value, upper=upper, exactness=exactness)


def _levels(
    figures: Mapping[str, Metric], flops: Metric, time_ns: Metric, device: DeviceModel
) -> tuple[LevelTraffic, ...]:
    levels = []
    for name, level in LEVELS:
        if name not in figures:
            continue
        spec = device.memory_ceiling(level, CeilingOrigin.SPEC)
        measured = device.memory_ceiling(level, CeilingOrigin.MEASURED)
        levels.append(
            LevelTraffic(
                level,
                figures[name],
                quotient(flops, figures[name], "FLOP/B", f"FLOPs / {name}"),
                quotient(figures[name], time_ns, "GB/s", f"{name} / time"),
                spec.peak_gbps if spec else None,
                measured.peak_gbps if measured else None,
            )
        )
    return tuple(levels)
