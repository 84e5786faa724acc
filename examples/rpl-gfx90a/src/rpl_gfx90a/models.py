"""MI210 and one GCD of MI250X: sizes, and ceilings from data sheet (spec) and benchmark (measured).

Sizes: ROCm documentation ``gpu-specs.rst``. FLOP per clock and CU, bytes per clock: rocprofiler-compute panel
2.1 for gfx90a; the packed FP32 rate is twice the plain one. Clock and memory rate of the 104-CU part: the
``sysinfo.csv`` of a real recording (1700 MHz; 1600 MHz x 32 B x 32 channels = 1638.4 GB/s).
"""

from __future__ import annotations

import attrs

from rpl_core.model.device import CeilingOrigin, ComputeCeiling, DeviceModel, MemoryCeiling, Pipe
from rpl_gfx90a.architecture import ARCHITECTURE, FACTS
from rpl_gfx90a.counter_map import COUNTER_MAP

_SPEC, _MEASURED = CeilingOrigin.SPEC, CeilingOrigin.MEASURED
_PANEL = "rocprofiler-compute panel 2.1 for gfx90a"
_BENCHMARK = "rocprofiler-compute tests/workloads/path/MI200/roofline.csv, device 0"
_HBM_SOURCE = "1600 MHz x 32 B x 32 channels, rocprofiler-compute sysinfo.csv"
_CHANNELS = 32

#: (data type, pipe, FLOP per clock and CU)
_RATES = (
    ("F64", Pipe.VALU, 128),
    ("F32", Pipe.VALU, 128),
    ("F32", Pipe.VALU_PACKED, 256),
    ("F16", Pipe.VALU, 128),
    ("F64", Pipe.MFMA, 256),
    ("F32", Pipe.MFMA, 256),
    ("F16", Pipe.MFMA, 1024),
    ("BF16", Pipe.MFMA, 1024),
    ("I8", Pipe.MFMA, 1024),
)
#: (memory level, bytes per clock, per CU or per L2 channel)
_WIDTHS = (("l2", 128, "channel"), ("vl1d", 64, "CU"), ("lds", 128, "CU"))


def _compute(compute_units: int, clock_mhz: float) -> tuple[ComputeCeiling, ...]:
    return tuple(
        ComputeCeiling(
            data_type,
            pipe,
            rate * compute_units * clock_mhz / 1000,
            _SPEC,
            f"{rate} FLOP/clk/CU x {compute_units} CU x {clock_mhz:g} MHz; {_PANEL}",
        )
        for data_type, pipe, rate in _RATES
    )


def _memory(compute_units: int, clock_mhz: float) -> tuple[MemoryCeiling, ...]:
    hbm = MemoryCeiling("hbm", 1638.4, _SPEC, _HBM_SOURCE)
    counts = {"CU": compute_units, "channel": _CHANNELS}
    on_chip = (
        MemoryCeiling(
            level,
            width * counts[unit] * clock_mhz / 1000,
            _SPEC,
            f"{width} B/clk/{unit} x {counts[unit]} x {clock_mhz:g} MHz; {_PANEL}",
            on_engine_clock=True,
        )
        for level, width, unit in _WIDTHS
    )
    return (hbm, *on_chip)


def _model(name: str, product: str, compute_units: int, source: str) -> DeviceModel:
    clock_mhz = 1700.0
    return DeviceModel(
        name=name,
        architecture=ARCHITECTURE,
        product=product,
        chip_ids=(),
        compute_units=compute_units,
        xcd_count=1,
        simd_per_cu=4,
        wave_size=64,
        max_waves_per_simd=8,
        lds_bytes_per_cu=65536,
        clock_mhz=clock_mhz,
        l2_bytes=8 * 2**20,
        llc_bytes=None,
        l2_channels=_CHANNELS,
        fp32_valu_width=8,  # as the documented FLOP model of rpl has it, for comparison only
        compute_ceilings=_compute(compute_units, clock_mhz),
        memory_ceilings=_memory(compute_units, clock_mhz),
        counter_map=COUNTER_MAP,
        source=source,
        unknown_facts=("llc_bytes: gfx90a has no cache between L2 and HBM",),
        architecture_facts=FACTS,
    )


MI250X_GCD = _model(
    "mi250x",
    "AMD Instinct MI250X (one GCD)",
    110,
    "ROCm gpu-specs.rst; clock: AMD data sheet (vendor figure, not checked here)",
)

_PLAIN_MI210 = _model(
    "mi210",
    "AMD Instinct MI210 (or one GCD of MI250)",
    104,
    "ROCm gpu-specs.rst; clock and HBM rate: rocprofiler-compute sysinfo.csv",
)

MI210 = attrs.evolve(
    _PLAIN_MI210,
    compute_ceilings=(
        *_PLAIN_MI210.compute_ceilings,
        *(
            ComputeCeiling(data_type, pipe, gflops, _MEASURED, _BENCHMARK)
            for data_type, pipe, gflops in (
                ("F32", Pipe.VALU, 20_941.97),
                ("F64", Pipe.VALU, 20_272.54),
                ("BF16", Pipe.MFMA, 170_483.16),
                ("F16", Pipe.MFMA, 164_938.17),
                ("F32", Pipe.MFMA, 41_438.68),
                ("F64", Pipe.MFMA, 41_497.56),
                ("I8", Pipe.MFMA, 166_402.27),
            )
        ),
    ),
    memory_ceilings=(
        *_PLAIN_MI210.memory_ceilings,
        *(
            MemoryCeiling(level, gbps, _MEASURED, _BENCHMARK)
            for level, gbps in (("hbm", 1388.93), ("l2", 5018.29), ("vl1d", 9226.73), ("lds", 17_717.83))
        ),
    ),
)
