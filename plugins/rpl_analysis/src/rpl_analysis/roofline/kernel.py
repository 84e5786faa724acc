"""One kernel on the roofline, from its quantities per launch and its time per launch.

The names of the quantities come first, then the work of a kernel, the roofs over it, what its FLOP count is
corrected by, and the kernel as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.contracts.roofline import (
    Bound,
    FlopModelMetrics,
    FlopModelName,
    KernelRooflineDoc,
    LevelPart,
    RoofPart,
    TypeWorkPart,
)
from rpl_analysis.counters.quantities import (
    exactness_of_part,
    exactness_of_sum,
    is_open_above,
    largest,
    quotient,
    scaled,
)
from rpl_analysis.instruction_mix import KernelMix, NoMix
from rpl_core.model.device import CeilingOrigin, Pipe, TypedWork
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_core.model.device import ComputeCeiling, CounterMap, DeviceModel

# Names of the quantities that the roofline takes from a device's counter map.
#
# A device plugin that wants a roofline defines those that its counters give; the rest is unknown there. Which
# quantities count the operations of which data type is the device's to say (``CounterMap.work``).

#: Model name -> quantity of all floating-point operations.
PER_OP = "flops"
VALU_WIDTH = "flops_valu_width"

#: (quantity, memory level)
LEVELS: tuple[tuple[str, str], ...] = (
    ("hbm_bytes", "hbm"),
    ("l2_bytes", "l2"),
    ("vl1d_bytes", "vl1d"),
    ("lds_bytes_moved", "lds"),
)

CACHES: tuple[str, ...] = ("l2_hit_rate", "vl1d_hit_rate", "sl1d_hit_rate", "l1i_hit_rate")


def additive(counter_map: CounterMap) -> tuple[str, ...]:
    """Quantities that add up over kernels."""
    names = (
        PER_OP,
        VALU_WIDTH,
        *(work.quantity for work in typed_work(counter_map)),
        *(name for name, _ in LEVELS),
        *counter_map.memory_bytes,
    )
    return tuple(dict.fromkeys(names))


def typed_work(counter_map: CounterMap) -> tuple[TypedWork, ...]:
    """The arithmetic by data type, as the device says or the names of its quantities tell."""
    named = (_work_by_name(quantity.name) for quantity in counter_map.quantities)
    return counter_map.work or tuple(work for work in named if work is not None)


def _work_by_name(quantity: str) -> TypedWork | None:
    pipe, _, rest = quantity.partition("_")
    counted, _, data_type = rest.partition("_")
    if pipe not in (Pipe.VALU.value, Pipe.MFMA.value) or counted not in ("flops", "ops") or not data_type:
        return None
    return TypedWork(quantity, data_type.upper(), Pipe(pipe), floating=counted == "flops")


# The work of a kernel: which FLOP model counts, operations per data type, and the dominant type.

#: Sums of floating-point figures differ by their order of summation.
_ROUNDING = 1e-9


def compare_models(figures: Mapping[str, Metric], requested: str) -> FlopModelMetrics:
    """Both FLOP models, and the one to use: the requested one if it says anything, else the other.

    A per_op lower bound of zero says nothing: none of the operations that were counted occurred.
    """
    per_op, valu_width = _figure(figures, PER_OP), _figure(figures, VALU_WIDTH)
    known = {"per_op": _says_something(per_op), "valu_width": valu_width.value is not None}
    wanted: FlopModelName = "valu_width" if requested == "valu_width" else "per_op"
    other: FlopModelName = "per_op" if wanted == "valu_width" else "valu_width"
    selected: FlopModelName | None = None
    if known[wanted]:
        selected = wanted
    elif known[other]:
        selected = other
    elif per_op.value is not None:
        selected = "per_op"  # a lower bound of zero is still better than nothing
    replaced = selected not in (wanted, None)
    fallback = f"{wanted} was not collected, {selected} is used" if replaced else None
    ratio = None
    if per_op.value and valu_width.value is not None and not is_open_above(per_op):
        ratio = valu_width.value / per_op.value
    return FlopModelMetrics(per_op, valu_width, ratio, fallback, selected)


def selected_flops(models: FlopModelMetrics) -> Metric:
    """FLOPs of the selected model; unknown with the reason of per_op when none is known."""
    return models.valu_width if models.selected == "valu_width" else models.per_op


def work_by_type(
    figures: Mapping[str, Metric], time_ns: Metric, declared: Sequence[TypedWork]
) -> tuple[TypeWorkPart, ...]:
    """Operations and rate of every data type and pipe that the device declares."""
    return tuple(
        TypeWorkPart(
            work.data_type,
            work.pipe,
            figures[work.quantity],
            quotient(figures[work.quantity], time_ns, "GOP/s", f"{work.quantity} / time"),
            work.floating,
        )
        for work in declared
        if work.quantity in figures
    )


def untyped_flops(models: FlopModelMetrics, types: Sequence[TypeWorkPart]) -> float:
    """FLOPs of the per_op model that no declared data type accounts for, so that they have no ceiling."""
    if models.selected != "per_op" or not models.per_op.value:
        return 0.0
    typed = sum(work.operations.value or 0.0 for work in types if work.floating)
    rest = models.per_op.value - typed
    return rest if rest > _ROUNDING * models.per_op.value else 0.0


def dominant_type(
    models: FlopModelMetrics, types: Sequence[TypeWorkPart], device: DeviceModel
) -> tuple[str, Pipe] | None:
    """The type that needs the most time at its data-sheet ceiling; by operations where a ceiling is unknown.

    The valu_width model knows no types: all of its FLOPs are FP32 on the VALU.
    """
    if models.selected == "valu_width":
        return ("F32", Pipe.VALU) if models.valu_width.value else None
    active = [work for work in types if work.operations.value]
    ceilings = {
        (work.data_type, work.pipe): device.compute_ceiling(work.data_type, work.pipe, CeilingOrigin.SPEC)
        for work in active
    }
    if not active:
        return None
    complete = all(ceiling is not None for ceiling in ceilings.values())

    def cost(work: TypeWorkPart) -> float:
        ceiling = ceilings[work.data_type, work.pipe]
        scale = ceiling.peak_gflops if complete and ceiling is not None else 1.0
        return (work.operations.value or 0.0) / scale

    heaviest = max(active, key=cost)
    return heaviest.data_type, heaviest.pipe


def _figure(figures: Mapping[str, Metric], name: str) -> Metric:
    figure = figures.get(name)
    return figure if figure is not None else Metric.unknown("FLOP", f"the device defines no {name}")


def _says_something(per_op: Metric) -> bool:
    if per_op.value is None:
        return False
    return per_op.value > 0 or not is_open_above(per_op)


# Ceilings over a kernel, its shares of them, the side of the ridge, and ceilings it seems to exceed.

_SHARE_FORMULA = "sum over data types of rate / ceiling, on the busier pipe"


@frozen
class Rates:
    """What a kernel achieved, as far as the roofs need it."""

    models: FlopModelMetrics
    types: tuple[TypeWorkPart, ...]
    gflops: Metric
    gbps: Metric
    dominant: tuple[str, Pipe] | None


def roof_of(rates: Rates, device: DeviceModel, origin: CeilingOrigin) -> RoofPart:
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
    return RoofPart(
        origin,
        compute.peak_gflops if compute else None,
        memory.peak_gbps if memory else None,
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
    for work in rates.types:
        ceiling = _ceiling(device, (work.data_type, work.pipe), origin)
        if work.gops.value is None:
            continue
        if ceiling is None and work.gops.value > 0:
            return _no_ceiling(work.data_type, origin, device)
        per_peak = 1 / ceiling.peak_gflops if ceiling is not None else 0.0
        # Packed instructions run on the vector unit: their share of it adds to that of the others.
        unit = Pipe.VALU if work.pipe is Pipe.VALU_PACKED else work.pipe
        shares.setdefault(unit, []).append(scaled(work.gops, per_peak, "fraction", ""))
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


def bound_of(intensity: Metric, roofs: Sequence[RoofPart], bytes_moved: Metric) -> tuple[Bound | None, str]:
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
    roof = next((sloped for sloped in roofs if sloped.ridge is not None), None)
    if roof is None or roof.ridge is None:
        return None, "no ridge is known: a ceiling is missing"
    side = _side(intensity, roof.ridge)
    if side is Bound.COMPUTE and is_open_above(bytes_moved):
        side = None  # with all bytes counted the intensity may lie below the ridge
    origin = roof.origin.value if roof.origin is not None else "known"
    text = f"{intensity.value:.4g} FLOP/B against a {origin} ridge of {roof.ridge:.4g}"
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


def exceeded_ceilings(rates: Rates, levels: Sequence[LevelPart], device: DeviceModel) -> tuple[str, ...]:
    """Data-sheet ceilings below an achieved rate, such as ``"hbm"``, ``"l2"`` or ``"F64 valu"``."""
    exceeded = []
    memory = device.memory_ceiling("hbm", CeilingOrigin.SPEC)
    if memory is not None and rates.gbps.value is not None and rates.gbps.value > memory.peak_gbps:
        exceeded.append("hbm")
    for level in levels:
        rate = level.achieved_gbps.value
        if level.level != "hbm" and rate is not None and level.spec_gbps and rate > level.spec_gbps:
            exceeded.append(level.level)
    for work in rates.types:
        pipes = (Pipe.VALU, Pipe.VALU_PACKED) if work.pipe is Pipe.VALU else (work.pipe,)
        ceilings = [device.compute_ceiling(work.data_type, pipe, CeilingOrigin.SPEC) for pipe in pipes]
        peaks = [ceiling.peak_gflops for ceiling in ceilings if ceiling is not None]
        if peaks and work.gops.value is not None and work.gops.value > max(peaks):
            exceeded.append(f"{work.data_type} {work.pipe.value}")
    return tuple(exceeded)


# What the per-operation FLOP count gets wrong by design, corrected as far as counters and code tell.
#
# The counters ignore the EXEC mask and count a packed instruction once (rocprofiler-compute
# ``docs/conceptual/pipeline-metrics.rst`` @1b1610fc). So the count is high with divergence and low with
# packed math. Both corrections are estimates, stand beside the count and replace nothing.

_NO_CODE = "needs the kernel's code object, see --code-object"
_LANES_NOTE = "Scaled by the lanes of an average vector instruction, not of the arithmetic ones alone."
_PACKED_NOTE = "The share of packed instructions in the code stands for their share among those executed."


def flop_corrections(
    figures: Mapping[str, Metric], mix: KernelMix | NoMix | None, device: DeviceModel
) -> Mapping[str, Metric]:
    """FLOPs per launch by correction: ``active_lanes`` and ``packed``.

    ``figures`` are the quantities of a kernel, ``mix`` is ``None`` without any code object. Where a
    correction can change nothing (all lanes active, no operation that could be packed) it gives the count.
    """
    floating = [work for work in typed_work(device.counter_map) if work.floating]
    return {
        "active_lanes": _active_lanes(figures, floating),
        "packed": _packed(figures, floating, mix, device),
    }


def _active_lanes(figures: Mapping[str, Metric], floating: Sequence[TypedWork]) -> Metric:
    lanes = figures.get("active_lane_fraction")
    if lanes is None or lanes.value is None:
        return Metric.unknown("FLOP", (lanes.reason if lanes else None) or "active lanes were not recorded")
    factors = {work.quantity: lanes.value for work in floating if work.pipe is not Pipe.MFMA}
    formula = "sum of VALU FLOPs x active_lane_fraction + MFMA FLOPs"
    return _corrected(figures, floating, factors, formula, _LANES_NOTE)


def _packed(
    figures: Mapping[str, Metric],
    floating: Sequence[TypedWork],
    mix: KernelMix | NoMix | None,
    device: DeviceModel,
) -> Metric:
    """Only vector work is concerned, of types with packed instructions; without facts of any type."""
    facts = device.architecture_facts
    vector = [work for work in floating if work.pipe is Pipe.VALU]
    if facts is not None:
        vector = [work for work in vector if facts.packed_arithmetic(work.data_type) is not None]
    idle = all(figures[work.quantity].value == 0 for work in vector if work.quantity in figures)
    if not idle and not isinstance(mix, KernelMix):
        return Metric.unknown("FLOP", mix.reason if isinstance(mix, NoMix) else _NO_CODE)
    if not idle and facts is None:
        return Metric.unknown("FLOP", f"nothing is known of packed instructions of {device.name}")
    mixes = mix.packed if isinstance(mix, KernelMix) else {}
    factors = {}
    for work in vector:
        rate = facts.packed_arithmetic(work.data_type) if facts is not None else None
        if rate is not None and work.data_type in mixes:
            factors[work.quantity] = mixes[work.data_type].operations_per_counted(rate.operations_per_counted)
    formula = "sum of FLOPs x (1 + packed / all instructions)"
    corrected = _corrected(figures, floating, factors, formula, _PACKED_NOTE)
    source = f"instructions of {mix.source}" if isinstance(mix, KernelMix) else None
    return corrected if corrected.value is None else attrs.evolve(corrected, source=source)


def _corrected(
    figures: Mapping[str, Metric],
    floating: Sequence[TypedWork],
    factors: Mapping[str, float],
    formula: str,
    note: str,
) -> Metric:
    """The sum over all floating work, each times its factor by quantity."""
    parts = {work.quantity: figures.get(work.quantity) for work in floating}
    lacking = [name for name, metric in parts.items() if metric is None or metric.value is None]
    if lacking or not parts:
        wanted = ", ".join(lacking) or "a device that declares its data types"
        return Metric.unknown("FLOP", f"needs {wanted}")
    known = {name: metric for name, metric in parts.items() if metric is not None}
    origins = [metric.origin for metric in known.values() if metric.origin is not None]
    return Metric(
        value=sum((metric.value or 0.0) * factors.get(name, 1.0) for name, metric in known.items()),
        unit="FLOP",
        exactness=Exactness.ESTIMATE,
        origin=Origin.weakest(origins) if origins else None,
        formula=formula,
        note=note,
        partial=is_open_above(*known.values()),
    )


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


def kernel_roofline(kernel: KernelFigures, device: DeviceModel, requested_model: str) -> KernelRooflineDoc:
    """Place a kernel on the roofline of ``device``; unknown parts carry their reason."""
    figures, time_ns = kernel.figures, kernel.time_ns
    models = compare_models(figures, requested_model)
    flops = selected_flops(models)
    counter_map = device.counter_map
    moved, source = _bytes(figures, counter_map.memory_bytes)
    work = "flops_valu_width" if models.selected == "valu_width" else "flops"
    traffic = source or counter_map.memory_bytes[0]
    types = work_by_type(figures, time_ns, typed_work(counter_map))
    rates = Rates(
        models,
        types,
        quotient(flops, time_ns, "GFLOP/s", f"{work} / time"),
        quotient(moved, time_ns, "GB/s", f"{traffic} / time"),
        dominant_type(models, types, device),
    )
    dominant_name, dominant_pipe = rates.dominant or (None, None)
    spec = roof_of(rates, device, CeilingOrigin.SPEC)
    measured = roof_of(rates, device, device.benchmarked)
    per_byte = quotient(_arithmetic(flops, types, models.selected), moved, "OP/B", "operations / bytes")
    levels = _levels(figures, flops, time_ns, device)
    bound, reason = bound_of(per_byte, (spec, measured), moved)
    # What a data sheet says of memory counts before what was measured, whether of it or of the arithmetic.
    nearer = spec if spec.peak_gbps is not None else measured
    return KernelRooflineDoc(
        name=kernel.name,
        launches=kernel.launches,
        counter_launches=kernel.counter_launches,
        time_ns=time_ns,
        flops=flops,
        flop_model=models.selected,
        models=models,
        bytes=moved,
        byte_source=source,
        operational_intensity=quotient(flops, moved, "FLOP/B", f"{work} / {traffic}"),
        achieved_gflops=rates.gflops,
        achieved_gbps=rates.gbps,
        dominant_type=dominant_name,
        dominant_pipe=dominant_pipe,
        spec=spec,
        measured=measured,
        bound=bound,
        bound_reason=reason,
        position=nearer.position,
        types=tuple(
            t for t in types if t.operations.value != 0 or t.operations.exactness is not Exactness.EXACT
        ),
        levels=levels,
        caches={name: figures[name] for name in CACHES if name in figures},
        exceeds_ceiling=exceeded_ceilings(rates, levels, device),
        corrections=flop_corrections(figures, kernel.mix, device),
        active_lane_share=_active_lane_share(rates, figures, device, (spec, measured)),
    )


def _active_lane_share(
    rates: Rates, figures: Mapping[str, Metric], device: DeviceModel, roofs: Sequence[RoofPart]
) -> Metric | None:
    """Share of the arithmetic ceilings without the work of idle lanes; ``None`` where no lane is known idle.

    Packed instructions change no share: the unpacked ceilings count instructions as the counters do.
    """
    lanes = figures.get("active_lane_fraction")
    if lanes is None or lanes.value is None or lanes.value >= 1 or rates.models.selected != "per_op":
        return None
    types = tuple(
        attrs.evolve(work, gops=scaled(work.gops, lanes.value, "GOP/s", "rate x active_lane_fraction"))
        if work.pipe is not Pipe.MFMA
        else work
        for work in rates.types
    )
    origin = next((roof.origin for roof in roofs if roof.peak_gbps is not None), roofs[-1].origin)
    assert origin is not None  # only documents of other versions lack it
    return roof_of(attrs.evolve(rates, types=types), device, origin).compute_share


def _bytes(figures: Mapping[str, Metric], sources: Sequence[str]) -> tuple[Metric, str | None]:
    """Bytes of memory traffic and the quantity they came from; later sources only where no better one is."""
    for name in sources:
        figure = figures.get(name)
        if figure is not None and figure.value is not None:
            return figure, name
    return figures.get(sources[0], Metric.unknown("B", f"the device defines no {sources[0]}")), None


def _arithmetic(flops: Metric, types: Sequence[TypeWorkPart], model: str | None) -> Metric:
    """FLOPs plus operations that are no FLOPs: what an arithmetic ceiling can limit."""
    total = flops
    if model == "valu_width" or flops.value is None:
        return total
    for integer in (work.operations for work in types if not work.floating):
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
) -> tuple[LevelPart, ...]:
    levels = []
    for name, level in LEVELS:
        if name not in figures:
            continue
        spec = device.memory_ceiling(level, CeilingOrigin.SPEC)
        measured = device.memory_ceiling(level, CeilingOrigin.MEASURED)
        published = device.memory_ceiling(level, CeilingOrigin.PUBLISHED)
        levels.append(
            LevelPart(
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
