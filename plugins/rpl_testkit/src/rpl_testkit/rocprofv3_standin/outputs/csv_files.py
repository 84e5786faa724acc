"""The CSV files of rocprofv3, both column generations.

Columns of 6.x and 7.x kernel traces, agent tables and counter tables are those of real files. That 6.x
counter tables lack Accum_VGPR_Count and 6.x copies lack Stream_Id is inferred from the kernel trace.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rpl_testkit.rocpd_writer.rows import AgentRow, DispatchRow, KernelRow, RocpdContents
from rpl_testkit.synthetic_recording.mi300x_agents import CAPABILITY_WORD

__all__ = ["csv_files", "csv_text"]

_AXES: Final = ("x", "y", "z")
_LDS_GRANULE: Final = 512
_REGISTERS: Final = ("LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count", "SGPR_Count")
_SHAPE: Final = tuple(f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ")
_TIMES: Final = ("Start_Timestamp", "End_Timestamp")

Row = dict[str, Any]


def csv_files(contents: RocpdContents, *, wide: bool, kernel_trace: bool) -> Iterator[tuple[str, str]]:
    """Yield (name ending, text) of every file that has rows; `wide` is the 7.x generation."""
    tables = {
        "agent_info": _agent_rows(contents),
        "kernel_trace": _kernel_rows(contents, wide=wide) if kernel_trace else [],
        "hip_api_trace": _hip_rows(contents, wide=wide),
        "memory_copy_trace": _copy_rows(contents, wide=wide),
        "memory_allocation_trace": _allocation_rows(contents, wide=wide),
        "counter_collection": _counter_rows(contents, wide=wide),
    }
    for name, rows in tables.items():
        listed = list(rows)
        if listed:
            yield f"{name}.csv", csv_text(listed)


def csv_text(rows: list[Row]) -> str:
    """A table with the keys of its first row as header; there must be one."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _agent_label(index: int, *, wide: bool) -> str | int:
    return f"Agent {index}" if wide else index


def _agent_rows(contents: RocpdContents) -> Iterator[Row]:
    for agent in contents.agents:
        yield dict(_agent_cells(agent))


def _agent_cells(agent: AgentRow) -> Iterator[tuple[str, Any]]:
    data = agent.extdata
    yield "Node_Id", data["node_id"]
    yield "Logical_Node_Id", data["logical_node_id"]
    yield "Agent_Type", agent.kind
    keys = list(data)
    counts = ("mem_banks_count", "caches_count", "io_links_count")
    for key in keys[keys.index("cpu_cores_count") : keys.index("workgroup_max_dim")]:
        if key not in counts:
            yield key.title(), _agent_word(key, data[key])
    for key in ("workgroup_max_dim", "grid_max_dim"):
        for axis in _AXES:
            yield f"{key}_{axis}".title(), data[key][axis]
    for key in ("name", "vendor_name", "product_name", "model_name"):
        yield key.title(), data[key]


def _agent_word(key: str, value: Any) -> Any:
    """Bit fields appear as one number in CSV."""
    if not isinstance(value, dict):
        return value
    if key == "capability":
        return CAPABILITY_WORD if any(value.values()) else 0
    return value["uCodeSDMA" if key == "sdma_fw_version" else "uCode"]


def _shape(row: DispatchRow) -> Row:
    return dict(zip(_SHAPE, (*row.workgroup, *row.grid), strict=True))


def _registers(row: DispatchRow, kernel: KernelRow) -> Row:
    # The profiler rounds the static LDS of the symbol; dynamic LDS is not in these files.
    lds = math.ceil(kernel.lds_bytes / _LDS_GRANULE) * _LDS_GRANULE
    return dict(
        zip(
            _REGISTERS,
            (lds, row.scratch_bytes, kernel.arch_vgpr, kernel.accum_vgpr, kernel.sgpr),
            strict=True,
        )
    )


def _kernel_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    kernels = {kernel.kernel_id: kernel for kernel in contents.kernels}
    for row in contents.dispatches:
        kernel = kernels[row.kernel_id]
        sizes: Row = (
            _registers(row, kernel)
            if wide
            else {"Private_Segment_Size": row.scratch_bytes, "Group_Segment_Size": row.lds_bytes}
        )
        yield {
            "Kind": "KERNEL_DISPATCH",
            "Agent_Id": _agent_label(row.agent, wide=wide),
            "Queue_Id": row.queue_id,
            **({"Stream_Id": row.stream_id} if wide else {}),
            "Thread_Id": contents.process.pid,
            "Dispatch_Id": row.dispatch_id,
            "Kernel_Id": row.kernel_id,
            "Kernel_Name": kernel.name,
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
            **sizes,
            **_shape(row),
        }


def _hip_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    pid = contents.process.pid
    for row in contents.regions:
        yield {
            "Domain": row.category if wide else row.category.removesuffix("_EXT"),
            "Function": row.name,
            "Process_Id": pid,
            "Thread_Id": pid,
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
        }


def _copy_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    for row in contents.copies:
        yield {
            "Kind": "MEMORY_COPY",
            "Direction": row.name,
            **({"Stream_Id": row.stream_id} if wide else {}),
            "Source_Agent_Id": _agent_label(row.source_agent, wide=wide),
            "Destination_Agent_Id": _agent_label(row.destination_agent, wide=wide),
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
        }


def _allocation_rows(contents: RocpdContents, *, wide: bool) -> Iterator[Row]:
    for row in contents.allocations:
        yield {
            "Kind": "MEMORY_ALLOCATION",
            "Operation": "MEMORY_ALLOCATION_ALLOCATE",
            "Agent_Id": _agent_label(row.agent or 0, wide=wide),
            "Allocation_Size": row.size_bytes,
            "Address": hex(row.address),
            "Correlation_Id": row.stack_id,
            "Start_Timestamp": row.begin_ns,
            "End_Timestamp": row.end_ns,
        }


def _counter_rows(contents: RocpdContents, *, wide: bool) -> Iterable[Row]:
    """One row per (dispatch, counter): the sum over instances."""
    kernels = {kernel.kernel_id: kernel for kernel in contents.kernels}
    dispatches = {row.dispatch_id: row for row in contents.dispatches}
    pid = contents.process.pid
    for counter in contents.counters:
        row = dispatches[counter.dispatch_id]
        kernel = kernels[row.kernel_id]
        registers = _registers(row, kernel)
        if not wide:
            del registers["Accum_VGPR_Count"]
        yield {
            "Correlation_Id": row.stack_id,
            "Dispatch_Id": row.dispatch_id,
            "Agent_Id": _agent_label(row.agent, wide=wide),
            "Queue_Id": row.queue_id,
            "Process_Id": pid,
            "Thread_Id": pid,
            "Grid_Size": math.prod(row.grid),
            "Kernel_Id": row.kernel_id,
            "Kernel_Name": kernel.name,
            "Workgroup_Size": math.prod(row.workgroup),
            **registers,
            "Counter_Name": counter.name,
            "Counter_Value": math.fsum(counter.values),
            **dict(zip(_TIMES, (row.begin_ns, row.end_ns), strict=True)),
        }
