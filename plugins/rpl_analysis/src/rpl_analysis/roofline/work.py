"""The work of a kernel: which FLOP model counts, operations per data type, and the dominant type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.contracts.roofline import FlopModelMetrics, FlopModelName, TypeWorkPart
from rpl_analysis.counters.sums_of_quantities import is_open_above
from rpl_analysis.roofline.quotients import quotient
from rpl_analysis.roofline.vocabulary import PER_OP, VALU_WIDTH
from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.metric import Metric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_core.model.device import DeviceModel, TypedWork

__all__ = ["compare_models", "dominant_type", "selected_flops", "untyped_flops", "work_by_type"]

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
    typed = sum(one.operations.value or 0.0 for one in types if one.floating)
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
    active = [one for one in types if one.operations.value]
    ceilings = {
        (one.data_type, one.pipe): device.compute_ceiling(one.data_type, one.pipe, CeilingOrigin.SPEC)
        for one in active
    }
    if not active:
        return None
    complete = all(ceiling is not None for ceiling in ceilings.values())

    def cost(one: TypeWorkPart) -> float:
        ceiling = ceilings[one.data_type, one.pipe]
        scale = ceiling.peak_gflops if complete and ceiling is not None else 1.0
        return (one.operations.value or 0.0) / scale

    heaviest = max(active, key=cost)
    return heaviest.data_type, heaviest.pipe


def _figure(figures: Mapping[str, Metric], name: str) -> Metric:
    figure = figures.get(name)
    return figure if figure is not None else Metric.unknown("FLOP", f"the device defines no {name}")


def _says_something(per_op: Metric) -> bool:
    if per_op.value is None:
        return False
    return per_op.value > 0 or not is_open_above(per_op)
