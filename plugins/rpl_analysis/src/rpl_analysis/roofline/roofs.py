"""Ceilings over a kernel, its shares of them, the side of the ridge, and ceilings it seems to exceed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.sums_of_quantities import exactness_of_part, exactness_of_sum, is_open_above
from rpl_analysis.roofline.model import Bound, Roof
from rpl_analysis.roofline.quotients import largest, scaled
from rpl_analysis.roofline.work import untyped_flops
from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.metric import Exactness, Metric
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_analysis.roofline.model import FlopModels, LevelTraffic, WorkOfType
    from rpl_core.model.device import ComputeCeiling, DeviceModel

__all__ = ["Rates", "bound_of", "exceeded_ceilings", "roof_of"]

_SHARE_FORMULA = "sum over data types of rate / ceiling, on the busier pipe"


@frozen
class Rates:
    """What a kernel achieved, as far as the roofs need it."""

    models: FlopModels
    types: tuple[WorkOfType, ...]
    gflops: Metric
    gbps: Metric
    dominant: tuple[str, Pipe] | None


def roof_of(rates: Rates, device: DeviceModel, origin: CeilingOrigin) -> Roof:
    """The roof of one origin over a kernel; what the device does not know is ``None`` or unknown."""
    compute = _ceiling(device, rates.dominant, origin) if rates.dominant else None
    memory = device.memory_ceiling("hbm", origin)
    compute_share = _compute_share(rates, device, origin)
    if memory is None:
        reason = f"no {origin.value} HBM ceiling is known for {device.name}"
        if device.unknown_facts and device.memory_ceiling("hbm", CeilingOrigin.SPEC) is None:
            reason += f", {device.product}; name the product with --device"
        memory_share = Metric.unknown("fraction", reason)
    else:
        memory_share = scaled(rates.gbps, 1 / memory.peak_gbps, "fraction", "GB/s / ceiling", memory.source)
    return Roof(
        origin,
        compute,
        memory,
        compute.peak_gflops / memory.peak_gbps if compute and memory else None,
        compute_share,
        memory_share,
        largest((compute_share, memory_share), "fraction", "achieved / attainable at this intensity"),
    )


def _ceiling(device: DeviceModel, kind: tuple[str, Pipe], origin: CeilingOrigin) -> ComputeCeiling | None:
    """The ceiling of a type; FP32 benchmarks of the VALU may only exist at the packed rate."""
    data_type, pipe = kind
    ceiling = device.compute_ceiling(data_type, pipe, origin)
    if ceiling is None and pipe is Pipe.VALU:
        ceiling = device.compute_ceiling(data_type, Pipe.VALU_PACKED, origin)
    return ceiling


def _compute_share(rates: Rates, device: DeviceModel, origin: CeilingOrigin) -> Metric:
    if rates.models.selected == "valu_width":
        ceiling = _ceiling(device, ("F32", Pipe.VALU), origin)
        if ceiling is None:
            return _no_ceiling("F32", origin, device)
        return scaled(rates.gflops, 1 / ceiling.peak_gflops, "fraction", "GFLOP/s / ceiling", ceiling.source)
    if rates.gflops.value is None:
        return Metric.unknown("fraction", rates.gflops.reason or "not recorded", rates.gflops.missing)
    shares: dict[Pipe, list[Metric]] = {}
    for one in rates.types:
        ceiling = _ceiling(device, (one.data_type, one.pipe), origin)
        if one.gops.value is None:
            continue
        if ceiling is None and one.gops.value > 0:
            return _no_ceiling(one.data_type, origin, device)
        per_peak = 1 / ceiling.peak_gflops if ceiling is not None else 0.0
        # Packed instructions run on the vector unit: their share of it adds to that of the others.
        unit = Pipe.VALU if one.pipe is Pipe.VALU_PACKED else one.pipe
        shares.setdefault(unit, []).append(scaled(one.gops, per_peak, "fraction", ""))
    share = largest([_sum(parts) for parts in shares.values()], "fraction", _SHARE_FORMULA)
    known_in_part = is_open_above(rates.gflops) or untyped_flops(rates.models, rates.types)
    if not known_in_part or share.value is None:
        return share
    exactness = exactness_of_part(share.exactness)
    return attrs.evolve(share, exactness=exactness, upper=None, partial=exactness is Exactness.ESTIMATE)


def _no_ceiling(data_type: str, origin: CeilingOrigin, device: DeviceModel) -> Metric:
    return Metric.unknown("fraction", f"no {origin.value} {data_type} ceiling is known for {device.name}")


def _sum(parts: Sequence[Metric]) -> Metric:
    exactness = exactness_of_sum(part.exactness for part in parts)
    ends = sum(part.value or 0.0 if part.upper is None else part.upper for part in parts)
    return attrs.evolve(
        parts[0],
        value=sum(part.value or 0.0 for part in parts),
        exactness=exactness,
        upper=ends if exactness is Exactness.INTERVAL else None,
        counters=tuple(sorted({name for part in parts for name in part.counters})),
        missing=tuple(sorted({name for part in parts for name in part.missing})),
        partial=exactness is Exactness.ESTIMATE and is_open_above(*parts),
    )


def bound_of(intensity: Metric, roofs: Sequence[Roof], bytes_moved: Metric) -> tuple[Bound | None, str]:
    """The side of the ridge of the first roof that has one, and why; ``None`` when it is not decided.

    ``intensity`` counts all arithmetic with a ceiling per byte. An interval or a lower bound decides only
    when the true value cannot lie on the other side.
    """
    if intensity.value is None:
        if bytes_moved.value == 0 and bytes_moved.exactness is Exactness.EXACT:
            return Bound.COMPUTE, "no byte left the caches"
        return None, intensity.reason or "the intensity is unknown"
    if intensity.value == 0 and intensity.exactness is Exactness.EXACT:
        return Bound.MEMORY, "no arithmetic was counted"
    roof = next((one for one in roofs if one.ridge is not None), None)
    if roof is None or roof.ridge is None:
        return None, "no ridge is known: a ceiling is missing"
    side = _side(intensity, roof.ridge)
    if side is Bound.COMPUTE and is_open_above(bytes_moved):
        side = None  # with all bytes counted the intensity may lie below the ridge
    text = f"{intensity.value:.4g} FLOP/B against a {roof.origin.value} ridge of {roof.ridge:.4g}"
    if side is None:
        return None, f"undecided, because figures are incomplete: {text}"
    return side, text


def _side(intensity: Metric, ridge: float) -> Bound | None:
    assert intensity.value is not None
    low = Bound.MEMORY if intensity.value < ridge else Bound.COMPUTE
    if is_open_above(intensity):
        return low if low is Bound.COMPUTE else None
    if intensity.exactness is Exactness.INTERVAL and intensity.upper is not None:
        high = Bound.MEMORY if intensity.upper < ridge else Bound.COMPUTE
        return low if low is high else None
    return low


def exceeded_ceilings(rates: Rates, levels: Sequence[LevelTraffic], device: DeviceModel) -> tuple[str, ...]:
    """Data-sheet ceilings below an achieved rate, such as ``"hbm"``, ``"l2"`` or ``"F64 valu"``."""
    exceeded = []
    memory = device.memory_ceiling("hbm", CeilingOrigin.SPEC)
    if memory is not None and rates.gbps.value is not None and rates.gbps.value > memory.peak_gbps:
        exceeded.append("hbm")
    for level in levels:
        rate = level.achieved_gbps.value
        if level.level != "hbm" and rate is not None and level.spec_gbps and rate > level.spec_gbps:
            exceeded.append(level.level)
    for one in rates.types:
        pipes = (Pipe.VALU, Pipe.VALU_PACKED) if one.pipe is Pipe.VALU else (one.pipe,)
        ceilings = [device.compute_ceiling(one.data_type, pipe, CeilingOrigin.SPEC) for pipe in pipes]
        peaks = [ceiling.peak_gflops for ceiling in ceilings if ceiling is not None]
        if peaks and one.gops.value is not None and one.gops.value > max(peaks):
            exceeded.append(f"{one.data_type} {one.pipe.value}")
    return tuple(exceeded)
