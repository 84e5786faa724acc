"""The counter map of gfx90a: what its counters mean beyond what all CDNA GPUs share.

Sources: rocprofiler-sdk ``counter_defs.yaml`` and rocprofiler-compute (rocm-systems @1b1610fc). Fabric
counters are named ``TCC_EA_*``, reads are of 32 or 64 bytes only, and there is no FP8.
"""

from __future__ import annotations

from rpl_amdgpu.cdna.byte_quantities import COPY, SDK, byte_quantities, fabric_interval
from rpl_amdgpu.cdna.collecting import cdna_counter_map
from rpl_amdgpu.cdna.flop_quantities import flop_quantities
from rpl_amdgpu.cdna.utilization_quantities import MatrixPeak, utilization_quantities
from rpl_core.model.device import Formula
from rpl_core.model.metric import Exactness

__all__ = ["COUNTER_MAP"]

_PEAKS = (
    "rocprofiler-compute panel 2.1 @1b1610fc; "
    "https://rocm.docs.amd.com/en/latest/conceptual/gpu-arch/mi250.html"
)
_FABRIC = "TCC_EA"
_COPIED_ON = "MI200"
_NOTE = "Traffic between L2 and fabric: remote memory is in it."
_WRITE_NOTE = "Dirty lines that stay in L2 when the kernel ends are not in it."
_R, _R32 = "TCC_EA_RDREQ", "TCC_EA_RDREQ_32B"

_READS = (
    Formula(
        f"64 * max0({_R} - {_R32}) + 32 * {_R32}",
        Exactness.EXACT,
        f"{SDK}, FETCH_SIZE; {COPY.format(gpus=_COPIED_ON)}",
        note=_NOTE,
    ),
    Formula("1024 * FETCH_SIZE", Exactness.ESTIMATE, f"{SDK}, FETCH_SIZE in KiB", note=_NOTE),
    fabric_interval(f"32 * {_R}", f"64 * {_R}", _NOTE),
)

COUNTER_MAP = cdna_counter_map(
    (
        *flop_quantities(),
        *byte_quantities(
            fabric=_FABRIC, reads=_READS, l1_read_bytes=64, copied_on=_COPIED_ON, write_note=_WRITE_NOTE
        ),
        *utilization_quantities(
            fabric=_FABRIC,
            matrix_peak=MatrixPeak(
                operations={"F64": 256, "F32": 256, "F16": 1024, "BF16": 1024, "I8": 1024},
                source=_PEAKS,
            ),
            l2_note="A pure copy without any reuse shows 0.35: do not read it as locality.",
            vl1d_note="A streaming kernel without any reuse shows 0.50: do not read it as locality.",
        ),
    ),
    fabric=_FABRIC,
    reads=("TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum"),
    matrix=("F64", "F32", "F16", "BF16", "I8"),
    # One matrix type less than on gfx942 leaves a place.
    context=("SQ_INSTS_VALU", "SQ_WAVES", "SQ_WAIT_ANY"),
)
