"""FLOPs of kernels on CDNA GPUs from SQ counters: by operation type, and by the documented VALU-width model.

Sources: rocprofiler-sdk ``counter_defs.yaml``, rocprofiler-compute ``conceptual/pipeline-metrics.rst``
(rocm-systems @1b1610fc). One wave instruction works on ``wave_size`` lanes; an FMA is two operations; a
MFMA "MOPS" is 512 operations of its input type.
"""

from __future__ import annotations

from rpl_core.model.device import Formula, Quantity, Refinement
from rpl_core.model.metric import Exactness

__all__ = ["flop_quantities", "matrix_operations"]

_SDK = "rocprofiler-sdk counter_defs.yaml @1b1610fc"
_PIPELINE = "rocprofiler-compute docs/conceptual/pipeline-metrics.rst @1b1610fc"
_VALU_NOTE = (
    "Packed instructions count once and the EXEC mask is ignored: low with packed math, high with divergence."
)
#: Zero exactly when every VALU instruction ran on all lanes.
_IDLE_LANES = "wave_size * SQ_ACTIVE_INST_VALU - SQ_THREAD_CYCLES_VALU"


def flop_quantities(*matrix: Quantity, f32_note: str | None = None) -> tuple[Quantity, ...]:
    """VALU and MFMA operations per data type, integer operations, and both FLOP models.

    ``matrix`` are floating-point matrix types beyond F16, BF16, F32 and F64.
    """
    notes = {"F32": f32_note}
    parts = (
        *(_valu(t) for t in ("F16", "F32", "F64")),
        *(matrix_operations(t, note=notes.get(t)) for t in ("F16", "BF16", "F32", "F64")),
    )
    flops = Quantity("flops", "FLOP", sum_of=tuple(part.name for part in (*parts, *matrix)))
    return (flops, *parts, *matrix, _mfma_i8(), _integer(), _valu_width())


def matrix_operations(data_type: str, *otherwise: Formula, note: str | None = None) -> Quantity:
    """Operations of matrix instructions on one input type; ``otherwise`` serves where it was not counted."""
    counted = Formula(f"512 * SQ_INSTS_VALU_MFMA_MOPS_{data_type}", Exactness.EXACT, _SDK, note=note)
    return Quantity(f"mfma_flops_{data_type.lower()}", "FLOP", (counted, *otherwise))


def _valu(data_type: str) -> Quantity:
    add, mul, fma, trans = (f"SQ_INSTS_VALU_{op}_{data_type}" for op in ("ADD", "MUL", "FMA", "TRANS"))
    expression = f"wave_size * ({add} + {mul} + {trans} + 2 * {fma})"
    none_executed = Refinement(f"{add} + {mul} + {trans} + {fma}", Exactness.EXACT)
    # No CDNA GPU has a packed FP64 instruction, so only idle lanes can make the FP64 count wrong.
    all_lanes = (Refinement(_IDLE_LANES, Exactness.EXACT),) if data_type == "F64" else ()
    complete = Formula(
        expression,
        Exactness.ESTIMATE,
        _PIPELINE,
        refinements=(none_executed, *all_lanes),
        note=_VALU_NOTE,
    )
    # A part of the operations bounds them only where no counted one ran on idle lanes.
    partial = Formula(
        expression,
        Exactness.ESTIMATE,
        _PIPELINE,
        absent_as_zero=True,
        refinements=(Refinement(_IDLE_LANES, Exactness.LOWER_BOUND),),
        note=_VALU_NOTE,
    )
    return Quantity(f"valu_flops_{data_type.lower()}", "FLOP", (complete, partial))


def _mfma_i8() -> Quantity:
    formula = Formula("512 * SQ_INSTS_VALU_MFMA_MOPS_I8", Exactness.EXACT, _SDK)
    return Quantity("mfma_ops_i8", "OP", (formula,))


def _integer() -> Quantity:
    formula = Formula(
        "wave_size * (SQ_INSTS_VALU_INT32 + SQ_INSTS_VALU_INT64)",
        Exactness.ESTIMATE,
        _PIPELINE,
        refinements=(Refinement(_IDLE_LANES, Exactness.EXACT),),
        note="One operation per lane and instruction; address arithmetic is included.",
    )
    return Quantity("int_ops", "OP", (formula,))


def _valu_width() -> Quantity:
    """The documented model of the first rocm-perf-lab (its docs/ARCHITECTURE.md, section 2)."""
    source = "kalowery/rocm-perf-lab @f9ff67a4 docs/ARCHITECTURE.md, section 2 (VALU width 8)"
    note = (
        "Counts every VALU instruction, integer ones too, as fp32_valu_width FLOPs: low confidence."
        " The per_op model counts operations."
    )
    complete = "SQ_INSTS_VALU * fp32_valu_width + 512 * SQ_INSTS_VALU_MFMA_MOPS_F32"
    return Quantity(
        "flops_valu_width",
        "FLOP",
        (
            Formula(complete, Exactness.ESTIMATE, source, note=note),
            Formula("SQ_INSTS_VALU * fp32_valu_width", Exactness.ESTIMATE, source, note=note),
        ),
    )
