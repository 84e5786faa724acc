"""The reader of rocprofv3 CSV sets, the output of ROCm 6.x and an option of 7.x.

What knows the tables is imported when a CSV file is offered: most recordings hold none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import ForeignFileError
from rpl_core.interfaces.reader import InputSet, Reader
from rpl_core.model.recording import merge_traces
from rpl_rocprofv3.readers.run_groups import execution_groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.model.trace import Trace
    from rpl_rocprofv3.readers.csv.sets import CsvSet

__all__ = ["CsvReader"]

_NEXT_STEP = "record with `rocprofv3 --kernel-trace`"
# Columns of all CSV tables of rocprof v1; with filters that match nothing there are no others.
_OLD_PROFILER = frozenset({"index", "kernelname"})


class CsvReader(Reader):
    """Reads ``<prefix>_kernel_trace.csv`` and its companions; one prefix is one process."""

    name = "rocprofv3-csv"
    summary = "CSV sets of rocprofv3 (ROCm 6.x and 7.x), plain or gzip"
    priority = 5

    def claim(self, files: Sequence[Path]) -> Sequence[InputSet]:
        files = [path for path in files if path.name.endswith((".csv", ".csv.gz"))]
        if not files:
            return ()
        from rpl_rocprofv3.readers.csv.sets import csv_sets

        recorded_sets = self._sets(csv_sets(files))
        return (*recorded_sets, *(self._foreign(path) for path in sorted(files) if _is_old(path)))

    def _sets(self, sets: Sequence[CsvSet]) -> Sequence[InputSet]:
        from rpl_rocprofv3.readers.csv.sets import CSV_FORMAT, described

        refusals = {each: each.refusal() for each in sets}
        recorded = {each: described(each) for each in sets if refusals[each] is None}
        owner = {file.path: each for each, file in recorded.items()}
        found = [
            InputSet(
                self.name, CSV_FORMAT, tuple(path for file in group for path in owner[file.path].paths())
            )
            for group in execution_groups(list(recorded.values()))
        ]
        refused = [
            InputSet(self.name, CSV_FORMAT, each.paths(), refusal, _NEXT_STEP)
            for each, refusal in refusals.items()
            if refusal
        ]
        return (*found, *refused)

    def _foreign(self, path: Path) -> InputSet:
        refusal = "it is a table of rocprof v1 or v2, or Omniperf 1.x, without times or counters"
        return InputSet(self.name, "rocprof v1/v2 CSV", (path,), refusal, _NEXT_STEP)

    def parts(self, inputs: InputSet) -> tuple[InputSet, ...]:
        from rpl_rocprofv3.readers.csv.sets import csv_sets

        return tuple(attrs.evolve(inputs, paths=each.paths()) for each in csv_sets(inputs.paths))

    def read(self, inputs: InputSet) -> tuple[Trace, ...]:
        if inputs.refusal:
            raise ForeignFileError(f"{inputs.paths[0]}: {inputs.refusal}", next_step=inputs.next_step)
        from rpl_rocprofv3.readers.csv.sets import csv_sets
        from rpl_rocprofv3.readers.csv.trace import read_csv_set

        return (merge_traces([read_csv_set(each, self.name) for each in csv_sets(inputs.paths)]),)


def _is_old(path: Path) -> bool:
    if not path.name.endswith(".csv"):
        return False
    from rpl_rocprofv3.readers.csv.tables import csv_header
    from rpl_rocprofv3.readers.workload.tables import table_form

    header = csv_header(path)
    return {name.lower() for name in header} >= _OLD_PROFILER and table_form(header) is None
