"""Kernel dispatches of a results JSON, from the kernel trace and from the counter records."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED, Kernel
from rpl_rocprofv3.readers.columns.id_lookup import distinct_ids, positions
from rpl_rocprofv3.readers.columns.launch_shapes import Geometry
from rpl_rocprofv3.readers.json.records import number_at, value_at
from rpl_rocprofv3.readers.trace.dispatch_table import DispatchRows

if TYPE_CHECKING:
    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.findings import Findings
    from rpl_rocprofv3.readers.json.info import JsonInfo

__all__ = ["JsonDispatches"]

_COLUMNS = (
    *("agent", "queue", "stream", "kernel", "dispatch", "correlation", "begin", "end", "lds", "scratch"),
    *("workgroup_x", "workgroup_y", "workgroup_z", "grid_x", "grid_y", "grid_z"),
)


@attrs.define(eq=False)
class JsonDispatches:
    """Dispatch columns that grow record by record, 16 numbers each."""

    info: JsonInfo
    columns: dict[str, array[int]] = attrs.field(factory=lambda: {name: array("q") for name in _COLUMNS})

    def __len__(self) -> int:
        return len(self.columns["begin"])

    def column(self, name: str) -> Int64Column:
        return np.frombuffer(self.columns[name], np.int64) if len(self) else np.empty(0, np.int64)

    def add(self, data: Any, stream: Any) -> None:
        """Add a record with ``dispatch_info``, times and correlation id."""
        info = value_at(data, "dispatch_info")
        agent = number_at(info, "agent_id", "handle")
        correlation = number_at(data, "correlation_id", "internal")
        values = (
            self.info.agent_of.get(agent, NOT_RECORDED),
            number_at(info, "queue_id", "handle"),
            number_at(stream, "handle"),
            number_at(info, "kernel_id"),
            number_at(info, "dispatch_id"),
            correlation if correlation > 0 else NOT_RECORDED,
            number_at(data, "start_timestamp"),
            number_at(data, "end_timestamp"),
            number_at(info, "group_segment_size"),
            number_at(info, "private_segment_size"),
            *(number_at(info, "workgroup_size", axis) for axis in "xyz"),
            *(number_at(info, "grid_size", axis) for axis in "xyz"),
        )
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    def rows(self, findings: Findings) -> tuple[DispatchRows, tuple[Kernel, ...]]:
        """The rows for the trace; stream and queue are numbered by the caller."""
        column = self.column
        used = distinct_ids(column("kernel"))
        known = self.info.symbols
        kernels = tuple(known.get(i) or Kernel(f"unknown kernel (id {i})", None, 0) for i in used.tolist())
        findings.add(
            "dispatch.unknown_kernel",
            sum(i not in known for i in used.tolist()),
            "kernels were launched that the recording does not describe; they appear as 'unknown kernel'",
        )
        rows = DispatchRows(
            process=np.zeros(len(self), np.int32),
            agent=column("agent").astype(np.int32),
            kernel=positions(column("kernel"), used),
            stream=np.empty(0, np.int32),
            queue=np.empty(0, np.int32),
            dispatch_id=column("dispatch"),
            correlation_id=column("correlation"),
            begin_ns=column("begin"),
            end_ns=column("end"),
            geometry=Geometry(
                (column("workgroup_x"), column("workgroup_y"), column("workgroup_z")),
                (column("grid_x"), column("grid_y"), column("grid_z")),
                column("lds"),
                column("scratch"),
            ),
        )
        findings.add(
            "dispatch.unknown_agent",
            int((rows.agent < 0).sum()),
            "dispatches name a GPU that the recording does not describe",
        )
        return rows, kernels
