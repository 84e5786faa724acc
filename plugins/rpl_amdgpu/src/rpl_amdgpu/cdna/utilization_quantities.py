"""Lanes, utilization, waves, waits and cache behaviour of kernels on CDNA GPUs, all as ratios.

Sources: rocprofiler-compute panels 2 to 17 and rocprofiler-sdk ``counter_defs.yaml`` (rocm-systems
@1b1610fc). SQ_ACTIVE_INST_*, SQ_WAVE_CYCLES, SQ_BUSY_CU_CYCLES and SQ_WAIT_* count quad-cycles; recorded
GRBM_GUI_ACTIVE is the sum over XCDs. Fractions are 0..1.
"""

from __future__ import annotations

from collections.abc import Mapping

from rpl_core.model.device import Formula, Quantity, Refinement
from rpl_core.model.metric import Exactness
from rpl_core.values import frozen

__all__ = ["MatrixPeak", "utilization_quantities"]

_RPC = "rocprofiler-compute panels @1b1610fc"
_SDK = "rocprofiler-sdk counter_defs.yaml @1b1610fc"
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
