"""``*_pc_sampling_*.csv``, told by its header: one row per sample; kernels from the kernel trace beside."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_pcsampling.reading.growing import GrowingSamples
from rpl_pcsampling.samples import Method, PcSamples, Place, Position
from rpl_rocprofv3.readers.columns import display_name
from rpl_rocprofv3.readers.csv.tables import csv_header, open_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from rpl_core.model.origin import Origin

__all__ = ["companions", "is_sample_table", "kernel_names", "read_csv"]

_COMMON = (
    *("Sample_Timestamp", "Exec_Mask", "Dispatch_Id", "Instruction", "Instruction_Comment"),
    "Correlation_Id",
)
_STOCHASTIC = ("Wave_Issued_Instruction", "Instruction_Type", "Stall_Reason", "Wave_Count")
_KIND = re.compile(r"pc_sampling_(?:host_trap|stochastic)\w*\.csv(?:\.gz)?")
#: What the profiler writes instead of a comment where it knows no code object.
_UNRECOGNISED = "Unrecognized code object id"


def is_sample_table(path: Path) -> bool:
    """Whether the first line is that of a table of samples, whatever the file is called."""
    if not path.name.endswith((".csv", ".csv.gz")):
        return False
    header = csv_header(path)
    return tuple(header[: len(_COMMON)]) == _COMMON


def companions(table: Path, files: Iterable[Path]) -> list[Path]:
    """The tables of the same process among ``files``: agents, and the trace that names dispatches."""
    match = _KIND.search(table.name)
    if match is None:
        return []
    prefix = table.name[: match.start()]
    wanted = {f"{prefix}{kind}.csv{end}" for kind in ("kernel_trace", "agent_info") for end in ("", ".gz")}
    return [path for path in files if path.parent == table.parent and path.name in wanted]


def read_csv(path: Path, names: Mapping[int, str], origin: Origin) -> PcSamples:
    """All samples of ``path``. Rows that are cut off or hold no numbers are left out and counted.

    Raises ``BadDataError`` for a table without a sample.
    """
    rows = _rows(path)
    header = tuple(next(rows, ()))
    stochastic = header[len(_COMMON) :][: len(_STOCHASTIC)] == _STOCHASTIC
    growing = GrowingSamples(Method.STOCHASTIC if stochastic else Method.HOST_TRAP)
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            growing.left_out += 1
            continue
        try:
            time_ns, mask, dispatch = int(row[0]), int(row[1], 0), int(row[2])
            issued, waves = (int(row[6]), int(row[9])) if stochastic else (None, None)
        except ValueError:
            growing.left_out += 1
            continue
        place = growing.place((row[3], row[4]), lambda row=row: _place(row[3], row[4]))  # type: ignore[misc]
        if growing.add(place, dispatch, time_ns, mask) and stochastic:
            growing.add_state(issued, row[7], row[8], waves)
    if not len(growing):
        raise BadDataError(
            f"{path} holds no sample",
            cause="the kernels were shorter than the sampling interval, or the file was cut off",
            next_step="sample more often (--pc-interval) or run longer",
        )
    return growing.samples(names, Position.TEXT, origin)


def kernel_names(trace: Path) -> dict[int, str]:
    """Kernel names by dispatch id, from a kernel trace; rows without both are passed over."""
    rows = _rows(trace)
    header = list(next(rows, ()))
    if not {"Dispatch_Id", "Kernel_Name"} <= set(header):
        return {}
    number, name = header.index("Dispatch_Id"), header.index("Kernel_Name")
    return {
        int(row[number]): display_name(row[name])
        for row in rows
        if len(row) == len(header) and row[number].isascii() and row[number].isdigit() and row[name]
    }


def _rows(path: Path) -> Iterator[list[str]]:
    with open_text(path) as stream:  # turns damage into ``BadDataError``
        yield from csv.reader(stream)


def _place(instruction: str, comment: str) -> Place:
    if comment.startswith(_UNRECOGNISED):
        return Place(None)
    return Place(instruction or None, comment or None)
