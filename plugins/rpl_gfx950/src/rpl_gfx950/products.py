"""The gfx950 products: what tells them apart, and peak and measured rates. Unknown facts are ``None``.

CU counts, caches, LDS: ROCm documentation ``gpu-specs.rst`` @2b48ffc7. Chip ids, XCDs of partitions:
rocprofiler-compute ``mi_gpu_spec.yaml`` @1b1610fc. HBM rates and peak rates: ROCm/rocm-docs ``mi350.rst``
@002654d6, whose TFLOP/s are the rates per clock below with 256 CUs at 2200 and 2400 MHz. Clocks follow from
them.
"""

from __future__ import annotations

from rpl_amdgpu.cdna import (
    FABRIC_NOTE,
    SDK,
    MatrixPeak,
    byte_quantities,
    cdna_counter_map,
    fabric_interval,
    flop_quantities,
    matrix_operations,
    reads_of_three_sizes,
    utilization_quantities,
)
from rpl_amdgpu.models import ByteRate, ComputeRate, Family, Product, cdna_architecture
from rpl_core.model.device import CeilingOrigin, Formula, MemoryCeiling, Pipe
from rpl_core.model.metric import Exactness

# The counter map of gfx950: what its counters mean beyond what all CDNA GPUs share.
#
# Sources: rocprofiler-sdk ``counter_defs.yaml`` (rocm-systems @1b1610fc); AMD's "MI350 series performance
# counters", ROCm/legacy-rocm-build @089d7513. ``TCC_EA0_RDREQ`` counts reads of 32, 64 and 128 bytes as on
# gfx942, but ``TCC_BUBBLE`` reads zero: the large ones are ``TCC_EA0_RDREQ_128B``
# (docs/reference/counters.md, 3.1).

_FABRIC = "TCC_EA0"
_COPIED_ON = "MI350X"
_COUNTERS = "AMD MI350 series performance counters, ROCm/legacy-rocm-build @089d7513"
_R32, _R64, _R128 = (f"TCC_EA0_RDREQ_{size}B" for size in (32, 64, 128))
_SIZES = f"{SDK}; {_COUNTERS}; not seen in a recording"
#: Wide types first.
_MATRIX = ("F64", "F32", "F16", "BF16", "F8", "F6F4", "I8")

#: FETCH_SIZE takes every read for 64 bytes where it is defined by TCC_BUBBLE, and a later definition may
#: count 128: a recording does not say by which it was made.
_READS = (
    *reads_of_three_sizes(fabric=_FABRIC, reads_128=_R128, source=_SIZES),
    Formula(f"128 * {_R128} + 64 * {_R64} + 32 * {_R32}", Exactness.EXACT, _SIZES, note=FABRIC_NOTE),
    fabric_interval(
        "1024 * FETCH_SIZE",
        "2048 * FETCH_SIZE",
        f"{FABRIC_NOTE} FETCH_SIZE takes reads of 128 bytes for 64 in some releases.",
    ),
)
_LDS_BYTES = Formula(
    "64 * (SQ_INSTS_LDS_LOAD_BANDWIDTH + SQ_INSTS_LDS_STORE_BANDWIDTH + SQ_INSTS_LDS_ATOMIC_BANDWIDTH)",
    Exactness.ESTIMATE,
    f"{SDK}; {_COUNTERS}",
    note="Instruction size times active lanes; not checked on a kernel of known traffic.",
)
#: Sparse instructions do twice the operations of dense ones; there are none on FP6 and FP4.
_MATRIX_PEAK = MatrixPeak(
    operations={
        "F64": 128,
        "F32": 256,
        "F16": 8192,
        "BF16": 8192,
        "F8": 16384,
        "F6F4": 16384,
        "I8": 16384,
    },
    source="rocprofiler-compute panel 2.1 @1b1610fc; sparse rates, FP6, FP4: rocm-docs mi350.rst @002654d6",
)
_NOT_TRIED = (
    "data-fabric counters can hang MI300X (docs/reference/counters.md, 1.6); nobody tried them on gfx950"
)

COUNTER_MAP = cdna_counter_map(
    (
        *flop_quantities(
            matrix_operations(
                "F8", note="Whether MXFP8 inputs of V_MFMA_*_F8F6F4 count here is not checked."
            ),
            matrix_operations("F6F4", note="MXFP6 and MXFP4 inputs."),
        ),
        *byte_quantities(
            fabric=_FABRIC,
            reads=_READS,
            l1_read_bytes=128,
            copied_on=_COPIED_ON,
            lds=(_LDS_BYTES,),
        ),
        *utilization_quantities(
            fabric=_FABRIC,
            matrix_peak=_MATRIX_PEAK,
            l2_note=(
                "A pure copy without any reuse shows 0.34, because a 128-byte line is written in two halves."
            ),
            vl1d_note="A streaming kernel without any reuse shows 0.63: do not read it as locality.",
        ),
    ),
    fabric=_FABRIC,
    reads=("TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_EA0_RDREQ_128B_sum"),
    matrix=_MATRIX,
    # Seven matrix types leave one place: SQ_INSTS_VALU serves the documented FLOP model of CDNA3 only.
    context=("SQ_WAVES",),
    dangerous=(("MALL_", _NOT_TRIED), ("HBM_", _NOT_TRIED)),
)

# The products.

_CU_PER_XCD = 32
_SPECS = "ROCm gpu-specs.rst @2b48ffc7; clock and HBM rate: ROCm/rocm-docs mi350.rst @002654d6"
_PANEL = "rocprofiler-compute panel 2.1 @1b1610fc"
_MI350 = "ROCm/rocm-docs mi350.rst @002654d6"
_MEMCOPY = (
    "memcopy +-5 % on an MI350 series GPU, rocm-systems rocprofiler-compute tests/test_metric_validation.py"
    " @117d8704"
)
#: rocprofiler-sdk around ROCm 7.0 takes it for an older device: (granulated + 1) * 4 VGPRs and no AGPRs,
#: half of the allocation. A later release may be right; no record tells which it was.
_HALVED = "rocprofiler-sdk of ROCm 7.0 (docs/reference/formats.md, 2.3); counter_defs.yaml @1b1610fc"


def _hbm(peak_gbps: float, source: str, origin: CeilingOrigin = CeilingOrigin.SPEC) -> MemoryCeiling:
    return MemoryCeiling("hbm", peak_gbps, origin, source)


_EIGHT_XCDS = (("SPX", 8), ("DPX", 4), ("QPX", 2), ("CPX", 1))

_PRODUCTS = (
    Product(
        name="mi350x",
        product="AMD Instinct MI350X",
        source=_SPECS,
        chip_ids=(30112, 30128),
        xcd_count=8,
        units_per_xcd=_CU_PER_XCD,
        clock_mhz=2200.0,
        llc_bytes=256 * 2**20,
        hbm=_hbm(8000.0, _MI350),
        partitions=_EIGHT_XCDS,
        published_memory=(_hbm(5690.42, _MEMCOPY, CeilingOrigin.PUBLISHED),),
    ),
    Product(
        name="mi355x",
        product="AMD Instinct MI355X",
        source=_SPECS,
        chip_ids=(30115, 30131),
        xcd_count=8,
        units_per_xcd=_CU_PER_XCD,
        clock_mhz=2400.0,
        llc_bytes=256 * 2**20,
        hbm=_hbm(8000.0, _MI350),
        partitions=_EIGHT_XCDS,
    ),
    Product(
        name="mi350p",
        product="AMD Instinct MI350P",
        source=_SPECS,
        xcd_count=4,
        units_per_xcd=_CU_PER_XCD,
        clock_mhz=2200.0,
        llc_bytes=128 * 2**20,
        hbm=_hbm(4000.0, _MI350),
        partitions=(("SPX", 4), ("DPX", 2), ("CPX", 1)),
    ),
)

GFX950 = Family(
    architecture=cdna_architecture(
        "gfx950",
        lds_bytes=163840,
        lds_granule_bytes=1280,
        # A quarter of the rates per CU below. One mnemonic serves FP8, FP6 and FP4, at two rates: no figure.
        matrix_rates=(("F64", 32), ("F32", 64), ("F16", 1024), ("BF16", 1024), ("I8", 2048)),
        vgprs_may_be_halved=True,
        quirks_source=_HALVED,
    ),
    wave_size=64,
    counter_map=COUNTER_MAP,
    products=_PRODUCTS,
    compute_rates=(
        ComputeRate("F64", Pipe.VALU, 128, _PANEL),
        ComputeRate("F32", Pipe.VALU, 128, _PANEL),
        ComputeRate("F32", Pipe.VALU_PACKED, 256, _MI350),
        ComputeRate("F16", Pipe.VALU, 128, _PANEL),
        ComputeRate("F16", Pipe.VALU_PACKED, 256, _MI350),
        ComputeRate("F64", Pipe.MFMA, 128, _PANEL),
        ComputeRate("F32", Pipe.MFMA, 256, _PANEL),
        ComputeRate("F16", Pipe.MFMA, 4096, _PANEL),
        ComputeRate("BF16", Pipe.MFMA, 4096, _PANEL),
        ComputeRate("F8", Pipe.MFMA, 8192, _PANEL),
        ComputeRate("F6F4", Pipe.MFMA, 16384, _MI350),
        ComputeRate("I8", Pipe.MFMA, 8192, _PANEL),
    ),
    # No LDS: the panel has 128 bytes per clock, and mi350.rst says that reads are twice as fast as on CDNA3.
    byte_rates=(ByteRate("l2", "channel", 128, _PANEL), ByteRate("vl1d", "CU", 128, _PANEL)),
    l2_bytes_per_xcd=4 * 2**20,
    l2_channels_per_xcd=16,
    absent={"fp32_valu_width": "the FLOP model by VALU width is documented for CDNA3 only"},
)
