"""What gfx90a counters mean and how they may be collected.

Sources: rocprofiler-sdk ``counter_defs.yaml`` and rocprofiler-compute (rocm-systems @1b1610fc); counters per
block: AQLprofile ``gfx9_block_info.h``. Fabric counters are named ``TCC_EA_*``, and reads are of 32 or 64
bytes only.
"""

from __future__ import annotations

from rpl_core.model.device import CounterMap, Formula, Quantity, Refinement
from rpl_core.model.origin import Exactness

_SDK = "rocprofiler-sdk counter_defs.yaml, gfx90a"
_RPC = "rocprofiler-compute panels, gfx90a"
_COPY = "request size confirmed on a copy kernel (rocprofiler-compute vcopy, MI200)"
_VALU_TYPES = ("F16", "F32", "F64")
_MFMA_TYPES = ("F16", "BF16", "F32", "F64")
_OPERATIONS = ("ADD", "MUL", "TRANS", "FMA")
_VALU_NOTE = "Packed instructions count once and the EXEC mask is ignored."
_WRITE_NOTE = "Dirty lines that stay in L2 when the kernel ends are not in it."
_IDLE_LANES = "wave_size * SQ_ACTIVE_INST_VALU - SQ_THREAD_CYCLES_VALU"
_CU_CYCLES = "(GRBM_GUI_ACTIVE / xcd_count * compute_units)"
_L1_TO_L2 = (
    "TCP_TCC_READ_REQ + TCP_TCC_WRITE_REQ + TCP_TCC_ATOMIC_WITH_RET_REQ + TCP_TCC_ATOMIC_WITHOUT_RET_REQ"
)


def _exact(name: str, unit: str, expression: str, source: str, note: str | None = None) -> Quantity:
    return Quantity(name, unit, (Formula(expression, Exactness.EXACT, source, note=note),))


def _ratio(name: str, unit: str, expression: str) -> Quantity:
    return Quantity(name, unit, (Formula(expression, Exactness.EXACT, _RPC),), additive=False)


def _valu_flops(data_type: str) -> Quantity:
    add, mul, trans, fma = (f"SQ_INSTS_VALU_{operation}_{data_type}" for operation in _OPERATIONS)
    expression = f"wave_size * ({add} + {mul} + {trans} + 2 * {fma})"
    exact_when = [Refinement(f"{add} + {mul} + {trans} + {fma}", Exactness.EXACT)]
    if data_type == "F64":  # there are no packed FP64 instructions
        exact_when.append(Refinement(_IDLE_LANES, Exactness.EXACT))
    complete = Formula(expression, Exactness.ESTIMATE, _RPC, refinements=tuple(exact_when), note=_VALU_NOTE)
    partial = Formula(expression, Exactness.LOWER_BOUND, _RPC, absent_as_zero=True, note=_VALU_NOTE)
    return Quantity(f"valu_flops_{data_type.lower()}", "FLOP", (complete, partial))


def _flops() -> tuple[Quantity, ...]:
    valu = tuple(_valu_flops(data_type) for data_type in _VALU_TYPES)
    mfma = tuple(
        _exact(f"mfma_flops_{t.lower()}", "FLOP", f"512 * SQ_INSTS_VALU_MFMA_MOPS_{t}", _SDK)
        for t in _MFMA_TYPES
    )
    width = Formula(
        "SQ_INSTS_VALU * fp32_valu_width + 512 * SQ_INSTS_VALU_MFMA_MOPS_F32",
        Exactness.ESTIMATE,
        "kalowery/rocm-perf-lab @f9ff67a4 docs/ARCHITECTURE.md, section 2 (stated for CDNA3)",
        note="Counts every VALU instruction as FLOPs: low confidence.",
    )
    return (
        Quantity("flops", "FLOP", sum_of=tuple(part.name for part in (*valu, *mfma))),
        *valu,
        *mfma,
        _exact("mfma_ops_i8", "OP", "512 * SQ_INSTS_VALU_MFMA_MOPS_I8", _SDK),
        Quantity("flops_valu_width", "FLOP", (width,)),
    )


def _bytes() -> tuple[Quantity, ...]:
    read, read32, write, write64 = (
        "TCC_EA_RDREQ",
        "TCC_EA_RDREQ_32B",
        "TCC_EA_WRREQ",
        "TCC_EA_WRREQ_64B",
    )
    reads = (
        Formula(f"64 * max0({read} - {read32}) + 32 * {read32}", Exactness.EXACT, f"{_SDK}; {_COPY}"),
        Formula(f"32 * {read}", Exactness.INTERVAL, _SDK, upper_expression=f"64 * {read}"),
    )
    writes = (
        Formula(f"64 * {write64} + 32 * max0({write} - {write64})", Exactness.EXACT, _SDK, note=_WRITE_NOTE),
        Formula(
            f"32 * {write}", Exactness.INTERVAL, _SDK, upper_expression=f"64 * {write}", note=_WRITE_NOTE
        ),
    )
    return (
        Quantity("hbm_read_bytes", "B", reads),
        Quantity("hbm_write_bytes", "B", writes),
        Quantity("hbm_bytes", "B", sum_of=("hbm_read_bytes", "hbm_write_bytes")),
        _exact("l2_bytes", "B", f"64 * ({_L1_TO_L2})", _COPY),
        Quantity(
            "vl1d_bytes",
            "B",
            (
                Formula(
                    "64 * TCP_TOTAL_CACHE_ACCESSES",
                    Exactness.ESTIMATE,
                    _RPC,
                    note="Tag look-ups of 64 bytes, not bytes asked for.",
                ),
            ),
        ),
    )


def _ratios() -> tuple[Quantity, ...]:
    lanes = "SQ_THREAD_CYCLES_VALU / SQ_ACTIVE_INST_VALU"
    valu = Formula(
        f"SQ_ACTIVE_INST_VALU / {_CU_CYCLES}",
        Exactness.INTERVAL,
        _RPC,
        upper_expression="SQ_ACTIVE_INST_VALU / (4 * SQ_BUSY_CU_CYCLES)",
        note="Between the share of the counter window and the share of busy compute units.",
    )
    return (
        _exact("waves", "wave", "SQ_WAVES", _SDK),
        _ratio("active_lanes", "lane", lanes),
        _ratio("active_lane_fraction", "fraction", f"{lanes} / wave_size"),
        Quantity("valu_utilization", "fraction", (valu,), additive=False),
        _ratio("mean_waves_per_busy_cu", "wave", "SQ_WAVE_CYCLES / SQ_BUSY_CU_CYCLES"),
        _ratio("dependency_wait_fraction", "fraction", "SQ_WAIT_ANY / SQ_WAVE_CYCLES"),
        _ratio("l2_hit_rate", "fraction", "TCC_HIT / (TCC_HIT + TCC_MISS)"),
        _ratio("vl1d_hit_rate", "fraction", f"1 - ({_L1_TO_L2}) / TCP_TOTAL_CACHE_ACCESSES"),
    )


_READS = ("TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum")
_WRITES = ("TCC_EA_WRREQ_sum", "TCC_EA_WRREQ_64B_sum")
_LIMITS = {"SQ": 8, "TCC": 4, "TCP": 4, "TA": 2, "TD": 2, "SPI": 6, "CPC": 2, "CPF": 2, "GRBM": 2}

COUNTER_MAP = CounterMap(
    quantities=(*_flops(), *_bytes(), *_ratios()),
    recommended=(
        *(f"SQ_INSTS_VALU_{op}_{t}" for t in _VALU_TYPES for op in _OPERATIONS),
        *(f"SQ_INSTS_VALU_MFMA_MOPS_{t}" for t in (*_MFMA_TYPES, "I8")),
        "SQ_INSTS_VALU",
        "SQ_WAVES",
        "SQ_ACTIVE_INST_VALU",
        "SQ_THREAD_CYCLES_VALU",
        "SQ_BUSY_CU_CYCLES",
        "SQ_WAVE_CYCLES",
        "SQ_WAIT_ANY",
        *_READS,
        *_WRITES,
        "TCC_HIT_sum",
        "TCC_MISS_sum",
        "TCP_TOTAL_CACHE_ACCESSES_sum",
        *(f"{counter}_sum" for counter in _L1_TO_L2.split(" + ")),
        "GRBM_GUI_ACTIVE",
    ),
    same_pass=(_READS, _WRITES, ("TCC_HIT_sum", "TCC_MISS_sum")),
    block_limits=_LIMITS,
    block_prefixes=(*((f"{block}_", block) for block in _LIMITS), ("SQC_", "SQ")),
)
