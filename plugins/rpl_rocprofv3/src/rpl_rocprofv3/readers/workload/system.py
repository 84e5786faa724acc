"""The machine of a workload folder: ``sysinfo.csv``, and what its benchmark reached."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files import read_regular
from rpl_core.model.device import CeilingOrigin, ComputeCeiling, MemoryCeiling, Pipe
from rpl_core.model.trace import Agent
from rpl_core.values import frozen
from rpl_rocprofv3.readers.trace.agents import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_UNKNOWN = frozenset({"", "na", "n/a", "none", "nan"})
_LARGEST_FILE = 1 << 20
#: Names of Omniperf 1.x for the same facts (docs/reference/formats.md, 6).
_OLD_NAMES = {
    "host_name": "hostname",
    "gpu_soc": "gpu_arch",
    "name": "gpu_model",
    "numCU": "cu_per_gpu",
    "numSIMD": "simd_per_cu",
    "maxWavesPerCU": "max_waves_per_cu",
    "waveSize": "wave_size",
    "sclk": "max_sclk",
}


@frozen
class SystemInfo:
    """The facts by column name; empty when the folder has no ``sysinfo.csv``."""

    facts: Mapping[str, str]

    def text(self, name: str) -> str | None:
        value = self.facts.get(name, "").strip()
        return None if value.lower() in _UNKNOWN else value

    def number(self, name: str) -> int | None:
        return whole_number(self.text(name)) or None

    @property
    def hostname(self) -> str | None:
        return self.text("hostname")

    @property
    def node(self) -> str:
        return self.hostname or "node"

    def agent(self, index: int) -> Agent:
        """The GPU that tables call ``index``. LDS size is not recorded in workload folders."""
        waves_per_cu, simds = self.number("max_waves_per_cu"), self.number("simd_per_cu")
        return Agent(
            node=self.node,
            index=index,
            kind="GPU",
            architecture=self.text("gpu_arch"),
            product=self.text("gpu_model"),
            chip_id=self.number("gpu_chip_id"),
            compute_units=self.number("cu_per_gpu"),
            xcd_count=self.number("num_xcd"),
            simd_per_cu=simds,
            max_waves_per_simd=waves_per_cu // simds if waves_per_cu and simds else None,
            wave_size=self.number("wave_size"),
            clock_mhz=self.number("max_sclk"),
            compute_partition=self.text("compute_partition"),
            memory_partition=self.text("memory_partition"),
        )


def read_system(path: Path | None) -> SystemInfo:
    """Read the one row of ``sysinfo.csv``; unreadable files count as absent."""
    if path is None:
        return SystemInfo({})
    try:
        text = read_regular(path, _LARGEST_FILE).decode("utf-8-sig", "replace")
        row = next(csv.DictReader(io.StringIO(text, newline="")), {})
    except (BadDataError, MissingError, csv.Error):
        return SystemInfo({})
    facts = {str(key): value for key, value in row.items() if isinstance(value, str)}
    if "gpu_soc" in facts:
        facts |= {new: facts[old] for old, new in _OLD_NAMES.items() if old in facts}
    return SystemInfo(facts)


# ``roofline.csv`` of a workload folder: what rocprofiler-compute's benchmark reached on each GPU there.
#
# One row per GPU, one column per rate in GB/s, GFLOP/s or GOP/s; columns ending in Low and High are its
# spread
# (rocm-systems @1b1610fc, projects/rocprofiler-compute/tests/workloads/path/MI200/roofline.csv).

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
