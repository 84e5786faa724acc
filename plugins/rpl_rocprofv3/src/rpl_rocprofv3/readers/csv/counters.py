"""The counter table of a CSV set: one row per (dispatch, counter), already summed over instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.id_lookup import positions
from rpl_rocprofv3.readers.csv.findings import report_columns
from rpl_rocprofv3.readers.csv.tables import read_columns
from rpl_rocprofv3.readers.trace.counter_table import CounterRows
from rpl_rocprofv3.readers.workload.counters import only_first_pass

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.csv.tables import CsvColumns
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["CsvCounters", "read_csv_counters"]

_INTEGERS = (
    *("Correlation_Id", "Dispatch_Id", "Queue_Id", "Process_Id", "Grid_Size", "Kernel_Id", "Workgroup_Size"),
    *("LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count", "SGPR_Count"),
    *("Start_Timestamp", "End_Timestamp"),
)


@frozen(eq=False)
class CsvCounters:
    """The table, its counter names, and the first row of each dispatch."""

    columns: CsvColumns
    names: tuple[str, ...]
    first_rows: Int64Column

    @property
    def pid(self) -> int | None:
        pids = self.columns.integer("Process_Id")
        return int(pids[0]) if len(pids) and pids[0] >= 0 else None

    def rows(self, dispatch_ids: Int64Column, row_of: Int64Column, findings: Findings) -> CounterRows:
        """The readings attached to the final dispatch rows."""
        columns = self.columns
        ids, first = np.unique(dispatch_ids, return_index=True)
        place = positions(columns.integer("Dispatch_Id"), ids)
        target = row_of[first][place] if len(ids) else place
        texts = columns.texts["counter_name"]
        number = np.array([self.names.index(text.strip()) for text in texts.texts] or [0], np.int32)
        begin, end = columns.integer("Start_Timestamp"), columns.integer("End_Timestamp")
        duration = np.where((begin >= 0) & (end >= begin), end - begin, NOT_RECORDED)
        rows = CounterRows(
            dispatch=np.where(place < 0, NOT_RECORDED, target),
            counter=number[texts.code],
            value=columns.floats["counter_value"],
            duration_ns=duration,
            instance=np.full(len(place), NOT_RECORDED, np.int32),
        )
        return _numbered(only_first_pass(rows, begin, findings), findings)


def read_csv_counters(path: Path, findings: Findings) -> CsvCounters:
    """Read a counter table."""
    columns = read_columns(
        path,
        integers=_INTEGERS,
        floats=("Counter_Value",),
        texts=("Kernel_Name", "Counter_Name", "Agent_Id"),
    )
    report_columns(columns, findings)
    names = tuple(sorted({text.strip() for text in columns.texts["counter_name"].texts}))
    _, first = np.unique(columns.integer("Dispatch_Id"), return_index=True)
    return CsvCounters(columns, names, first.astype(np.int64))


def _numbered(rows: CounterRows, findings: Findings) -> CounterRows:
    """Rows whose instances are numbered by ``checked_counters`` if a pair occurs more than once."""
    pair = np.stack([rows.dispatch, rows.counter.astype(np.int64)], axis=1)
    repeated = len(pair) - len(np.unique(pair, axis=0)) if len(pair) else 0
    findings.add(
        "counter.several_rows",
        repeated,
        "counter row shares dispatch and counter with another row; both count as hardware instances",
        "counter rows share dispatch and counter with another row; they count as hardware instances",
        cause="the profiler wrote one row per instance",
    )
    return attrs.evolve(rows, instance=None)
