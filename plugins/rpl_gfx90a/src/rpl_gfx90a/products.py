"""The gfx90a products: what tells them apart, and peak and measured rates. Unknown facts are ``None``.

MI250 and MI250X are two dies (GCDs), each of which is a GPU by itself. Sizes: ROCm documentation
``gpu-specs.rst`` @2b48ffc7. Chip ids: rocprofiler-compute ``mi_gpu_spec.yaml`` @1b1610fc and ``amdgpu.ids``
of libdrm. Clock: https://rocm.docs.amd.com/en/latest/conceptual/gpu-arch/mi250.html, and with the memory
rate the ``sysinfo.csv`` of a real recording of a 104-CU GPU (1700 MHz; 1600 MHz x 32 B x 32 channels =
1638.4 GB/s).
"""

from __future__ import annotations

from rpl_amdgpu.cdna import (
    COPY,
    SDK,
    MatrixPeak,
    byte_quantities,
    cdna_counter_map,
    fabric_interval,
    flop_quantities,
    utilization_quantities,
)
from rpl_amdgpu.models import ByteRate, ComputeRate, Family, Product, cdna_architecture
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, Formula, MemoryCeiling, Pipe
from rpl_core.model.metric import Exactness

# The counter map of gfx90a: what its counters mean beyond what all CDNA GPUs share.
#
# Sources: rocprofiler-sdk ``counter_defs.yaml`` and rocprofiler-compute (rocm-systems @1b1610fc). Fabric
# counters are named ``TCC_EA_*``, reads are of 32 or 64 bytes only, and there is no FP8.

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

# The products.

_MI250 = "https://rocm.docs.amd.com/en/latest/conceptual/gpu-arch/mi250.html"
_SPECS = f"ROCm gpu-specs.rst @2b48ffc7; clock: {_MI250}"
_PANEL = "rocprofiler-compute panel 2.1 for gfx90a @1b1610fc"
#: The panel has 64 bytes, which makes 3481.6 GB/s for 32 channels; the benchmark below measured 5018.
_L2 = "chosen, the size of an L2 line (docs/reference/devices.md, 2.2); rocprofiler-compute panel 2.1 has 64"
_BENCHMARK = "rocprofiler-compute tests/workloads/path/MI200/roofline.csv @1b1610fc, device 0 (104 CU)"
_CLOCK_MHZ = 1700.0
_L2_BYTES = 8 * 2**20
_HBM = MemoryCeiling(
    "hbm", 1638.4, CeilingOrigin.SPEC, "1600 MHz x 32 B x 32 channels, rocprofiler-compute sysinfo.csv"
)
_MEASURED_MEMORY = tuple(
    MemoryCeiling(level, gbps, CeilingOrigin.PUBLISHED, _BENCHMARK)
    for level, gbps in (("hbm", 1388.93), ("l2", 5018.29), ("vl1d", 9226.73), ("lds", 17_717.83))
)
_MEASURED_COMPUTE = tuple(
    ComputeCeiling(data_type, pipe, gflops, CeilingOrigin.PUBLISHED, _BENCHMARK)
    for data_type, pipe, gflops in (
        ("F32", Pipe.VALU, 20_941.97),
        ("F64", Pipe.VALU, 20_272.54),
        ("BF16", Pipe.MFMA, 170_483.16),
        ("F16", Pipe.MFMA, 164_938.17),
        ("F32", Pipe.MFMA, 41_438.68),
        ("F64", Pipe.MFMA, 41_497.56),
        ("I8", Pipe.MFMA, 166_402.27),
    )
)


def _die(name: str, product: str, chip_ids: tuple[int, ...], compute_units: int) -> Product:
    """One die; the benchmark was run on one of 104 CUs, which products of that size share."""
    benchmarked = compute_units == 104
    return Product(
        name=name,
        product=product,
        source=_SPECS,
        chip_ids=chip_ids,
        xcd_count=1,
        units_per_xcd=compute_units,
        clock_mhz=_CLOCK_MHZ,
        hbm=_HBM,
        published_memory=_MEASURED_MEMORY if benchmarked else (),
        published_compute=_MEASURED_COMPUTE if benchmarked else (),
    )


GFX90A = Family(
    architecture=cdna_architecture("gfx90a"),
    wave_size=64,
    counter_map=COUNTER_MAP,
    products=(
        _die("mi210", "AMD Instinct MI210", (29711,), 104),
        _die("mi250", "AMD Instinct MI250 (one GCD)", (29708,), 104),
        _die("mi250x", "AMD Instinct MI250X (one GCD)", (29704, 29708), 110),
    ),
    compute_rates=(
        ComputeRate("F64", Pipe.VALU, 128, _PANEL),
        ComputeRate("F32", Pipe.VALU, 128, _PANEL),
        ComputeRate("F32", Pipe.VALU_PACKED, 256, _MI250),
        ComputeRate("F16", Pipe.VALU, 128, _PANEL),
        ComputeRate("F64", Pipe.MFMA, 256, _PANEL),
        ComputeRate("F32", Pipe.MFMA, 256, _PANEL),
        ComputeRate("F16", Pipe.MFMA, 1024, _PANEL),
        ComputeRate("BF16", Pipe.MFMA, 1024, _PANEL),
        ComputeRate("I8", Pipe.MFMA, 1024, _PANEL),
    ),
    byte_rates=(
        ByteRate("l2", "channel", 128, _L2),
        ByteRate("vl1d", "CU", 64, _PANEL),
        ByteRate("lds", "CU", 128, _PANEL),
    ),
    l2_bytes_per_xcd=_L2_BYTES,
    l2_channels_per_xcd=32,
    fp32_valu_width=8,  # as the documented FLOP model of CDNA3 has it, for comparison only
    absent={"llc_bytes": "gfx90a has no cache between L2 and HBM"},
)
