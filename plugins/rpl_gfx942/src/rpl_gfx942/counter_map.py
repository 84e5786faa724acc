"""The counter map of gfx942: what its counters mean beyond what all CDNA GPUs share.

Sources: rocprofiler-sdk ``counter_defs.yaml`` and rocprofiler-compute (rocm-systems @1b1610fc).
``TCC_EA0_RDREQ`` counts reads of 32, 64 and 128 bytes; ``TCC_BUBBLE`` is the number of the 128-byte ones.
"""

from __future__ import annotations

from rpl_amdgpu.cdna.byte_quantities import COPY, FABRIC_NOTE, SDK, byte_quantities, reads_of_three_sizes
from rpl_amdgpu.cdna.collecting import cdna_counter_map
from rpl_amdgpu.cdna.flop_quantities import flop_quantities, matrix_operations
from rpl_amdgpu.cdna.utilization_quantities import MatrixPeak, utilization_quantities
from rpl_core.model.device import Formula, Quantity
from rpl_core.model.metric import Exactness

__all__ = ["COUNTER_MAP"]

_FABRIC = "TCC_EA0"
_COPIED_ON = "MI300X and MI300A"
#: Operations of the largest CDNA3 FP8 instruction, v_smfmac_f32_32x32x32_fp8_fp8: 2 * 32 * 32 * 32.
_LARGEST_F8_MFMA = 65536
_OTHER_MFMA = " - ".join(f"SQ_INSTS_VALU_MFMA_{t}" for t in ("I8", "F16", "BF16", "F32", "F64"))
#: Wide types first. XF32 counts as F32.
_MATRIX = ("F64", "F32", "F16", "BF16", "F8", "I8")

_READS = reads_of_three_sizes(
    fabric=_FABRIC,
    reads_128="TCC_BUBBLE",
    source=f"{SDK}, FETCH_SIZE; {COPY.format(gpus=_COPIED_ON)}",
    fetch_size=(
        Formula("1024 * FETCH_SIZE", Exactness.ESTIMATE, f"{SDK}, FETCH_SIZE in KiB", note=FABRIC_NOTE),
    ),
)
_LEGACY = Quantity(
    "tcc_bytes",
    "B",
    (
        Formula(
            "TCC_READ_BYTES + TCC_WRITE_BYTES",
            Exactness.ESTIMATE,
            "kalowery/rocm-perf-lab @112862e5 docs/USER_GUIDE.md, section 7",
            note="Legacy counters that the profiler does not define for gfx942: used only as a last resort.",
        ),
    ),
)
#: rocprofv2 cannot read MOPS_F8; what remains of all MFMA instructions bounds it, and is mostly zero.
_F8_REMAINDER = Formula(
    "0 * SQ_INSTS_MFMA",
    Exactness.INTERVAL,
    f"{SDK}; CDNA3 ISA, v_smfmac_f32_32x32x32_fp8_fp8",
    upper_expression=f"{_LARGEST_F8_MFMA} * max0(SQ_INSTS_MFMA - {_OTHER_MFMA})",
)
#: XF32 counts as F32, and a sparse instruction does twice the operations of a dense one.
_MATRIX_PEAK = MatrixPeak(
    operations={"F64": 256, "F32": 1024, "F16": 4096, "BF16": 4096, "F8": 8192, "I8": 8192},
    source=("rocprofiler-compute panel 2.1 @1b1610fc; XF32 and doubled sparse rates: AMD MI300 data sheets"),
)
_DATA_FABRIC = (
    "data-fabric counters hang MI300X and reset its XGMI hive unless the driver runs with"
    " amdgpu.priv_cp_queues=1 (docs/reference/counters.md, 1.6)"
)

COUNTER_MAP = cdna_counter_map(
    (
        *flop_quantities(
            matrix_operations("F8", _F8_REMAINDER),
            f32_note="Includes XF32, which is counted by its 32-bit input.",
        ),
        *byte_quantities(
            fabric=_FABRIC, reads=_READS, l1_read_bytes=128, copied_on=_COPIED_ON, others=(_LEGACY,)
        ),
        *utilization_quantities(
            fabric=_FABRIC,
            matrix_peak=_MATRIX_PEAK,
            l2_note=(
                "A pure copy without any reuse shows 0.33, because a 128-byte line is written in two halves."
            ),
            vl1d_note="A streaming kernel without any reuse shows 0.63: do not read it as locality.",
        ),
    ),
    fabric=_FABRIC,
    reads=("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum"),
    matrix=_MATRIX,
    # The rules need 25 SQ counters at least, one more than three passes hold: with waits and LDS a fourth is
    # full.
    context=("SQ_INSTS_VALU", "SQ_WAVES", "SQ_INSTS", "SQ_INSTS_VMEM_RD"),
    waits=("SQ_WAIT_ANY", "SQ_WAIT_INST_ANY", "SQ_ACTIVE_INST_ANY", "SQ_VALU_MFMA_BUSY_CYCLES"),
    local_memory=("SQ_LDS_IDX_ACTIVE", "SQ_LDS_BANK_CONFLICT"),
    dangerous=(("MALL_", _DATA_FABRIC), ("HBM_", _DATA_FABRIC)),
    memory_bytes=("hbm_bytes", "tcc_bytes"),
)
