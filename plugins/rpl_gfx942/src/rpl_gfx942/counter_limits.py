"""How gfx942 counters may be collected: block limits, the recommended set, groups, dangerous counters.

Counters per hardware block and pass: AQLprofile ``gfx9_block_info.h`` and rocprofiler-compute
``mi_gpu_spec.yaml`` (rocm-systems @1b1610fc) agree. The limit is per instance; all instances count alike.
"""

from __future__ import annotations

BLOCK_LIMITS: dict[str, int] = {
    "SQ": 8,
    "TCC": 4,
    "TCP": 4,
    "TA": 2,
    "TD": 2,
    "TCA": 4,
    "SPI": 6,
    "CPC": 2,
    "CPF": 2,
    "GRBM": 2,
    "GDS": 4,
}

#: SQC (scalar and instruction caches) shares the counters of its SQ.
BLOCK_PREFIXES: tuple[tuple[str, str], ...] = (
    *((f"{block}_", block) for block in BLOCK_LIMITS),
    ("SQC_", "SQ"),
)

_VALU = tuple(
    f"SQ_INSTS_VALU_{operation}_{data_type}"
    for data_type in ("F16", "F32", "F64")
    for operation in ("ADD", "MUL", "FMA", "TRANS")
)
_MFMA = tuple(f"SQ_INSTS_VALU_MFMA_MOPS_{t}" for t in ("F64", "F32", "F16", "BF16", "F8", "I8"))
_SQ_CONTEXT = (
    "SQ_INSTS_VALU",
    "SQ_WAVES",
    "SQ_ACTIVE_INST_VALU",
    "SQ_THREAD_CYCLES_VALU",
    "SQ_BUSY_CU_CYCLES",
    "SQ_WAVE_CYCLES",
)
_READS = ("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_BUBBLE_sum")
_WRITES = ("TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_64B_sum")
_RIDE_ALONG = (
    *_READS,
    *_WRITES,
    "TCC_HIT_sum",
    "TCC_MISS_sum",
    "TCC_ATOMIC_sum",
    "TCP_TOTAL_CACHE_ACCESSES_sum",
    "TCP_TOTAL_ACCESSES_sum",
    "TCP_TCC_READ_REQ_sum",
    "TCP_TCC_WRITE_REQ_sum",
    "TCP_TCC_ATOMIC_WITH_RET_REQ_sum",
    "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum",
    "GRBM_GUI_ACTIVE",
    "GRBM_COUNT",
)

#: 24 SQ counters fill exactly three passes; the others ride along in blocks that are free anyway.
RECOMMENDED: tuple[str, ...] = (*_VALU, *_MFMA, *_SQ_CONTEXT, *_RIDE_ALONG)

#: Differences and shares mean something only when their counters saw the same execution.
SAME_PASS: tuple[tuple[str, ...], ...] = (
    _READS,
    _WRITES,
    ("TCC_HIT_sum", "TCC_MISS_sum"),
    (
        "SQ_ACTIVE_INST_VALU",
        "SQ_THREAD_CYCLES_VALU",
        "SQ_BUSY_CU_CYCLES",
        "SQ_WAVE_CYCLES",
        "GRBM_GUI_ACTIVE",
    ),
)

_DATA_FABRIC = (
    "data-fabric counters hang MI300X and reset its XGMI hive unless the driver runs with"
    " amdgpu.priv_cp_queues=1 (docs/reference/counters.md, 1.6)"
)
DANGEROUS: tuple[tuple[str, str], ...] = (
    ("MALL_", _DATA_FABRIC),
    ("HBM_", _DATA_FABRIC),
)
