"""Bytes that kernels move per memory level on CDNA GPUs, from TCC and TCP request counters.

Sources: rocprofiler-sdk ``counter_defs.yaml`` (FETCH_SIZE, WRITE_SIZE) in rocm-systems @1b1610fc; request
sizes confirmed on a copy kernel of known traffic (docs/reference/counters.md, 5). Which reads there are
differs from GPU to GPU, so a device plugin gives those formulas.
"""

from __future__ import annotations

from collections.abc import Mapping

from rpl_core.model.device import CounterMap, Formula, Pipe, Quantity, Refinement, TypedWork
from rpl_core.model.metric import Exactness
from rpl_core.values import frozen

# Bytes that kernels move per memory level on CDNA GPUs, from TCC and TCP request counters.
#
# Sources: rocprofiler-sdk ``counter_defs.yaml`` (FETCH_SIZE, WRITE_SIZE) in rocm-systems @1b1610fc; request
# sizes confirmed on a copy kernel of known traffic (docs/reference/counters.md, 5). Which reads there are
# differs from GPU to GPU, so a device plugin gives those formulas.

SDK = "rocprofiler-sdk counter_defs.yaml @1b1610fc"
COPY = "request sizes confirmed on a copy kernel (rocprofiler-compute vcopy, {gpus})"
FABRIC_NOTE = (
    "Traffic between L2 and fabric: it includes Infinity Cache hits and remote memory, so it may exceed HBM."
)
_L1_READ = "TCP_TCC_READ_REQ"
_L1_WRITES = "TCP_TCC_WRITE_REQ + TCP_TCC_ATOMIC_WITH_RET_REQ + TCP_TCC_ATOMIC_WITHOUT_RET_REQ"


def byte_quantities(
    *,
    fabric: str,
    reads: tuple[Formula, ...],
    l1_read_bytes: int,
    copied_on: str,
    write_note: str = FABRIC_NOTE,
    lds: tuple[Formula, ...] = (),
    others: tuple[Quantity, ...] = (),
) -> tuple[Quantity, ...]:
    """Bytes at HBM/fabric, L2, vL1D and LDS.

    ``fabric`` is the prefix of the counters beyond L2 ("TCC_EA0"), ``l1_read_bytes`` what a read of the vL1D
    asks L2 for, ``copied_on`` the GPUs whose request sizes a copy kernel confirmed. ``lds`` are better ways
    to count LDS bytes than by active cycles.
    """
    copy = COPY.format(gpus=copied_on)
    return (
        Quantity("hbm_read_bytes", "B", reads),
        Quantity("hbm_write_bytes", "B", _writes(fabric, copy, write_note)),
        Quantity("hbm_bytes", "B", sum_of=("hbm_read_bytes", "hbm_write_bytes")),
        *others,
        Quantity("l2_bytes", "B", _l2(l1_read_bytes, copy)),
        Quantity("vl1d_bytes", "B", (_vl1d(),)),
        Quantity("lds_bytes_moved", "B", (*lds, _lds())),
    )


def reads_of_three_sizes(
    *, fabric: str, reads_128: str, source: str, fetch_size: tuple[Formula, ...] = ()
) -> tuple[Formula, ...]:
    """Reads of 32, 64 and 128 bytes, where ``<fabric>_RDREQ`` counts all and ``reads_128`` the largest ones.

    Without ``reads_128`` a read that is not of 32 bytes has 64 or 128: an interval, never the lower end.
    """
    reads, reads_32 = f"{fabric}_RDREQ", f"{fabric}_RDREQ_32B"
    exact = f"128 * {reads_128} + 64 * max0({reads} - {reads_128} - {reads_32}) + 32 * {reads_32}"
    return (
        Formula(exact, Exactness.EXACT, source, note=FABRIC_NOTE),
        *fetch_size,
        fabric_interval(
            f"64 * max0({reads} - {reads_32}) + 32 * {reads_32}",
            f"128 * max0({reads} - {reads_32}) + 32 * {reads_32}",
        ),
        fabric_interval(
            f"128 * {reads_128} + 32 * max0({reads} - {reads_128})",
            f"128 * {reads_128} + 64 * max0({reads} - {reads_128})",
        ),
        fabric_interval(f"32 * {reads}", f"128 * {reads}"),
    )


def fabric_interval(lower: str, upper: str, note: str = FABRIC_NOTE) -> Formula:
    """Bytes beyond L2 between two bounds, where a request's size was not recorded."""
    return Formula(lower, Exactness.INTERVAL, SDK, upper_expression=upper, note=note)


def _writes(fabric: str, copy: str, note: str) -> tuple[Formula, ...]:
    writes, writes_64 = f"{fabric}_WRREQ", f"{fabric}_WRREQ_64B"
    return (
        Formula(
            f"64 * {writes_64} + 32 * max0({writes} - {writes_64})",
            Exactness.EXACT,
            f"{SDK}, WRITE_SIZE; {copy}",
            note=note,
        ),
        Formula("1024 * WRITE_SIZE", Exactness.ESTIMATE, f"{SDK}, WRITE_SIZE in KiB", note=note),
        fabric_interval(f"32 * {writes}", f"64 * {writes}", note),
    )


def _l2(read_bytes: int, copy: str) -> tuple[Formula, ...]:
    if read_bytes == 64:
        expression = f"64 * ({_L1_READ} + {_L1_WRITES})"
    else:
        expression = f"{read_bytes} * {_L1_READ} + 64 * ({_L1_WRITES})"
    return (
        Formula(expression, Exactness.EXACT, copy),
        Formula(
            "64 * (TCC_HIT + TCC_MISS)",
            Exactness.INTERVAL,
            copy,
            upper_expression="128 * (TCC_HIT + TCC_MISS)",
            note="From L2 look-ups, each of 64 or 128 bytes: scalar and instruction caches count too.",
        ),
        Formula(expression, Exactness.LOWER_BOUND, copy, absent_as_zero=True),
    )


def _vl1d() -> Formula:
    return Formula(
        "64 * TCP_TOTAL_CACHE_ACCESSES",
        Exactness.ESTIMATE,
        "rocprofiler-compute roofline @1b1610fc",
        note=(
            "Tag look-ups of 64 bytes, not bytes asked for: twice the truth for a streaming FP64 copy."
            " AMD's panels disagree: the roofline takes 64 bytes, the speed of light of gfx942 takes 128."
        ),
    )


def _lds() -> Formula:
    return Formula(
        "4 * 32 * max0(SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)",
        Exactness.ESTIMATE,
        "rocprofiler-compute @1b1610fc: 32 banks of 4 bytes per conflict-free cycle",
        note="Assumes that all 32 banks work in every active cycle.",
    )


# FLOPs of kernels on CDNA GPUs from SQ counters: by operation type, and by the documented VALU-width model.
#
# Sources: rocprofiler-sdk ``counter_defs.yaml``, rocprofiler-compute ``conceptual/pipeline-metrics.rst``
# (rocm-systems @1b1610fc). One wave instruction works on ``wave_size`` lanes; an FMA is two operations; a
# MFMA "MOPS" is 512 operations of its input type.

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


# Lanes, utilization, waves, waits and cache behaviour of kernels on CDNA GPUs, all as ratios.
#
# Sources: rocprofiler-compute panels 2 to 17 and rocprofiler-sdk ``counter_defs.yaml`` (rocm-systems
# @1b1610fc). SQ_ACTIVE_INST_*, SQ_WAVE_CYCLES, SQ_BUSY_CU_CYCLES and SQ_WAIT_* count quad-cycles; recorded
# GRBM_GUI_ACTIVE is the sum over XCDs. Fractions are 0..1.

_RPC = "rocprofiler-compute panels @1b1610fc"
_CU_CYCLES = "(GRBM_GUI_ACTIVE / xcd_count * compute_units)"
_BUSY_CYCLES = "(4 * SQ_BUSY_CU_CYCLES)"
_WINDOW_NOTE = "Share of the counter window, which is longer than a short kernel: the truth is not below it."
_BUSY_NOTE = "Relative to busy compute units only; independent of the counter window."
_MFMA_NOTE = (
    "From MFMA operations at the highest rate of their type: other instructions keep the unit longer."
)
_VL1D_NOTE = "Requests to L2 per tag look-up, though one request may fetch what two look-ups need."
_SQC_NOTE = "AMD's panels disagree on misses on a line that is on its way already."


@frozen(kw_only=True)
class MatrixPeak:
    """Most operations per clock and CU that one type of MFMA instruction can do, by the type of its counter.

    A sparse instruction does twice the operations of a dense one.
    """

    operations: Mapping[str, int]
    source: str


def utilization_quantities(
    *, fabric: str, matrix_peak: MatrixPeak, l2_note: str, vl1d_note: str
) -> tuple[Quantity, ...]:
    """Every quantity that is a ratio, except ``waves``.

    ``fabric`` is the prefix of the counters beyond L2; the notes say what hit rates show without any reuse.
    """
    waves = Quantity("waves", "wave", (Formula("SQ_WAVES", Exactness.EXACT, _SDK),))
    return (
        waves,
        *_lanes(),
        *_pipes(matrix_peak),
        *_waves_and_waits(),
        *_caches(l2_note, vl1d_note),
        *_memory_behaviour(fabric),
    )


def _ratio(
    name: str,
    unit: str,
    expression: str,
    source: str,
    exactness: Exactness = Exactness.EXACT,
    note: str | None = None,
    consistent: str | None = None,
) -> Quantity:
    formula = Formula(expression, exactness, source, note=note, consistent=consistent)
    return Quantity(name, unit, (formula,), additive=False)


def _lanes() -> tuple[Quantity, ...]:
    lanes = "SQ_THREAD_CYCLES_VALU / SQ_ACTIVE_INST_VALU"
    return (
        _ratio("active_lanes", "lane", lanes, _RPC),
        _ratio("active_lane_fraction", "fraction", f"{lanes} / wave_size", _RPC),
        _ratio("divergence_fraction", "fraction", f"1 - {lanes} / wave_size", _RPC),
    )


def _pipes(matrix_peak: MatrixPeak) -> tuple[Quantity, ...]:
    # Four SIMDs per CU cancel the factor four of quad-cycles.
    busy_cycles = {
        "valu_utilization": "SQ_ACTIVE_INST_VALU",
        "salu_utilization": "SQ_ACTIVE_INST_SCA",
        "vmem_utilization": "(SQ_ACTIVE_INST_FLAT + SQ_ACTIVE_INST_VMEM)",
        "branch_utilization": "SQ_ACTIVE_INST_MISC",
    }
    mfma = _utilization(
        "mfma_utilization", "SQ_VALU_MFMA_BUSY_CYCLES / simd_per_cu", _mfma_from_operations(matrix_peak)
    )
    return (
        *(_utilization(name, busy) for name, busy in busy_cycles.items()),
        mfma,
        _ratio("ipc", "instruction/cycle", "SQ_INSTS / SQ_BUSY_CU_CYCLES", _RPC, note="The peak is 5."),
    )


def _mfma_from_operations(peak: MatrixPeak) -> tuple[Formula, ...]:
    """The least share that the counted MFMA operations take; exactly zero where there are none."""
    counters = {data_type: f"SQ_INSTS_VALU_MFMA_MOPS_{data_type}" for data_type in peak.operations}
    cycles = " + ".join(f"512 * {counters[t]} / {rate}" for t, rate in peak.operations.items())
    counted = " + ".join(counters.values())
    none = (Refinement(counted, Exactness.EXACT),)

    shares = (f"({cycles}) / {_CU_CYCLES}", f"0 * ({counted})")
    return tuple(
        Formula(share, Exactness.LOWER_BOUND, peak.source, refinements=none, note=_MFMA_NOTE)
        for share in shares
    )


def _utilization(name: str, busy: str, otherwise: tuple[Formula, ...] = ()) -> Quantity:
    """Share of the kernel's CU cycles in which a pipe is busy.

    The counter window is longer than the kernel and busy CUs are at most all CUs, so the two shares
    enclose the true one. ``otherwise`` serves where the busy cycles were not recorded.
    """
    of_window, of_busy = f"{busy} / {_CU_CYCLES}", f"{busy} / {_BUSY_CYCLES}"
    formulas = (
        Formula(of_window, Exactness.INTERVAL, _RPC, upper_expression=of_busy, note=_WINDOW_NOTE),
        Formula(of_window, Exactness.LOWER_BOUND, _RPC, note=_WINDOW_NOTE),
        Formula(f"0 * {busy}", Exactness.INTERVAL, _RPC, upper_expression=of_busy, note=_BUSY_NOTE),
    )
    return Quantity(name, "fraction", (*formulas, *otherwise), additive=False)


#: Figures of what a wave's cycles go into, and the counters of those cycles.
_SHARES_OF_LIFE = (
    ("dependency_wait_fraction", "SQ_WAIT_ANY"),
    ("issue_wait_fraction", "SQ_WAIT_INST_ANY"),
    ("issuing_fraction", "SQ_ACTIVE_INST_ANY"),
)
#: AMD's panels add the three up to the cycles of a wave (rocprofiler-compute, "Wavefront runtime stats"), so
#: waits alone are not more than these. Where they are, cycles of different passes were compared.
_WAITS_FIT = "max0(SQ_WAVE_CYCLES - SQ_WAIT_ANY - SQ_WAIT_INST_ANY)"


def _share_of_life(name: str, cycles: str) -> Quantity:
    return _ratio(name, "fraction", f"{cycles} / SQ_WAVE_CYCLES", _RPC, consistent=_WAITS_FIT)


def _waves_and_waits() -> tuple[Quantity, ...]:
    waves = "SQ_WAVE_CYCLES / SQ_BUSY_CU_CYCLES"
    slots = "(simd_per_cu * max_waves_per_simd)"
    return (
        _ratio("mean_waves_per_busy_cu", "wave", waves, _SDK, note=_BUSY_NOTE),
        _ratio("occupancy_of_busy_cu", "fraction", f"{waves} / {slots}", _SDK, note=_BUSY_NOTE),
        *(_share_of_life(*share) for share in _SHARES_OF_LIFE),
    )


def _caches(l2_note: str, vl1d_note: str) -> tuple[Quantity, ...]:
    to_l2 = (
        "TCP_TCC_READ_REQ + TCP_TCC_WRITE_REQ + TCP_TCC_ATOMIC_WITH_RET_REQ + TCP_TCC_ATOMIC_WITHOUT_RET_REQ"
    )
    vl1d = f"1 - ({to_l2}) / TCP_TOTAL_CACHE_ACCESSES"
    l2 = "TCC_HIT / (TCC_HIT + TCC_MISS)"
    return (
        _ratio("l2_hit_rate", "fraction", l2, _RPC, note=l2_note),
        _ratio("vl1d_hit_rate", "fraction", vl1d, _RPC, Exactness.ESTIMATE, note=f"{_VL1D_NOTE} {vl1d_note}"),
        _sqc_hit_rate("sl1d_hit_rate", "DCACHE"),
        _sqc_hit_rate("l1i_hit_rate", "ICACHE"),
    )


def _sqc_hit_rate(name: str, cache: str) -> Quantity:
    """AMD's panel 2 leaves out misses on a line that is on its way already, panels 13 and 14 count them."""
    hits, misses, duplicates = (f"SQC_{cache}_{kind}" for kind in ("HITS", "MISSES", "MISSES_DUPLICATE"))
    first_misses = f"{hits} / ({hits} + {misses})"
    formulas = (
        Formula(
            f"{hits} / ({hits} + {misses} + {duplicates})",
            Exactness.INTERVAL,
            _RPC,
            upper_expression=first_misses,
            note=f"{_SQC_NOTE} The lower end counts them, the upper one does not.",
        ),
        Formula(first_misses, Exactness.ESTIMATE, _RPC, note=f"{_SQC_NOTE} They were not recorded."),
    )
    return Quantity(name, "fraction", formulas, additive=False)


def _memory_behaviour(fabric: str) -> tuple[Quantity, ...]:
    reads, writes = f"{fabric}_RDREQ", f"{fabric}_WRREQ"
    conflicts = "SQ_LDS_BANK_CONFLICT / (SQ_LDS_IDX_ACTIVE - SQ_LDS_BANK_CONFLICT)"
    return (
        _ratio("dram_read_share", "fraction", f"{reads}_DRAM / {reads}", _SDK, Exactness.ESTIMATE),
        _ratio("fabric_read_latency", "cycle", f"{reads}_LEVEL / {reads}", _RPC),
        _ratio("fabric_write_latency", "cycle", f"{writes}_LEVEL / {writes}", _RPC),
        _ratio("lds_bank_conflicts_per_access", "conflict", conflicts, _RPC),
        _ratio("l2_reads_per_load", "request", "TCP_TCC_READ_REQ / SQ_INSTS_VMEM_RD", _SDK),
        _ratio("l2_writes_per_store", "request", "TCP_TCC_WRITE_REQ / SQ_INSTS_VMEM_WR", _SDK),
    )


# How counters of CDNA GPUs may be collected: block limits, the recommended set, groups of one pass.
#
# Counters per hardware block and pass: AQLprofile ``gfx9_block_info.h`` and rocprofiler-compute
# ``mi_gpu_spec.yaml`` (rocm-systems @1b1610fc) agree. The limit is per instance; all instances count alike.

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
