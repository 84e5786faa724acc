"""``roofline.csv`` of a workload folder: what rocprofiler-compute's benchmark reached on each GPU there.

One row per GPU, one column per rate in GB/s, GFLOP/s or GOP/s; columns ending in Low and High are its spread
(rocm-systems @1b1610fc, projects/rocprofiler-compute/tests/workloads/path/MI200/roofline.csv).
"""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BENCHMARK", "read_benchmark"]

BENCHMARK = "roofline.csv"
#: A machine has few GPUs; a longer file is none of the benchmark.
_MOST_ROWS = 256
_MOST_BYTES = 1 << 20
_MEMORY = {"HBMBw": "hbm", "L2Bw": "l2", "L1Bw": "vl1d", "LDSBw": "lds"}
_COMPUTE = {
    "FP32Flops": ("F32", Pipe.VALU),
    "FP64Flops": ("F64", Pipe.VALU),
    **{f"MFMA{kind}Flops": (kind, Pipe.MFMA) for kind in ("BF16", "F16", "F32", "F64", "F8")},
    "MFMAI8Ops": ("I8", Pipe.MFMA),
}


def read_benchmark(path: Path) -> tuple[ComputeCeiling | MemoryCeiling, ...]:
    """The lowest of all GPUs for each rate: which of them ran the recording is not in the file.

    A rate that is absent, empty or zero was not measured; a file that can't be read gives none.
    """
    try:
        text = io.StringIO(read_regular(path, _MOST_BYTES).decode(), newline="")
        rows = [row for row, _ in zip(csv.DictReader(text), range(_MOST_ROWS), strict=False)]
    except (BadDataError, MissingError, UnicodeDecodeError, csv.Error):
        return ()
    gpus = "the GPU" if len(rows) == 1 else f"the slowest of {len(rows)} GPUs"
    source = f"{path.name} of the recording: benchmark of rocprofiler-compute, {gpus}"
    origin = CeilingOrigin.MEASURED
    memory = {level: _lowest(rows, name) for name, level in _MEMORY.items()}
    compute = {kind: _lowest(rows, name) for name, kind in _COMPUTE.items()}
    return (
        *(MemoryCeiling(level, rate, origin, source) for level, rate in memory.items() if rate),
        *(ComputeCeiling(*kind, rate, origin, source) for kind, rate in compute.items() if rate),
    )


def _lowest(rows: list[dict[str, str]], name: str) -> float | None:
    rates = [rate for row in rows if (rate := _rate(row.get(name))) is not None]
    return min(rates, default=None)


def _rate(text: str | None) -> float | None:
    try:
        rate = float(text or 0)
    except ValueError:
        return None
    return rate if math.isfinite(rate) and rate > 0 else None
