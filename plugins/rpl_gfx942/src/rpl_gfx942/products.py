"""The gfx942 products: what tells them apart and what is known about each. Unknown facts are ``None``.

CU counts, caches: ROCm documentation ``gpu-specs.rst`` @2b48ffc7. Chip ids: rocprofiler-compute
``mi_gpu_spec.yaml`` @1b1610fc. Clocks and HBM rate of MI300X and MI300A: the ``sysinfo.csv`` of real
rocprofiler-compute recordings (1300 MHz x 32 B x 128 channels = 5324.8 GB/s).
"""

from __future__ import annotations

from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe
from rpl_core.values import frozen

__all__ = ["CU_PER_XCD", "L2_BYTES_PER_XCD", "L2_CHANNELS_PER_XCD", "PRODUCTS", "Product"]

CU_PER_XCD = 38
L2_CHANNELS_PER_XCD = 16
L2_BYTES_PER_XCD = 4 * 2**20

_SPECS = "ROCm gpu-specs.rst @2b48ffc7"
_SYSINFO = "1300 MHz x 32 B x 128 channels, rocprofiler-compute sysinfo.csv"
_SHEET = "AMD data sheet (vendor figure, not checked here)"
_MEMCOPY = "memcopy +-5 %, rocm-systems tests/test_metric_validation.py @1b1610fc"
_STREAM = "RRZE gpu-benches gpu-stream @1038c5d"
_ROOFLINE = "FP32 FMA at 1486 MHz under load, RRZE gpu-benches gpu-roofline @1038c5d"


def _measured(peak_gbps: float, source: str) -> MemoryCeiling:
    return MemoryCeiling("hbm", peak_gbps, CeilingOrigin.MEASURED, source)


@frozen
class Product:
    """One product in its full (SPX) partition; ``partitions`` maps a mode to its number of XCDs.

    ``measured_in`` holds ceilings that were measured in another partition than SPX.
    """

    name: str
    product: str
    chip_ids: tuple[int, ...]  # physical and virtual function
    xcd_count: int | None
    clock_mhz: float | None
    llc_bytes: int | None
    hbm: MemoryCeiling | None
    partitions: tuple[tuple[str, int], ...]
    measured_memory: tuple[MemoryCeiling, ...] = ()
    measured_compute: tuple[ComputeCeiling, ...] = ()
    measured_in: tuple[tuple[str, MemoryCeiling], ...] = ()
    source: str = _SPECS
    unknown_reason: str = ""

    @property
    def compute_units(self) -> int | None:
        return None if self.xcd_count is None else self.xcd_count * CU_PER_XCD


def _hbm(peak_gbps: float, source: str) -> MemoryCeiling:
    return MemoryCeiling("hbm", peak_gbps, CeilingOrigin.SPEC, source)


_LLC_BYTES = 256 * 2**20
_EIGHT_XCDS = (("SPX", 8), ("DPX", 4), ("QPX", 2), ("CPX", 1))
_MI300X_FMA = ComputeCeiling("F32", Pipe.VALU_PACKED, 96500.0, CeilingOrigin.MEASURED, _ROOFLINE)

PRODUCTS: tuple[Product, ...] = (
    Product(
        "mi300x",
        "AMD Instinct MI300X",
        (29857, 29877),
        8,
        2100.0,
        _LLC_BYTES,
        _hbm(5324.8, _SYSINFO),
        _EIGHT_XCDS,
        (
            _measured(3910.62, _MEMCOPY),
            _measured(4199.0, f"{_STREAM}, read"),
            _measured(4849.0, f"{_STREAM}, write"),
        ),
        (_MI300X_FMA,),
    ),
    Product(
        "mi300a",
        "AMD Instinct MI300A",
        (29856, 29876),
        6,
        2100.0,
        _LLC_BYTES,
        _hbm(5324.8, _SYSINFO),
        (("SPX", 6), ("TPX", 2), ("CPX", 1)),
        (
            _measured(3034.0, f"{_STREAM}, triad"),
            _measured(2688.0, f"{_STREAM}, read"),
            _measured(3069.0, f"{_STREAM}, write"),
        ),
        measured_in=(("CPX", _measured(710.23, _MEMCOPY)),),
    ),
    Product(
        "mi325x",
        "AMD Instinct MI325X",
        (29861, 29881),
        8,
        2100.0,
        _LLC_BYTES,
        _hbm(6000.0, _SHEET),
        _EIGHT_XCDS,
        (_measured(4287.31, _MEMCOPY),),
        source=f"{_SPECS}; clock and HBM rate: {_SHEET}",
    ),
    Product(
        "mi308x",
        "AMD Instinct MI308X",
        (29858, 29878),
        None,
        None,
        None,
        None,
        (),
        (_measured(2003.45, _MEMCOPY),),
        source="rocprofiler-compute mi_gpu_spec.yaml @1b1610fc (chip ids only)",
        unknown_reason="no public reference at hand states it for MI308X",
    ),
)
