"""Peak rates of gfx942 from its rates per clock: arithmetic per data type and pipe, bytes per memory level.

FLOP per clock and CU: rocprofiler-compute panel 2.1 (rocm-systems @1b1610fc), reproduced by running it;
the packed FP32 rate is the one of AMD's MI300 data sheets. Bytes per clock: 128 per CU for vL1D and LDS,
128 per L2 channel (the same panel).
"""

from __future__ import annotations

from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe

__all__ = ["compute_ceilings", "on_chip_ceilings"]

_PANEL = "rocprofiler-compute panel 2.1 @1b1610fc"
_SHEET = "AMD Instinct MI300 data sheets (vendor figure, not checked here)"

#: (data type, pipe, FLOP per clock per CU, source)
_RATES: tuple[tuple[str, Pipe, int, str], ...] = (
    ("F64", Pipe.VALU, 128, _PANEL),
    ("F32", Pipe.VALU, 128, _PANEL),
    ("F32", Pipe.VALU_PACKED, 256, _SHEET),
    ("F16", Pipe.VALU, 128, _PANEL),
    ("F64", Pipe.MFMA, 256, _PANEL),
    ("F32", Pipe.MFMA, 256, _PANEL),
    ("XF32", Pipe.MFMA, 1024, _SHEET),
    ("F16", Pipe.MFMA, 2048, _PANEL),
    ("BF16", Pipe.MFMA, 2048, _PANEL),
    ("F8", Pipe.MFMA, 4096, _PANEL),
    ("I8", Pipe.MFMA, 4096, _PANEL),
)
_BYTES_PER_CLOCK = 128


def compute_ceilings(compute_units: int | None, clock_mhz: float | None) -> tuple[ComputeCeiling, ...]:
    """Spec ceilings in GFLOP/s: rate x CU x MHz / 1000; none when a factor is unknown."""
    if compute_units is None or clock_mhz is None:
        return ()
    return tuple(
        ComputeCeiling(
            data_type,
            pipe,
            rate * compute_units * clock_mhz / 1000,
            CeilingOrigin.SPEC,
            f"{rate} FLOP/clk/CU x {compute_units} CU x {clock_mhz:g} MHz; {source}",
        )
        for data_type, pipe, rate, source in _RATES
    )


def on_chip_ceilings(
    compute_units: int | None, l2_channels: int | None, clock_mhz: float | None
) -> tuple[MemoryCeiling, ...]:
    """Spec ceilings of L2, vL1D and LDS in GB/s; a level with an unknown factor is absent."""
    units = (("l2", l2_channels, "channel"), ("vl1d", compute_units, "CU"), ("lds", compute_units, "CU"))
    return tuple(
        MemoryCeiling(
            level,
            _BYTES_PER_CLOCK * count * clock_mhz / 1000,
            CeilingOrigin.SPEC,
            f"{_BYTES_PER_CLOCK} B/clk/{unit} x {count} x {clock_mhz:g} MHz; {_PANEL}",
            on_engine_clock=True,
        )
        for level, count, unit in units
        if count is not None and clock_mhz is not None
    )
