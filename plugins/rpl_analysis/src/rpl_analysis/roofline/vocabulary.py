"""Names of the quantities that the roofline takes from a device's counter map.

A device plugin that wants a roofline defines those that its counters give; the rest is unknown there.
"""

from __future__ import annotations

from rpl_core.model.device import Pipe

__all__ = ["ADDITIVE", "CACHES", "CLASSES", "HBM_BYTES", "LEGACY_BYTES", "LEVELS", "PER_OP", "VALU_WIDTH"]

#: Model name -> quantity of all floating-point operations.
PER_OP = "flops"
VALU_WIDTH = "flops_valu_width"

#: Operations by data type and pipe. 8-bit integer matrix operations are no FLOPs, but they have a ceiling.
CLASSES: tuple[tuple[str, str, Pipe], ...] = (
    ("valu_flops_f64", "F64", Pipe.VALU),
    ("valu_flops_f32", "F32", Pipe.VALU),
    ("valu_flops_f16", "F16", Pipe.VALU),
    ("mfma_flops_f64", "F64", Pipe.MFMA),
    ("mfma_flops_f32", "F32", Pipe.MFMA),
    ("mfma_flops_f16", "F16", Pipe.MFMA),
    ("mfma_flops_bf16", "BF16", Pipe.MFMA),
    ("mfma_flops_f8", "F8", Pipe.MFMA),
    ("mfma_ops_i8", "I8", Pipe.MFMA),
)

#: Traffic between L2 and memory, and the byte source of the first rocm-perf-lab, in this order.
HBM_BYTES = "hbm_bytes"
LEGACY_BYTES = "tcc_bytes"

#: (quantity, memory level)
LEVELS: tuple[tuple[str, str], ...] = (
    ("hbm_bytes", "hbm"),
    ("l2_bytes", "l2"),
    ("vl1d_bytes", "vl1d"),
    ("lds_bytes_moved", "lds"),
)

CACHES: tuple[str, ...] = ("l2_hit_rate", "vl1d_hit_rate", "sl1d_hit_rate", "l1i_hit_rate")

#: Quantities that add up over kernels.
ADDITIVE: tuple[str, ...] = (
    PER_OP,
    VALU_WIDTH,
    *(name for name, _, _ in CLASSES),
    *(name for name, _ in LEVELS),
    LEGACY_BYTES,
)
