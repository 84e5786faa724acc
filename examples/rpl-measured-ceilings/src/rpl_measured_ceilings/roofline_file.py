"""``roofline.csv`` of rocprofiler-compute: one row per GPU of the machine, one column per measured rate.

Columns: rocm-systems @1b1610fc, projects/rocprofiler-compute/tests/workloads/path/MI200/roofline.csv. Rates
are in GB/s and GFLOP/s, as rpl has them; columns ending in Low and High are the spread of the benchmark.
"""

from __future__ import annotations

import csv
from pathlib import Path

from rpl_core.errors import BadDataError
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe

_MEMORY = {"HBMBw": "hbm", "L2Bw": "l2", "L1Bw": "vl1d", "LDSBw": "lds"}
_COMPUTE = {
    "FP32Flops": ("F32", Pipe.VALU),
    "FP64Flops": ("F64", Pipe.VALU),
    **{f"MFMA{t}Flops": (t, Pipe.MFMA) for t in ("BF16", "F16", "F32", "F64", "F8")},
    "MFMAI8Ops": ("I8", Pipe.MFMA),
}


def read_ceilings(path: str, *, row: int) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    """The ceilings of one GPU; a rate that was not measured (absent, empty or 0) gives none."""
    try:
        with Path(path).open(newline="", encoding="utf-8") as text:
            rates = list(csv.DictReader(text))[row]
    except (OSError, IndexError, UnicodeDecodeError) as error:
        raise BadDataError(
            f"{path} has no row {row} of measured rates ({error})",
            next_step="set plugins.measured-ceilings.file to a roofline.csv of rocprofiler-compute",
        ) from error
    source = f"benchmark of rocprofiler-compute, {Path(path).name}, row {row}"
    origin = CeilingOrigin.MEASURED
    memory = (MemoryCeiling(level, _rate(rates, name), origin, source) for name, level in _MEMORY.items())
    compute = (
        ComputeCeiling(data_type, pipe, _rate(rates, name), origin, source)
        for name, (data_type, pipe) in _COMPUTE.items()
    )
    return (*(c for c in memory if c.peak_gbps > 0), *(c for c in compute if c.peak_gflops > 0))


def _rate(rates: dict[str, str], name: str) -> float:
    try:
        return float(rates.get(name) or 0)
    except ValueError:
        return 0.0
