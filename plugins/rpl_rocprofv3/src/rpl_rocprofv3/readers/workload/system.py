"""``sysinfo.csv`` of a workload folder: the machine and the GPU on which the counters were collected."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_core.files.bounded import read_regular
from rpl_core.model.trace import Agent
from rpl_core.values import frozen
from rpl_rocprofv3.readers.trace.agents import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["SystemInfo", "read_system"]

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
