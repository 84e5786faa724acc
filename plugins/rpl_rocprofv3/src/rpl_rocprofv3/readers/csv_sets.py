"""Which CSV files of rocprofv3 belong together: ``<prefix>_<kind>.csv`` with one prefix per process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_rocprofv3.readers.csv_tables import csv_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["COUNTERS", "CsvSet", "csv_sets"]

KERNELS, COUNTERS, AGENTS = "kernel_trace", "counter_collection", "agent_info"
HIP, COPIES = "hip_api_trace", "memory_copy_trace"
_NAME = re.compile(
    r"(?:(?P<prefix>.*)_)?"
    r"(?P<kind>kernel_trace|counter_collection|agent_info|hip_api_trace|hip_runtime_api_trace|memory_copy_trace)"
    r"\.csv(?:\.gz)?"
)
_SAME_KIND = {"hip_runtime_api_trace": HIP}
_TIMES = ("start_timestamp", "end_timestamp")
_COLUMNS = {
    KERNELS: ("kernel_name", "dispatch_id", "agent_id", *_TIMES),
    COUNTERS: ("kernel_name", "dispatch_id", "counter_name", "counter_value"),
    AGENTS: ("node_id", "agent_type", "name"),
    HIP: ("function", *_TIMES),
    COPIES: ("direction", *_TIMES),
}


@attrs.frozen
class CsvSet:
    """The files of one process by kind."""

    folder: Path
    prefix: str
    files: Mapping[str, Path]

    @property
    def pid(self) -> int | None:
        """The process id, which is the default prefix."""
        return int(self.prefix) if re.fullmatch(r"\d{1,9}", self.prefix) else None

    def refusal(self) -> str | None:
        """Why the set gives no trace, judged by the headers."""
        for kind, path in sorted(self.files.items()):
            if path.stat().st_size == 0:
                return f"{path.name} is empty (0 bytes)"
            present = {name.lower() for name in csv_header(path)}
            missing = [column for column in _COLUMNS[kind] if column not in present]
            if missing:
                return f"{path.name} is no rocprofv3 {kind} table: it lacks {', '.join(missing)}"
        if KERNELS not in self.files and COUNTERS not in self.files:
            return "the CSV set holds no kernel trace"
        return None


def csv_sets(files: Iterable[Path]) -> tuple[CsvSet, ...]:
    """The sets among ``files``, ordered by folder and prefix. Looks at names only."""
    found: dict[tuple[Path, str], dict[str, Path]] = {}
    for path in sorted(files):
        match = _NAME.fullmatch(path.name)
        if match and path.is_file():
            kind = _SAME_KIND.get(match["kind"], match["kind"])
            found.setdefault((path.parent, match["prefix"] or ""), {}).setdefault(kind, path)
    return tuple(CsvSet(folder, prefix, kinds) for (folder, prefix), kinds in sorted(found.items()))
