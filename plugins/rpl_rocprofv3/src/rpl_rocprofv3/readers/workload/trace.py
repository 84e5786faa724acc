"""One table of a workload folder as a ``Trace``.

In wide tables all passes were merged and only the times of the separate timing run were kept, so a
counter there has no duration of its own. In long tables every row carries the times of its pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED, Kernel, Process, TraceSource
from rpl_rocprofv3.readers.columns import display_name, distinct_ids, flat_geometry, positions
from rpl_rocprofv3.readers.csv.records import report_columns
from rpl_rocprofv3.readers.csv.tables import csv_header, read_columns
from rpl_rocprofv3.readers.findings import Findings
from rpl_rocprofv3.readers.trace.parts import TraceParts, assembled
from rpl_rocprofv3.readers.trace.tables import DispatchRows
from rpl_rocprofv3.readers.workload.tables import (
    WORKLOAD_FORMAT,
    LongCounters,
    TableForm,
    WideCounters,
    current_names,
    table_form,
    wide_header,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.model.trace import Int32Column, Int64Column, Trace
    from rpl_rocprofv3.readers.csv.tables import CsvColumns
    from rpl_rocprofv3.readers.workload.system import SystemInfo

__all__ = ["read_workload_table"]

_INTEGERS = (
    *("Dispatch_ID", "GPU_ID", "PID", "Grid_Size", "Workgroup_Size", "LDS_Per_Workgroup"),
    *("Scratch_Per_Workitem", "Arch_VGPR", "Accum_VGPR", "SGPR", "Start_Timestamp", "End_Timestamp"),
)
_REGISTERS = ("Arch_VGPR", "Accum_VGPR", "SGPR")


def read_workload_table(path: Path, system: SystemInfo, reader: str) -> Trace:
    """Read a wide, long or timestamps table."""
    header = csv_header(path)
    findings = Findings(path)
    if table_form(header) is TableForm.LONG:
        columns = read_columns(
            path,
            integers=_INTEGERS,
            floats=["Counter_Value"],
            texts=["Kernel_Name", "Counter_Name"],
            names=current_names,
        )
        table = _WorkloadTable(path, system, columns, _first_rows(columns))
        counters: WideCounters | LongCounters = LongCounters.of(columns, table.dispatch_of_row())
    else:
        wide = wide_header(header)
        columns = read_columns(
            path,
            integers=_INTEGERS,
            floats=[c.column for c in wide.counters],
            texts=["Kernel_Name"],
            names=current_names,
        )
        table = _WorkloadTable(path, system, columns, np.arange(columns.row_count))
        counters = WideCounters.of(columns, wide)
    report_columns(columns, findings)
    _report_unknown(header, findings)
    parts = table.parts(counters.names, TraceSource(reader, WORKLOAD_FORMAT, (str(path),)))
    return assembled(
        parts,
        lambda ordered: counters.rows(ordered.row_of, findings) if counters.names else None,
        findings,
    )


def _report_unknown(header: Sequence[str], findings: Findings) -> None:
    """What tables of rocprof v1 don't tell, or not rightly."""
    names = {name.lower() for name in current_names(header)}
    if names == {name.lower() for name in header}:
        return
    findings.add(
        "table.no_registers",
        int("arch_vgpr" not in names),
        "table tells no register counts to go by: rocprof v1 counted them in granules of another GPU",
        "tables tell no register counts to go by",
        severity=Severity.INFO,
        remedy="record with rocprofv3, or give the code object",
    )
    findings.add(
        "table.no_times",
        int(not names >= {"start_timestamp", "end_timestamp"}),
        "table has no times: its dispatches begin and end at 0, and their duration is unknown",
        "tables have no times",
        remedy="record with `rocprof --timestamp on`, or with rocprofv3",
    )


def _first_rows(columns: CsvColumns) -> Int64Column:
    """The row with the earliest begin of each (GPU, dispatch) of a long table."""
    gpu, dispatch = columns.integer("GPU_ID"), columns.integer("Dispatch_ID")
    begin = columns.integer("Start_Timestamp")
    order = np.lexsort((begin, dispatch, gpu))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(gpu[order]) != 0) | (np.diff(dispatch[order]) != 0)
    return order[new]


class _WorkloadTable:
    """The dispatches of one table; ``rows`` are the table rows that stand for one dispatch each."""

    def __init__(self, path: Path, system: SystemInfo, columns: CsvColumns, rows: Int64Column) -> None:
        self.path, self.system, self.columns, self.rows = path, system, columns, rows
        self.gpus = distinct_ids(self._of("GPU_ID"))
        self.pids = distinct_ids(self._of("PID"))
        self.kernels, self.kernel = self._kernels()

    def _of(self, name: str) -> Int64Column:
        return self.columns.integer(name)[self.rows]

    def _time(self, name: str) -> Int64Column:
        """0 in a table without times: its counters still belong to dispatches in their order."""
        known = name.lower() in self.columns.integers
        return self._of(name) if known else np.zeros(len(self.rows), np.int64)

    def _kernels(self) -> tuple[tuple[Kernel, ...], Int32Column]:
        names = self.columns.texts["kernel_name"]
        key = np.stack([names.code[self.rows], *(self._of(name) for name in _REGISTERS)], axis=1)
        distinct, number = np.unique(key, axis=0, return_inverse=True)
        process = 0 if len(self.pids) == 1 else NOT_RECORDED
        kernels = tuple(
            Kernel(
                display_name(names.texts[code]), None, process, *(v if v >= 0 else None for v in registers)
            )
            for code, *registers in distinct.tolist()
        )
        return kernels, number.reshape(-1).astype(np.int32)

    def dispatch_rows(self) -> DispatchRows:
        absent = np.full(len(self.rows), NOT_RECORDED, np.int32)
        return DispatchRows(
            process=positions(self._of("PID"), self.pids),
            agent=positions(self._of("GPU_ID"), self.gpus),
            kernel=self.kernel,
            stream=absent,
            queue=absent,
            dispatch_id=self._of("Dispatch_ID"),
            correlation_id=absent.astype(np.int64),
            begin_ns=self._time("Start_Timestamp"),
            end_ns=self._time("End_Timestamp"),
            geometry=flat_geometry(
                self._of("Workgroup_Size"),
                self._of("Grid_Size"),
                self._of("LDS_Per_Workgroup"),
                self._of("Scratch_Per_Workitem"),
            ),
        )

    def dispatch_of_row(self) -> Int32Column:
        """For each row of a long table the number of its dispatch."""
        key = _pair(self.columns.integer("GPU_ID"), self.columns.integer("Dispatch_ID"))
        return positions(key, key[self.rows])

    def parts(self, counter_names: tuple[str, ...], source: TraceSource) -> TraceParts:
        guid = f"{self.path.parent.name}/{self.path.name}"
        system = self.system
        absent = np.broadcast_to(np.int64(NOT_RECORDED), len(self.rows))
        return TraceParts(
            source=source,
            processes=tuple(
                Process(guid, pid, system.node, system.hostname, system.text("command"))
                for pid in self.pids.tolist()
            ),
            agents=tuple(system.agent(gpu) for gpu in self.gpus.tolist()),
            kernels=self.kernels,
            rows=self.dispatch_rows(),
            stream_id=absent,
            queue_id=absent,
            counter_names=counter_names,
        )


def _pair(gpu: Int64Column, dispatch: Int64Column) -> Int64Column:
    # GPU ids are KFD numbers below 2**20; a dispatch id beyond 2**42 is no count of dispatches.
    return (gpu << 42) ^ dispatch
