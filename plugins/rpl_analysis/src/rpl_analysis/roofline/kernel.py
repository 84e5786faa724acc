"""One kernel on the roofline, from its quantities per launch and its time per launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.sums_of_quantities import exactness_of_part, exactness_of_sum, is_open_above
from rpl_analysis.roofline.corrections import flop_corrections
from rpl_analysis.roofline.model import KernelRoofline, LevelTraffic
from rpl_analysis.roofline.quotients import quotient, scaled
from rpl_analysis.roofline.roofs import Rates, bound_of, exceeded_ceilings, roof_of
from rpl_analysis.roofline.vocabulary import CACHES, LEVELS, typed_work
from rpl_analysis.roofline.work import compare_models, dominant_type, selected_flops, work_by_type
from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.metric import Exactness, Metric
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_analysis.instruction_mix.mix import KernelMix, NoMix
    from rpl_analysis.roofline.model import Roof, WorkOfType
    from rpl_core.model.device import DeviceModel

__all__ = ["KernelFigures", "kernel_roofline"]


@frozen
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
    counter_map = device.counter_map
    moved, source = _bytes(figures, counter_map.memory_bytes)
    work, traffic = _name(models.selected), source or counter_map.memory_bytes[0]
    types = work_by_type(figures, time_ns, typed_work(counter_map))
    rates = Rates(
        models,
        types,
        quotient(flops, time_ns, "GFLOP/s", f"{work} / time"),
        quotient(moved, time_ns, "GB/s", f"{traffic} / time"),
        dominant_type(models, types, device),
    )
    spec = roof_of(rates, device, CeilingOrigin.SPEC)
    measured = roof_of(rates, device, device.benchmarked)
    per_byte = quotient(_arithmetic(flops, types, models.selected), moved, "OP/B", "operations / bytes")
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
        corrections=flop_corrections(figures, kernel.mix, device),
        active_lane_share=_active_lane_share(rates, figures, device, (spec, measured)),
    )


def _active_lane_share(
    rates: Rates, figures: Mapping[str, Metric], device: DeviceModel, roofs: Sequence[Roof]
) -> Metric | None:
    """Share of the arithmetic ceilings without the work of idle lanes; ``None`` where no lane is known idle.

    Packed instructions change no share: the unpacked ceilings count instructions as the counters do.
    """
    lanes = figures.get("active_lane_fraction")
    if lanes is None or lanes.value is None or lanes.value >= 1 or rates.models.selected != "per_op":
        return None
    types = tuple(
        attrs.evolve(one, gops=scaled(one.gops, lanes.value, "GOP/s", "rate x active_lane_fraction"))
        if one.pipe is not Pipe.MFMA
        else one
        for one in rates.types
    )
    origin = next((roof.origin for roof in roofs if roof.memory is not None), roofs[-1].origin)
    return roof_of(attrs.evolve(rates, types=types), device, origin).compute_share


def _name(model: str | None) -> str:
    return "flops_valu_width" if model == "valu_width" else "flops"


def _bytes(figures: Mapping[str, Metric], sources: Sequence[str]) -> tuple[Metric, str | None]:
    """Bytes of memory traffic and the quantity they came from; later sources only where no better one is."""
    for name in sources:
        figure = figures.get(name)
        if figure is not None and figure.value is not None:
            return figure, name
    return figures.get(sources[0], Metric.unknown("B", f"the device defines no {sources[0]}")), None


def _arithmetic(flops: Metric, types: Sequence[WorkOfType], model: str | None) -> Metric:
    """FLOPs plus operations that are no FLOPs: what an arithmetic ceiling can limit."""
    total = flops
    if model == "valu_width" or flops.value is None:
        return total
    for integer in (one.operations for one in types if not one.floating):
        total = _with_integers(total, integer)
    return total


def _with_integers(flops: Metric, integer: Metric) -> Metric:
    assert flops.value is not None
    if integer.value is None:
        exactness, value, upper = exactness_of_part(flops.exactness), flops.value, None
    else:
        exactness = exactness_of_sum((flops.exactness, integer.exactness))
        value = flops.value + integer.value
        upper = flops.upper + integer.value if exactness is Exactness.INTERVAL and flops.upper else None
    partial = exactness is Exactness.ESTIMATE and (integer.value is None or is_open_above(flops, integer))
    return attrs.evolve(flops, value=value, upper=upper, exactness=exactness, partial=partial)


def _levels(
    figures: Mapping[str, Metric], flops: Metric, time_ns: Metric, device: DeviceModel
) -> tuple[LevelTraffic, ...]:
    levels = []
    for name, level in LEVELS:
        if name not in figures:
            continue
        spec = device.memory_ceiling(level, CeilingOrigin.SPEC)
        measured = device.memory_ceiling(level, CeilingOrigin.MEASURED)
        published = device.memory_ceiling(level, CeilingOrigin.PUBLISHED)
        levels.append(
            LevelTraffic(
                level,
                figures[name],
                quotient(flops, figures[name], "FLOP/B", f"FLOPs / {name}"),
                quotient(figures[name], time_ns, "GB/s", f"{name} / time"),
                spec.peak_gbps if spec else None,
                measured.peak_gbps if measured else None,
                published.peak_gbps if published else None,
            )
        )
    return tuple(levels)
