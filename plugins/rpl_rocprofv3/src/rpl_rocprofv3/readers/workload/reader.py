"""The reader of rocprofiler-compute workload folders (``pmc_perf.csv`` and what lies beside it).

What knows the tables is imported when a CSV file is offered: most recordings hold none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import ForeignFileError
from rpl_core.interfaces.reader import InputSet, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rpl_core.model.trace import Trace

__all__ = ["ComputeWorkloadReader"]

_MAIN = "pmc_perf.csv"
_SYSTEM = "sysinfo.csv"
#: What a run of rocprofiler-compute merged into ``pmc_perf.csv``: read again, it would be another run.
_MERGED = re.compile(r"pmc_perf_\d+\.csv(\.gz)?")
#: The folder in a workload folder that holds what its profiler wrote, pass by pass.
_PASSES = "out"
# Written beside the tables and made of them; they hold no recording of their own.
_COMPANIONS = ("pmc_dispatch_info.csv", "roofline.csv")


class ComputeWorkloadReader(Reader):
    """Reads each table of a folder as a trace: timestamps as timing, the others as counter passes."""

    name = "rocprof-compute"
    summary = "workload folders of rocprofiler-compute and Omniperf, results.csv of rocprof v1 and v2"
    priority = 5

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        tables = sorted(path for path in files if path.name.endswith((".csv", ".csv.gz")))
        if not tables:
            return ()
        from rpl_rocprofv3.readers.csv.tables import csv_header
        from rpl_rocprofv3.readers.workload.tables import table_form

        folders: dict[Path, list[Path]] = {}
        for path in tables:
            if table_form(csv_header(path)) is not None:
                folders.setdefault(path.parent, []).append(path)
        merged = [folder for folder, found in folders.items() if _has_main(found)]
        for path in tables:
            owner = next((folder for folder in merged if folder / _PASSES in path.parents), None)
            if owner is not None:
                folders.pop(path.parent, None)
                folders[owner].append(path)
        return tuple(s for folder in sorted(folders) for s in self._sets(folder, folders[folder], set(files)))

    def _sets(self, folder: Path, tables: list[Path], files: set[Path]) -> Iterable[InputSet]:
        from rpl_rocprofv3.readers.workload.tables import WORKLOAD_FORMAT

        if not _has_main(tables):
            return [InputSet(self.name, WORKLOAD_FORMAT, (path,)) for path in tables]
        beside = [folder / name for name in (_SYSTEM, *_COMPANIONS)]
        return [InputSet(self.name, WORKLOAD_FORMAT, (*tables, *(path for path in beside if path in files)))]

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        from rpl_rocprofv3.readers.csv.tables import csv_header
        from rpl_rocprofv3.readers.trace.parts import with_flat_geometry
        from rpl_rocprofv3.readers.workload.system import BENCHMARK, read_benchmark, read_system
        from rpl_rocprofv3.readers.workload.tables import TableForm, table_form
        from rpl_rocprofv3.readers.workload.trace import read_workload_table

        merged = _has_main(inputs.paths)
        read = [path for path in inputs.paths if not merged or not _is_part(path, inputs.paths[0].parent)]
        forms = {path: table_form(csv_header(path)) for path in read}
        order = (TableForm.TIMES, TableForm.WIDE, TableForm.LONG)
        tables = [path for form in order for path in read if forms[path] is form]
        system = read_system(inputs.paths[0].parent / _SYSTEM)
        first, *others = (read_workload_table(path, system, self.name) for path in tables)
        benchmark = next((path for path in inputs.paths if path.name == BENCHMARK), None)
        found = {"ceilings": read_benchmark(benchmark)} if benchmark is not None else {}
        return tuple(
            attrs.evolve(trace, extras={**trace.extras, **found})
            for trace in (with_flat_geometry(first), *others)
        )


def _has_main(tables: Iterable[Path]) -> bool:
    return any(path.name.startswith(_MAIN) for path in tables)


def _is_part(path: Path, folder: Path) -> bool:
    """Whether ``path`` is a pass whose counters are in the merged table of ``folder`` too."""
    return _MERGED.fullmatch(path.name) is not None or folder / _PASSES in path.parents
