"""What a pass left: decoded folders, raw traces, the profiler's own results; and whether a trace is empty."""

from __future__ import annotations

from pathlib import Path

from rpl_att.analysis.occupancy import busiest_target
from rpl_att.collector.command_line import Target
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.occupancy_events import read_occupancy
from rpl_att.reading.raw_files import files_beside, is_raw_file
from rpl_core.errors import BadDataError
from rpl_core.values import frozen


@frozen
class TraceOutput:
    """Paths in a pass's directory, sorted. ``results`` tie dispatches to kernels."""

    folders: tuple[Path, ...]
    raw: tuple[Path, ...]
    results: tuple[Path, ...]

    def files(self) -> tuple[Path, ...]:
        """Every file that an analysis reads."""
        inside = [file for folder in self.folders for file in sorted(folder.iterdir()) if file.is_file()]
        tables = [folder.parent / f"stats_{folder.name}.csv" for folder in self.folders]
        beside = [path for path in tables if path.is_file()]
        return (*inside, *beside, *self.raw, *self.results)


def trace_output(directory: Path) -> TraceOutput:
    """Look at ``directory`` and one level below; links are not followed."""
    beside = files_beside(directory)
    folders = [p for p in directory.glob("ui_output_agent_*_dispatch_*") if p.is_dir() and not p.is_symlink()]
    return TraceOutput(
        folders=tuple(sorted(folders)),
        raw=tuple(path for path in beside if is_raw_file(path.name)),
        results=tuple(path for path in beside if path.name.endswith("_results.json")),
    )


def is_empty(folder: Path) -> bool:
    """Whether the decoder found no instruction (``"code": null``) or wrote no code at all."""
    try:
        table = TraceFolder.at(folder).table("code.json")
    except BadDataError:
        return False  # damaged is not empty: the reader will say what is wrong
    return not isinstance(table, dict) or not table.get("code")


def better_target(folders: tuple[Path, ...]) -> Target | None:
    """The busiest (shader engine, CU) that the occupancy of an empty trace shows."""
    for folder in folders:
        try:
            events = read_occupancy(TraceFolder.at(folder))
        except BadDataError:
            continue
        place = busiest_target(events) if events else None
        if place is not None:
            engine, cu = place
            return Target(cu, 1 << engine)
    return None
