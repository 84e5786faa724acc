"""How counters of CDNA GPUs may be collected: block limits, the recommended set, groups of one pass.

Counters per hardware block and pass: AQLprofile ``gfx9_block_info.h`` and rocprofiler-compute
``mi_gpu_spec.yaml`` (rocm-systems @1b1610fc) agree. The limit is per instance; all instances count alike.
"""

from __future__ import annotations

from rpl_core.model.device import CounterMap, Pipe, Quantity, TypedWork

__all__ = ["cdna_counter_map"]

_BLOCK_LIMITS: dict[str, int] = {
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
_BLOCK_PREFIXES: tuple[tuple[str, str], ...] = (
    *((f"{block}_", block) for block in _BLOCK_LIMITS),
    ("SQC_", "SQ"),
)
_VALU = tuple(
    f"SQ_INSTS_VALU_{operation}_{data_type}"
    for data_type in ("F16", "F32", "F64")
    for operation in ("ADD", "MUL", "FMA", "TRANS")
)
_TIMES = ("SQ_ACTIVE_INST_VALU", "SQ_THREAD_CYCLES_VALU", "SQ_BUSY_CU_CYCLES", "SQ_WAVE_CYCLES")
_HITS = ("TCC_HIT_sum", "TCC_MISS_sum")
_L1_AND_CLOCKS = (
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


def cdna_counter_map(
    quantities: tuple[Quantity, ...],
    *,
    fabric: str,
    reads: tuple[str, ...],
    matrix: tuple[str, ...],
    context: tuple[str, ...] = ("SQ_INSTS_VALU", "SQ_WAVES"),
    waits: tuple[str, ...] = (),
    local_memory: tuple[str, ...] = (),
    dangerous: tuple[tuple[str, str], ...] = (),
    memory_bytes: tuple[str, ...] = ("hbm_bytes",),
) -> CounterMap:
    """The counter map of a CDNA GPU.

    ``fabric`` is the prefix of the counters beyond L2 and ``reads`` those that make up its reads. ``matrix``
    are the input types of its matrix instructions, wide ones first, then "I8". With twelve counters of vector
    operations, four of times and ``context`` they are to fill whole passes of eight; what else is recommended
    rides along in blocks that are free anyway. ``waits`` are read beside the times that they are shares of,
    ``local_memory`` in one pass.
    """
    writes = (f"{fabric}_WRREQ_sum", f"{fabric}_WRREQ_64B_sum")
    counted = tuple(f"SQ_INSTS_VALU_MFMA_MOPS_{data_type}" for data_type in matrix)
    return CounterMap(
        quantities=quantities,
        recommended=(
            *(*_VALU, *counted, *context, *_TIMES, *waits, *local_memory),
            *(*reads, *writes, *_HITS, *_L1_AND_CLOCKS),
        ),
        # Differences and shares mean something only when their counters saw the same execution.
        same_pass=(
            *(reads, writes, _HITS, (*_TIMES, *waits, "GRBM_GUI_ACTIVE")),
            *([local_memory] if local_memory else []),
        ),
        block_limits=_BLOCK_LIMITS,
        block_prefixes=_BLOCK_PREFIXES,
        dangerous=dangerous,
        work=_work(matrix),
        memory_bytes=memory_bytes,
    )


def _work(matrix: tuple[str, ...]) -> tuple[TypedWork, ...]:
    """Vector before matrix work, wide types first. XF32 has no counter of its own: it counts as F32."""
    return (
        *(TypedWork(f"valu_flops_{t.lower()}", t, Pipe.VALU) for t in ("F64", "F32", "F16")),
        *(TypedWork(f"mfma_flops_{t.lower()}", t, Pipe.MFMA) for t in matrix if t != "I8"),
        TypedWork("mfma_ops_i8", "I8", Pipe.MFMA, floating=False),
    )
