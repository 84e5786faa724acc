"""The gfx942 products: what tells them apart, and their peak and measured rates. Unknown facts are ``None``.

CU counts, caches: ROCm documentation ``gpu-specs.rst`` @2b48ffc7. Chip ids, XCDs of partitions:
rocprofiler-compute ``mi_gpu_spec.yaml`` @1b1610fc. Clocks and HBM rate of MI300X and MI300A: the
``sysinfo.csv`` of real rocprofiler-compute recordings (1300 MHz x 32 B x 128 channels = 5324.8 GB/s).
Operations and bytes per clock: panel 2.1 of rocprofiler-compute, reproduced by running it; packed FP32 and
XF32 are rates of AMD's MI300 data sheets.
"""

from __future__ import annotations

from rpl_amdgpu.cdna import (
    COPY,
    FABRIC_NOTE,
    SDK,
    MatrixPeak,
    byte_quantities,
    cdna_counter_map,
    flop_quantities,
    matrix_operations,
    reads_of_three_sizes,
    utilization_quantities,
)
from rpl_amdgpu.models import ByteRate, ComputeRate, Family, Product, cdna_architecture
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, Formula, MemoryCeiling, Pipe, Quantity
from rpl_core.model.metric import Exactness

# The counter map of gfx942: what its counters mean beyond what all CDNA GPUs share.
#
# Sources: rocprofiler-sdk ``counter_defs.yaml`` and rocprofiler-compute (rocm-systems @1b1610fc).
# ``TCC_EA0_RDREQ`` counts reads of 32, 64 and 128 bytes; ``TCC_BUBBLE`` is the number of the 128-byte ones.

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

# The products.

_CU_PER_XCD = 38
_LLC_BYTES = 256 * 2**20
_EIGHT_XCDS = (("SPX", 8), ("DPX", 4), ("QPX", 2), ("CPX", 1))

_SPECS = "ROCm gpu-specs.rst @2b48ffc7"
_PANEL = "rocprofiler-compute panel 2.1 @1b1610fc"
_SYSINFO = "1300 MHz x 32 B x 128 channels, rocprofiler-compute sysinfo.csv"
_MI300_SHEETS = "AMD Instinct MI300 data sheets (vendor figure, not checked here)"
_SHEET = "AMD data sheet (vendor figure, not checked here)"
_MEMCOPY = "memcopy +-5 %, rocm-systems rocprofiler-compute tests/test_metric_validation.py @117d8704"
_STREAM = "RRZE gpu-benches gpu-stream @1038c5d"
_ROOFLINE = "FP32 FMA at 1486 MHz under load, RRZE gpu-benches gpu-roofline @1038c5d"
#: gfx942 as an instruction set: what a compute unit holds, rates of instructions, quirks of recordings.
FACTS = cdna_architecture(
    "gfx942",
    # A quarter of the rates per CU that the ceilings have.
    matrix_rates=(
        ("F64", 64),
        ("F32", 64),
        ("XF32", 256),
        ("F16", 512),
        ("BF16", 512),
        ("I8", 1024),
        ("F8", 1024),
    ),
    source="LLVM AMDGPU back end; ROCm gpu-specs.rst @2b48ffc7",
)


def _hbm(peak_gbps: float, source: str, origin: CeilingOrigin = CeilingOrigin.SPEC) -> MemoryCeiling:
    return MemoryCeiling("hbm", peak_gbps, origin, source)


def _published(peak_gbps: float, source: str) -> MemoryCeiling:
    return _hbm(peak_gbps, source, CeilingOrigin.PUBLISHED)


_PRODUCTS = (
    Product(
        name="mi300x",
        product="AMD Instinct MI300X",
        source=_SPECS,
        chip_ids=(29857, 29877),
        xcd_count=8,
        units_per_xcd=_CU_PER_XCD,
        clock_mhz=2100.0,
        llc_bytes=_LLC_BYTES,
        hbm=_hbm(5324.8, _SYSINFO),
        partitions=_EIGHT_XCDS,
        published_memory=(
            _published(3910.62, _MEMCOPY),
            _published(4199.0, f"{_STREAM}, read"),
            _published(4849.0, f"{_STREAM}, write"),
        ),
        published_compute=(
            ComputeCeiling("F32", Pipe.VALU_PACKED, 96500.0, CeilingOrigin.PUBLISHED, _ROOFLINE),
        ),
    ),
    Product(
        name="mi300a",
        product="AMD Instinct MI300A",
        source=_SPECS,
        chip_ids=(29856, 29876),
        xcd_count=6,
        units_per_xcd=_CU_PER_XCD,
        clock_mhz=2100.0,
        llc_bytes=_LLC_BYTES,
        hbm=_hbm(5324.8, _SYSINFO),
        partitions=(("SPX", 6), ("TPX", 2), ("CPX", 1)),
        published_memory=(
            _published(3034.0, f"{_STREAM}, triad"),
            _published(2688.0, f"{_STREAM}, read"),
            _published(3069.0, f"{_STREAM}, write"),
        ),
        published_in=(("CPX", _published(710.23, _MEMCOPY)),),
    ),
    Product(
        name="mi325x",
        product="AMD Instinct MI325X",
        source=f"{_SPECS}; clock and HBM rate: {_SHEET}",
        chip_ids=(29861, 29881),
        xcd_count=8,
        units_per_xcd=_CU_PER_XCD,
        clock_mhz=2100.0,
        llc_bytes=_LLC_BYTES,
        hbm=_hbm(6000.0, _SHEET),
        partitions=_EIGHT_XCDS,
        published_memory=(_published(4287.31, _MEMCOPY),),
    ),
    Product(
        name="mi308x",
        product="AMD Instinct MI308X",
        source="rocprofiler-compute mi_gpu_spec.yaml @1b1610fc (chip ids and XCDs only)",
        chip_ids=(29858, 29878),
        xcd_count=4,
        partitions=(("SPX", 4), ("DPX", 2), ("CPX", 1)),
        published_memory=(_published(2003.45, _MEMCOPY),),
        unknown_reason="no public reference at hand states it for MI308X",
    ),
)

GFX942 = Family(
    architecture=FACTS,
    wave_size=64,
    counter_map=COUNTER_MAP,
    products=_PRODUCTS,
    compute_rates=(
        ComputeRate("F64", Pipe.VALU, 128, _PANEL),
        ComputeRate("F32", Pipe.VALU, 128, _PANEL),
        ComputeRate("F32", Pipe.VALU_PACKED, 256, _MI300_SHEETS),
        ComputeRate("F16", Pipe.VALU, 128, _PANEL),
        ComputeRate("F64", Pipe.MFMA, 256, _PANEL),
        ComputeRate("F32", Pipe.MFMA, 256, _PANEL),
        ComputeRate("XF32", Pipe.MFMA, 1024, _MI300_SHEETS),
        ComputeRate("F16", Pipe.MFMA, 2048, _PANEL),
        ComputeRate("BF16", Pipe.MFMA, 2048, _PANEL),
        ComputeRate("F8", Pipe.MFMA, 4096, _PANEL),
        ComputeRate("I8", Pipe.MFMA, 4096, _PANEL),
    ),
    byte_rates=(
        ByteRate("l2", "channel", 128, _PANEL),
        ByteRate("vl1d", "CU", 128, _PANEL),
        ByteRate("lds", "CU", 128, _PANEL),
    ),
    l2_bytes_per_xcd=4 * 2**20,
    l2_channels_per_xcd=16,
    # The VALU width of the documented FLOP model (kalowery/rocm-perf-lab @f9ff67a4 docs/ARCHITECTURE.md,
    # section 2).
    fp32_valu_width=8,
)
