"""HIP runtime calls and copies of a CSV set. Calls have no arguments, copies no size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.calls import HostRange
from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.csv.findings import report_columns
from rpl_rocprofv3.readers.csv.tables import read_columns
from rpl_rocprofv3.readers.trace.api_table import no_arguments, ordered_api_calls
from rpl_rocprofv3.readers.trace.copy_table import CopyRows, direction_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rpl_core.model.trace import ApiCalls, Int64Column
    from rpl_rocprofv3.readers.csv.agents import CsvAgents
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["CsvCalls", "read_csv_calls", "read_csv_copies", "read_csv_ranges"]

_HIP_RUNTIME = "HIP_RUNTIME_API"
_CALL_INTEGERS = ("Process_Id", "Thread_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")
_COPY_INTEGERS = ("Stream_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")


@frozen(eq=False)
class CsvCalls:
    values: ApiCalls
    functions: tuple[str, ...]
    pid: int | None


def read_csv_calls(path: Path, findings: Findings) -> CsvCalls:
    """Read a HIP API trace; calls of the HIP compiler interface are left out."""
    columns = read_columns(path, integers=_CALL_INTEGERS, texts=("Domain", "Function"))
    report_columns(columns, findings)
    function, domain = columns.texts["function"], columns.texts.get("domain")
    chosen = np.arange(columns.row_count)
    if domain is not None:
        runtime = np.array([text.startswith(_HIP_RUNTIME) for text in domain.texts] or [False], np.bool_)
        chosen = np.flatnonzero(runtime[domain.code])
    pids = columns.integer("Process_Id")
    values = ordered_api_calls(
        process=np.zeros(len(chosen), np.int32),
        thread_id=columns.integer("Thread_Id")[chosen],
        function=function.code[chosen],
        correlation_id=columns.integer("Correlation_Id")[chosen],
        begin_ns=columns.integer("Start_Timestamp")[chosen],
        end_ns=columns.integer("End_Timestamp")[chosen],
        arguments=no_arguments(len(chosen)),
        findings=findings,
    )
    return CsvCalls(values, function.texts, int(pids[0]) if len(pids) and pids[0] >= 0 else None)


def read_csv_ranges(path: Path, guid: str, pid: int, findings: Findings) -> Iterator[HostRange]:
    """Ranges of roctx, whose message stands in place of a function. Releases with a domain for ranges repeat
    them as calls in another one (docs/reference/formats.md, 2.2)."""
    columns = read_columns(path, integers=_CALL_INTEGERS, texts=("Domain", "Function"))
    report_columns(columns, findings)
    names, domain = columns.texts["function"], columns.texts.get("domain")
    begin, end = columns.integer("Start_Timestamp"), columns.integer("End_Timestamp")
    chosen = begin < end
    if (
        domain is not None
        and (known := [text.endswith("_RANGE_API") for text in domain.texts])
        and any(known)
    ):
        chosen &= np.array(known, np.bool_)[domain.code]
    thread = columns.integer("Thread_Id")
    for row in np.flatnonzero(chosen).tolist():
        yield HostRange(
            names.texts[names.code[row]], guid, pid, int(thread[row]), int(begin[row]), int(end[row])
        )


def read_csv_copies(path: Path, agents: CsvAgents, findings: Findings) -> tuple[CopyRows, Int64Column]:
    """Read a memory copy trace, with the stream id of each copy."""
    columns = read_columns(
        path, integers=_COPY_INTEGERS, texts=("Direction", "Source_Agent_Id", "Destination_Agent_Id")
    )
    report_columns(columns, findings)
    direction = columns.texts["direction"]
    count = columns.row_count
    rows = CopyRows(
        process=np.zeros(count, np.int32),
        source_agent=agents.positions(columns.texts.get("source_agent_id"), count),
        destination_agent=agents.positions(columns.texts.get("destination_agent_id"), count),
        stream=np.full(count, NOT_RECORDED, np.int32),
        direction=direction.code,
        size_bytes=np.full(count, NOT_RECORDED, np.int64),
        correlation_id=columns.integer("Correlation_Id"),
        begin_ns=columns.integer("Start_Timestamp"),
        end_ns=columns.integer("End_Timestamp"),
        directions=tuple(direction_name(text) for text in direction.texts),
    )
    return rows, columns.integer("Stream_Id")
