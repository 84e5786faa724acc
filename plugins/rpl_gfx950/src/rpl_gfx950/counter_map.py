"""The counter map of gfx950: what its counters mean beyond what all CDNA GPUs share.

Sources: rocprofiler-sdk ``counter_defs.yaml`` (rocm-systems @1b1610fc); AMD's "MI350 series performance
counters", ROCm/legacy-rocm-build @089d7513. ``TCC_EA0_RDREQ`` counts reads of 32, 64 and 128 bytes as on
gfx942, but ``TCC_BUBBLE`` reads zero: the large ones are ``TCC_EA0_RDREQ_128B`` (docs/reference/counters.md,
3.1).
"""

from __future__ import annotations

from rpl_amdgpu.cdna.byte_quantities import (
    FABRIC_NOTE,
    SDK,
    byte_quantities,
    fabric_interval,
    reads_of_three_sizes,
)
from rpl_amdgpu.cdna.collecting import cdna_counter_map
from rpl_amdgpu.cdna.flop_quantities import flop_quantities, matrix_operations
from rpl_amdgpu.cdna.utilization_quantities import MatrixPeak, utilization_quantities
from rpl_core.model.device import Formula
from rpl_core.model.metric import Exactness

__all__ = ["COUNTER_MAP"]

_FABRIC = "TCC_EA0"
_COPIED_ON = "MI350X"
_COUNTERS = "AMD MI350 series performance counters, ROCm/legacy-rocm-build @089d7513"
_R32, _R64, _R128 = (f"TCC_EA0_RDREQ_{size}B" for size in (32, 64, 128))
_SIZES = f"{SDK}; {_COUNTERS}; not seen in a recording"
#: Wide types first.
_MATRIX = ("F64", "F32", "F16", "BF16", "F8", "F6F4", "I8")

#: FETCH_SIZE takes every read for 64 bytes where it is defined by TCC_BUBBLE, and a later definition may
#: count 128: a recording does not say by which it was made.
_READS = (
    *reads_of_three_sizes(fabric=_FABRIC, reads_128=_R128, source=_SIZES),
    Formula(f"128 * {_R128} + 64 * {_R64} + 32 * {_R32}", Exactness.EXACT, _SIZES, note=FABRIC_NOTE),
    fabric_interval(
        "1024 * FETCH_SIZE",
        "2048 * FETCH_SIZE",
        f"{FABRIC_NOTE} FETCH_SIZE takes reads of 128 bytes for 64 in some releases.",
    ),
)
_LDS_BYTES = Formula(
    "64 * (SQ_INSTS_LDS_LOAD_BANDWIDTH + SQ_INSTS_LDS_STORE_BANDWIDTH + SQ_INSTS_LDS_ATOMIC_BANDWIDTH)",
    Exactness.ESTIMATE,
    f"{SDK}; {_COUNTERS}",
    note="Instruction size times active lanes; not checked on a kernel of known traffic.",
)
#: Sparse instructions do twice the operations of dense ones; there are none on FP6 and FP4.
_MATRIX_PEAK = MatrixPeak(
    operations={
        "F64": 128,
        "F32": 256,
        "F16": 8192,
        "BF16": 8192,
        "F8": 16384,
        "F6F4": 16384,
        "I8": 16384,
    },
    source="rocprofiler-compute panel 2.1 @1b1610fc; sparse rates, FP6, FP4: rocm-docs mi350.rst @002654d6",
)
_NOT_TRIED = (
    "data-fabric counters can hang MI300X (docs/reference/counters.md, 1.6); nobody tried them on gfx950"
)

COUNTER_MAP = cdna_counter_map(
    (
        *flop_quantities(
            matrix_operations(
                "F8", note="Whether MXFP8 inputs of V_MFMA_*_F8F6F4 count here is not checked."
            ),
            matrix_operations("F6F4", note="MXFP6 and MXFP4 inputs."),
        ),
        *byte_quantities(
            fabric=_FABRIC,
            reads=_READS,
            l1_read_bytes=128,
            copied_on=_COPIED_ON,
            lds=(_LDS_BYTES,),
        ),
        *utilization_quantities(
            fabric=_FABRIC,
            matrix_peak=_MATRIX_PEAK,
            l2_note=(
                "A pure copy without any reuse shows 0.34, because a 128-byte line is written in two halves."
            ),
            vl1d_note="A streaming kernel without any reuse shows 0.63: do not read it as locality.",
        ),
    ),
    fabric=_FABRIC,
    reads=("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_EA0_RDREQ_128B_sum"),
    matrix=_MATRIX,
    # Seven matrix types leave one place: SQ_INSTS_VALU serves the documented FLOP model of CDNA3 only.
    context=("SQ_WAVES",),
    dangerous=(("MALL_", _NOT_TRIED), ("HBM_", _NOT_TRIED)),
)
