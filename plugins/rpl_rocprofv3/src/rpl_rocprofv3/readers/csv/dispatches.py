"""Dispatches of a CSV set: from the kernel trace, or from the counter table where there is no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.trace import NOT_RECORDED, Kernel
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.kernel_names import display_name
from rpl_rocprofv3.readers.columns.launch_shapes import Geometry, flat_geometry
from rpl_rocprofv3.readers.columns.row_groups import distinct_rows
from rpl_rocprofv3.readers.csv.findings import report_columns
from rpl_rocprofv3.readers.csv.tables import read_columns
from rpl_rocprofv3.readers.trace.dispatch_table import DispatchRows

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.readers.csv.agents import CsvAgents
    from rpl_rocprofv3.readers.csv.counters import CsvCounters
    from rpl_rocprofv3.readers.csv.tables import CsvColumns
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["CsvDispatches", "dispatches_of_counters", "read_csv_dispatches"]

_WORKGROUP = tuple(f"Workgroup_Size_{axis}" for axis in "XYZ")
_GRID = tuple(f"Grid_Size_{axis}" for axis in "XYZ")
_REGISTERS = ("VGPR_Count", "Accum_VGPR_Count", "SGPR_Count")
_IDS = ("Dispatch_Id", "Kernel_Id", "Queue_Id", "Stream_Id", "Correlation_Id")
_TIMES = ("Start_Timestamp", "End_Timestamp")
# ROCm 6.x and 7.x spellings of the same facts.
_LDS = ("LDS_Block_Size", "Group_Segment_Size")
_SCRATCH = ("Scratch_Size", "Private_Segment_Size")
_INTEGERS = (*_IDS, *_TIMES, *_WORKGROUP, *_GRID, *_REGISTERS, *_LDS, *_SCRATCH)


@frozen(eq=False)
class CsvDispatches:
    """Dispatches in file order with raw stream and queue ids."""

    rows: DispatchRows
    kernels: tuple[Kernel, ...]
    stream_id: Int64Column
    queue_id: Int64Column


def read_csv_dispatches(path: Path, agents: CsvAgents, findings: Findings) -> CsvDispatches:
    """Read a kernel trace."""
    columns = read_columns(path, integers=_INTEGERS, texts=("Kernel_Name", "Agent_Id"))
    report_columns(columns, findings)
    geometry = Geometry(
        (columns.integer(_WORKGROUP[0]), columns.integer(_WORKGROUP[1]), columns.integer(_WORKGROUP[2])),
        (columns.integer(_GRID[0]), columns.integer(_GRID[1]), columns.integer(_GRID[2])),
        _either(columns, _LDS),
        _either(columns, _SCRATCH),
    )
    return _dispatches(columns, np.arange(columns.row_count), geometry, agents)


def dispatches_of_counters(counters: CsvCounters, agents: CsvAgents) -> CsvDispatches:
    """The dispatches that a counter table names, one per dispatch id."""
    columns, rows = counters.columns, counters.first_rows
    geometry = flat_geometry(
        columns.integer("Workgroup_Size")[rows],
        columns.integer("Grid_Size")[rows],
        _either(columns, _LDS)[rows],
        _either(columns, _SCRATCH)[rows],
    )
    return _dispatches(columns, rows, geometry, agents)


def _either(columns: CsvColumns, names: tuple[str, str]) -> Int64Column:
    return columns.integer(next((name for name in names if name.lower() in columns.integers), names[0]))


def _dispatches(
    columns: CsvColumns, rows: Int64Column, geometry: Geometry, agents: CsvAgents
) -> CsvDispatches:
    kernels, kernel = _kernels(columns, rows)
    absent = np.full(len(rows), NOT_RECORDED, np.int32)
    table = DispatchRows(
        process=np.zeros(len(rows), np.int32),
        agent=agents.positions(columns.texts.get("agent_id"), columns.row_count)[rows],
        kernel=kernel,
        stream=absent,
        queue=absent,
        dispatch_id=columns.integer("Dispatch_Id")[rows],
        correlation_id=np.where((c := columns.integer("Correlation_Id")[rows]) == 0, NOT_RECORDED, c),
        begin_ns=columns.integer("Start_Timestamp")[rows],
        end_ns=columns.integer("End_Timestamp")[rows],
        geometry=geometry,
    )
    return CsvDispatches(
        table, kernels, columns.integer("Stream_Id")[rows], columns.integer("Queue_Id")[rows]
    )


def _kernels(columns: CsvColumns, rows: Int64Column) -> tuple[tuple[Kernel, ...], Int32Column]:
    """Distinct kernels: the same name may be loaded twice with other registers."""
    names = columns.texts["kernel_name"]
    fields = [columns.integer(name)[rows] for name in ("Kernel_Id", *_REGISTERS)]
    found, number = distinct_rows([names.code[rows], *fields])
    distinct, rank = np.unique(found, axis=0, return_inverse=True)  # few, in ascending order
    kernels = tuple(
        Kernel(display_name(names.texts[code]), None, 0, *(v if v >= 0 else None for v in registers))
        for code, _, *registers in distinct.tolist()
    )
    return kernels, rank.reshape(-1).astype(np.int32)[number]
