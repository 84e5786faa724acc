"""What the per-operation FLOP count gets wrong by design, corrected as far as counters and code tell.

The counters ignore the EXEC mask and count a packed instruction once (rocprofiler-compute
``docs/conceptual/pipeline-metrics.rst`` @1b1610fc). So the count is high with divergence and low with packed
math. Both corrections are estimates, stand beside the count and replace nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.sums_of_quantities import is_open_above
from rpl_analysis.instruction_mix.mix import KernelMix, NoMix
from rpl_analysis.roofline.vocabulary import typed_work
from rpl_core.model.device import Pipe
from rpl_core.model.metric import Exactness, Metric, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_core.model.device import DeviceModel, TypedWork

__all__ = ["flop_corrections"]

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
