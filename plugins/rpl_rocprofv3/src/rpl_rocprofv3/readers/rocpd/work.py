"""GPU work of a rocpd part: the rows of ``rocpd_kernel_dispatch`` and ``rocpd_memory_copy``, ids resolved.

The data views are never used: they join inwards and lose rows (docs/reference/formats.md, trap 7). What they
would have lost is counted here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import Kernel
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.id_lookup import distinct_ids, positions
from rpl_rocprofv3.readers.columns.launch_shapes import Geometry
from rpl_rocprofv3.readers.rocpd.info import info_ids, read_kernels, read_strings
from rpl_rocprofv3.readers.sqlite.integer_columns import read_integers
from rpl_rocprofv3.readers.trace.copy_table import CopyRows, direction_name
from rpl_rocprofv3.readers.trace.dispatch_table import DispatchRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns.id_lookup import IntegerColumn
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.rocpd.events import Events
    from rpl_rocprofv3.readers.rocpd.info import Agents, Processes
    from rpl_rocprofv3.readers.rocpd.parts import Part
    from rpl_rocprofv3.readers.sqlite.integer_columns import IntegerColumns

__all__ = ["RocpdDispatches", "read_copies", "read_dispatch_columns", "resolve_dispatches"]

_WORKGROUP = tuple(f"workgroup_size_{axis}" for axis in "xyz")
_GRID = tuple(f"grid_size_{axis}" for axis in "xyz")
_DISPATCH_COLUMNS = (
    *("pid", "tid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id", "start", "end"),
    *("private_segment_size", "group_segment_size", *_WORKGROUP, *_GRID, "region_name_id", "event_id"),
)
_COPY_COLUMNS = (
    *("pid", "start", "end", "name_id", "dst_agent_id", "src_agent_id", "size", "stream_id", "event_id"),
)


@frozen(eq=False)
class RocpdDispatches:
    """Dispatch rows in file order, the objects they point to, and the event id of each row."""

    rows: DispatchRows
    kernels: tuple[Kernel, ...]
    event_id: Int64Column


def read_dispatch_columns(database: Database, part: Part, findings: Findings) -> IntegerColumns:
    """The raw integer columns of the dispatch table."""
    table = part.table("kernel_dispatch")
    assert table is not None  # the identity check asked for it
    columns = read_integers(database, table, _DISPATCH_COLUMNS)
    findings.add(
        "dispatch.unreadable_values",
        columns.unreadable,
        "value in rocpd_kernel_dispatch is no integer and counts as not recorded",
        "values in rocpd_kernel_dispatch are no integers and count as not recorded",
        cause="the recording is damaged or was edited",
    )
    return columns


def resolve_dispatches(
    part: Part, raw: IntegerColumns, events: Events, processes: Processes, agents: Agents, findings: Findings
) -> RocpdDispatches:
    """Turn ids into indices and count the dangling ones."""
    used = distinct_ids(raw["kernel_id"])
    process_of = {row_id: index for index, row_id in enumerate(processes.ids)}
    kernels, unknown = read_kernels(part, used.tolist(), process_of)
    event = events.positions(raw["event_id"])
    rows = DispatchRows(
        process=_process(processes, raw["pid"], findings),
        agent=agents.positions(raw["agent_id"]),
        kernel=positions(raw["kernel_id"], used),
        stream=np.empty(0, np.int32),
        queue=np.empty(0, np.int32),
        dispatch_id=raw.wide("dispatch_id"),
        correlation_id=events.stack_id_at(event),
        begin_ns=raw.wide("start"),
        end_ns=raw.wide("end"),
        geometry=Geometry(
            _three(raw, _WORKGROUP),
            _three(raw, _GRID),
            raw["group_segment_size"],
            raw["private_segment_size"],
        ),
    )
    described = np.array([not k.name.startswith("unknown kernel (id ") for k in kernels], np.bool_)
    findings.add(
        "dispatch.unknown_kernel",
        unknown,
        "kernel was launched that the recording does not describe; it appears as 'unknown kernel'",
        "kernels were launched that the recording does not describe; they appear as 'unknown kernel'",
        cause="the code object was loaded before the profiler attached",
    )
    findings.add(
        "dispatch.unknown_agent",
        int((rows.agent < 0).sum()),
        "dispatch names a GPU that the recording does not describe",
        "dispatches name a GPU that the recording does not describe",
    )
    _count_view_losses(part, raw, rows, event, described, findings)
    return RocpdDispatches(rows, tuple(kernels), raw["event_id"])


def _three(raw: IntegerColumns, names: tuple[str, ...]) -> tuple[Int64Column, Int64Column, Int64Column]:
    x, y, z = (raw[name] for name in names)
    return x, y, z


def _process(processes: Processes, ids: Int64Column, findings: Findings) -> Int32Column:
    process = processes.positions(ids)
    dangling = int((process < 0).sum())
    findings.add(
        "dispatch.unknown_process",
        dangling,
        "dispatch names a process that the recording does not describe",
        "dispatches name a process that the recording does not describe",
        cause="rows were lost, or files were joined by hand",
    )
    # A part of one process leaves no doubt whose dispatches these are.
    return np.zeros_like(process) if dangling and len(processes.ids) == 1 else process


def _count_view_losses(
    part: Part,
    raw: IntegerColumns,
    rows: DispatchRows,
    event: Int32Column,
    described: NDArray[np.bool_],
    findings: Findings,
) -> None:
    """Rows that the view ``kernels`` drops, since other tools that read it show fewer dispatches."""
    lost = event < 0
    if not described.all():
        lost |= ~described[rows.kernel]
    regions = np.array(sorted(read_strings(part, raw["region_name_id"])), np.int64)
    for joined in (
        rows.agent,
        positions(raw["queue_id"], info_ids(part, "info_queue")),
        positions(raw["tid"], info_ids(part, "info_thread")),
        positions(raw["region_name_id"], regions),
    ):
        if int(joined.min(initial=0)) < 0:
            lost |= joined < 0
    findings.add(
        "rocpd.kernels_view_loses_rows",
        int(lost.sum()),
        "dispatch is missing from the database's own `kernels` view, and is read here",
        "dispatches are missing from the database's own `kernels` view, and are read here",
        severity=Severity.INFO,
        cause="the view joins tables in which their thread, queue, event, symbol or region has no row",
    )


def read_copies(
    database: Database, part: Part, events: Events, processes: Processes, agents: Agents, findings: Findings
) -> tuple[CopyRows, IntegerColumn] | None:
    """Read all copies with their stream ids; None when there are none (a kernel trace has an empty table)."""
    table = part.table("memory_copy")
    if table is None:
        return None
    raw = read_integers(database, table, _COPY_COLUMNS)
    if not len(raw):
        return None
    findings.add(
        "copy.unreadable_values",
        raw.unreadable,
        "value in rocpd_memory_copy is no integer",
        "values in rocpd_memory_copy are no integers",
    )
    names = read_strings(part, raw["name_id"])
    used = distinct_ids(raw["name_id"])
    process = processes.positions(raw["pid"])
    rows = CopyRows(
        process=np.maximum(process, 0) if len(processes.ids) == 1 else process,
        source_agent=agents.positions(raw["src_agent_id"]),
        destination_agent=agents.positions(raw["dst_agent_id"]),
        stream=np.empty(0, np.int32),
        direction=positions(raw["name_id"], used),
        size_bytes=raw.wide("size"),
        correlation_id=events.stack_id_at(events.positions(raw["event_id"])),
        begin_ns=raw.wide("start"),
        end_ns=raw.wide("end"),
        directions=tuple(direction_name(names.get(i, "UNKNOWN")) for i in used.tolist()),
    )
    return rows, raw["stream_id"]
