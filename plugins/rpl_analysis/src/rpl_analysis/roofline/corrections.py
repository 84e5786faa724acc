"""What the per-operation FLOP count gets wrong by design, corrected as far as counters and code tell.

The counters ignore the EXEC mask and count a packed instruction once (rocprofiler-compute
``docs/conceptual/pipeline-metrics.rst`` @1b1610fc). So the count is high with divergence and low with packed
math. Both corrections are estimates, stand beside the count and replace nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.instruction_mix.model import KernelMix, NoMix
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["flop_corrections"]

_VALU = {"F64": "valu_flops_f64", "F32": "valu_flops_f32", "F16": "valu_flops_f16"}
_MFMA = ("mfma_flops_f64", "mfma_flops_f32", "mfma_flops_f16", "mfma_flops_bf16", "mfma_flops_f8")
#: Data types with packed instructions on CDNA3.
_PACKED_TYPES = ("F32", "F16")
_NO_CODE = "needs the kernel's code object, see --code-object"
_LANES_NOTE = "Scaled by the lanes of an average vector instruction, not of the arithmetic ones alone."
_PACKED_NOTE = "The share of packed instructions in the code stands for their share among those executed."


def flop_corrections(figures: Mapping[str, Metric], mix: KernelMix | NoMix | None) -> Mapping[str, Metric]:
    """FLOPs per launch by correction: ``active_lanes`` and ``packed``.

    ``figures`` are the quantities of a kernel, ``mix`` is ``None`` without any code object. Where a
    correction can change nothing (all lanes active, no F32 or F16 operation) it gives the count itself.
    """
    return {"active_lanes": _active_lanes(figures), "packed": _packed(figures, mix)}


def _active_lanes(figures: Mapping[str, Metric]) -> Metric:
    lanes = figures.get("active_lane_fraction")
    if lanes is None or lanes.value is None:
        return Metric.unknown("FLOP", (lanes.reason if lanes else None) or "active lanes were not recorded")
    factors = dict.fromkeys(_VALU, lanes.value)
    return _corrected(figures, factors, "sum of VALU FLOPs x active_lane_fraction + MFMA FLOPs", _LANES_NOTE)


def _packed(figures: Mapping[str, Metric], mix: KernelMix | NoMix | None) -> Metric:
    concerned = [figures[_VALU[t]] for t in _PACKED_TYPES if _VALU[t] in figures]
    if not isinstance(mix, KernelMix) and any(metric.value != 0 for metric in concerned):
        return Metric.unknown("FLOP", mix.reason if isinstance(mix, NoMix) else _NO_CODE)
    mixes = mix.packed if isinstance(mix, KernelMix) else {}
    factors = {t: found.operations_per_counted for t, found in mixes.items()}
    corrected = _corrected(figures, factors, "sum of FLOPs x (1 + packed / all instructions)", _PACKED_NOTE)
    source = f"instructions of {mix.source}" if isinstance(mix, KernelMix) else None
    return corrected if corrected.value is None else attrs.evolve(corrected, source=source)


def _corrected(
    figures: Mapping[str, Metric], factors: Mapping[str, float], formula: str, note: str
) -> Metric:
    parts = {name: figures.get(name) for name in (*_VALU.values(), *_MFMA)}
    lacking = [name for name, metric in parts.items() if metric is None or metric.value is None]
    if lacking:
        return Metric.unknown("FLOP", f"needs {', '.join(lacking)}")
    factor_of = {_VALU[data_type]: factor for data_type, factor in factors.items() if data_type in _VALU}
    known = {name: metric for name, metric in parts.items() if metric is not None}
    origins = [metric.origin for metric in known.values() if metric.origin is not None]
    return Metric(
        value=sum((metric.value or 0.0) * factor_of.get(name, 1.0) for name, metric in known.items()),
        unit="FLOP",
        exactness=Exactness.ESTIMATE,
        origin=Origin.weakest(origins) if origins else None,
        formula=formula,
        note=note,
    )
