"""Radeon GPUs as products: no partitions, one chip id for several of them, cache sizes in MiB.

The driver counts compute units, two of which make a workgroup processor. Memory is GDDR or that of the host;
its ceiling stands at the level "hbm", as device memory does on every device.
"""

from __future__ import annotations

from rpl_amdgpu.models import ComputeRate, Family, Product, rdna_architecture
from rpl_core.model.device import CeilingOrigin, CounterMap, Formula, MemoryCeiling, Quantity
from rpl_core.model.metric import Exactness

_MIB = 2**20
_ABSENT = {
    "fp32_valu_width": "the FLOP model by VALU width is documented for CDNA3 only",
    "l2_channels": "no public reference at hand states it",
}


def radeon_product(
    name: str,
    label: str,
    compute_units: int,
    *,
    caches_mib: tuple[int, int],
    source: str,
    chip_ids: tuple[int, ...] = (),
    clock_mhz: float | None = None,
    memory: tuple[float, str] | None = None,
    measured: tuple[tuple[float, str], ...] = (),
) -> Product:
    """A product by the name on its box; ``caches_mib`` are L2 and Infinity Cache.

    ``memory`` is the GB/s that its source states, ``measured`` what benchmarks found.
    """
    l2_mib, llc_mib = caches_mib
    return Product(
        name=name,
        product=f"AMD Radeon {label}",
        names=(label,),
        source=source,
        chip_ids=chip_ids,
        xcd_count=1,
        units_per_xcd=compute_units,
        clock_mhz=clock_mhz,
        l2_bytes=l2_mib * _MIB,
        llc_bytes=llc_mib * _MIB,
        hbm=None if memory is None else MemoryCeiling("hbm", memory[0], CeilingOrigin.SPEC, memory[1]),
        published_memory=tuple(
            MemoryCeiling("hbm", peak_gbps, CeilingOrigin.PUBLISHED, what) for peak_gbps, what in measured
        ),
    )


def radeon_family(
    name: str,
    products: tuple[Product, ...],
    *,
    wave32_registers: int,
    wave32_granule: int,
    rates: tuple[ComputeRate, ...] = (),
    bytes_beyond_l2: bool = True,
) -> Family:
    """The products of one RDNA instruction set; kernels of it are wave32 or wave64, each for itself."""
    return Family(
        architecture=rdna_architecture(
            name, wave32_registers=wave32_registers, wave32_granule=wave32_granule
        ),
        wave_size=32,
        counter_map=rdna_counter_map(bytes_beyond_l2=bytes_beyond_l2),
        products=products,
        compute_rates=rates,
        absent=_ABSENT,
    )


# Counters of RDNA GPUs: bytes beyond L2, hit rates and waits, and how many fit into a pass.
#
# Sources: rocprofiler-sdk ``counter_defs.yaml`` (rocm-systems @1b1610fc), the definitions for gfx1030 and
# gfx1100; counters per block and pass: AQLprofile ``gfx10_block_info.h`` and ``gfx11_block_info.h`` (the same
# commit). Later releases also define counters of the L0 (TCP) and L1 (GL1C) caches, which
# rocprofiler-compute's panel for gfx1151 (rocm-systems @12a8aac2) uses: they are read where a recording has
# them, and not asked for. No recording of a kernel with known traffic confirms the request sizes, so bytes
# are estimates. There are no counters per operation: FLOPs are unknown. Nor are there any of the Infinity
# Cache, whose hits count as traffic beyond L2.

_PANEL = "rocprofiler-compute panel 2.1 for gfx1151 @12a8aac2"
_SDK = "rocprofiler-sdk counter_defs.yaml @1b1610fc"
_NOTE = (
    "Traffic between L2 and fabric: hits in the Infinity Cache and remote memory are in it."
    " Not confirmed on a kernel of known traffic."
)
_L0_NOTE = "The first vector cache, which RDNA calls L0 (TCP)."
_SIZES = (32, 64, 96, 128)
_READS = tuple(f"GL2C_EA_RDREQ_{size}B_sum" for size in _SIZES)
_WRITES = ("GL2C_MC_WRREQ_sum", "GL2C_EA_WRREQ_64B_sum")
_HITS = ("GL2C_HIT_sum", "GL2C_MISS_sum")
_WAVE_TIMES = ("SQ_WAVE_CYCLES", "SQ_WAIT_ANY", "SQ_WAIT_INST_ANY")
_WAVE_SIZES = ("SQ_WAVE32_INSTS", "SQ_WAVE64_INSTS")
_LDS = ("SQC_LDS_BANK_CONFLICT", "SQC_LDS_IDX_ACTIVE")

_BLOCK_LIMITS = {
    "SQ": 8,
    "GL2C": 4,
    "GL2A": 4,
    "GL1C": 4,
    "GL1A": 4,
    "TCP": 4,
    "TA": 2,
    "TD": 2,
    "SPI": 6,
    "CPC": 2,
    "CPF": 2,
    "GRBM": 2,
    "GDS": 4,
}


def rdna_counter_map(*, bytes_beyond_l2: bool = True) -> CounterMap:
    """The counter map of an RDNA GPU.

    Without ``bytes_beyond_l2`` the counters of requests to memory are not used: on gfx1201 they were seen to
    count something else (docs/reference/counters.md, 3.6).
    """
    moved = (_WRITES, _READS) if bytes_beyond_l2 else ()
    return CounterMap(
        quantities=(*(_bytes() if bytes_beyond_l2 else ()), *_ratios()),
        recommended=(
            *("SQ_WAVES", "SQ_INSTS_VALU", "SQ_BUSY_CYCLES"),
            *_WAVE_TIMES,
            *_WAVE_SIZES,
            *_LDS,
            *(name for group in moved for name in group),
            *_HITS,
            "GRBM_GUI_ACTIVE",
        ),
        same_pass=(*moved, _HITS, _WAVE_TIMES, _WAVE_SIZES, _LDS),
        block_limits=_BLOCK_LIMITS,
        block_prefixes=(*((f"{block}_", block) for block in _BLOCK_LIMITS), ("SQC_", "SQ")),
    )


def _bytes() -> tuple[Quantity, ...]:
    by_size = " + ".join(f"{size} * GL2C_EA_RDREQ_{size}B" for size in _SIZES)
    writes, writes_64 = "GL2C_MC_WRREQ", "GL2C_EA_WRREQ_64B"
    return (
        Quantity(
            "hbm_read_bytes",
            "B",
            (
                Formula(by_size, Exactness.ESTIMATE, f"{_SDK}, FETCH_SIZE", note=_NOTE),
                Formula("1024 * FETCH_SIZE", Exactness.ESTIMATE, f"{_SDK}, FETCH_SIZE in KiB", note=_NOTE),
                _interval("32 * GL2C_MC_RDREQ", "128 * GL2C_MC_RDREQ"),
            ),
        ),
        Quantity(
            "hbm_write_bytes",
            "B",
            (
                Formula(
                    f"64 * {writes_64} + 32 * max0({writes} - {writes_64})",
                    Exactness.ESTIMATE,
                    f"{_SDK}, WRITE_SIZE",
                    note=_NOTE,
                ),
                Formula("1024 * WRITE_SIZE", Exactness.ESTIMATE, f"{_SDK}, WRITE_SIZE in KiB", note=_NOTE),
                _interval(f"32 * {writes}", f"64 * {writes}"),
            ),
        ),
        Quantity("hbm_bytes", "B", sum_of=("hbm_read_bytes", "hbm_write_bytes")),
        Quantity(
            "l2_bytes",
            "B",
            (
                Formula(
                    " + ".join(f"{size} * GL1C_GL2_REQ_READ_{size}B" for size in (32, 64, 128)),
                    Exactness.LOWER_BOUND,
                    _PANEL,
                    note="Reads of the L1 only; nobody counts what it writes to L2 by size.",
                ),
            ),
        ),
        Quantity("vl1d_bytes", "B", (Formula("64 * TCP_REQ", Exactness.ESTIMATE, _PANEL, note=_L0_NOTE),)),
    )


def _interval(lower: str, upper: str) -> Formula:
    return Formula(lower, Exactness.INTERVAL, _SDK, upper_expression=upper, note=_NOTE)


def _ratios() -> tuple[Quantity, ...]:
    """``waves``, and everything that is a ratio.

    The profiler's own percentages (``L2CacheHit``, ``OccupancyPercent``) are not used: counters of
    a kernel are sums over its launches, and percentages don't add up.
    """
    waves = (
        Formula("SQ_WAVES", Exactness.EXACT, _SDK),
        Formula("Wavefronts", Exactness.EXACT, f"{_SDK}: reduce(SQ_WAVES, sum)"),
    )
    return (
        Quantity("waves", "wave", waves),
        _share("l2_hit_rate", "GL2C_HIT / (GL2C_HIT + GL2C_MISS)"),
        _share("vl1d_hit_rate", "1 - TCP_REQ_MISS / TCP_REQ", _PANEL, note=_L0_NOTE),
        _share("gl1_hit_rate", "1 - GL1C_REQ_MISS / GL1C_REQ", _PANEL),
        _share("sl1d_hit_rate", "SQC_DCACHE_HITS / (SQC_DCACHE_HITS + SQC_DCACHE_MISSES)", _PANEL),
        _share("l1i_hit_rate", "SQC_ICACHE_HITS / (SQC_ICACHE_HITS + SQC_ICACHE_MISSES)", _PANEL),
        _share("dependency_wait_fraction", "SQ_WAIT_ANY / SQ_WAVE_CYCLES"),
        _share("issue_wait_fraction", "SQ_WAIT_INST_ANY / SQ_WAVE_CYCLES"),
        _share("lds_bank_conflict_share", "SQC_LDS_BANK_CONFLICT / SQC_LDS_IDX_ACTIVE"),
        _share("wave32_instruction_share", "SQ_WAVE32_INSTS / (SQ_WAVE32_INSTS + SQ_WAVE64_INSTS)"),
    )


def _share(name: str, expression: str, source: str = _SDK, note: str | None = None) -> Quantity:
    return Quantity(
        name, "fraction", (Formula(expression, Exactness.EXACT, source, note=note),), additive=False
    )
