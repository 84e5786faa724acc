"""Host calls and copies of a CSV set. Calls have no arguments, copies no size."""

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
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rpl_core.model.trace import ApiCalls, Int64Column
    from rpl_rocprofv3.readers.csv.agents import CsvAgents
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["CsvCalls", "read_csv_calls", "read_csv_copies", "read_csv_ranges"]

_CALL_INTEGERS = ("Process_Id", "Thread_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")
_COPY_INTEGERS = ("Stream_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")


@frozen(eq=False)
class CsvCalls:
    values: ApiCalls
    functions: tuple[str, ...]
    pid: int | None


def read_csv_calls(tables_of: Sequence[tuple[Path, bool]], findings: Findings) -> CsvCalls | None:
    """Read the calls of all interfaces that were traced, in all of their domains; ``None`` without a table.

    What a function of another interface than the HIP runtime's means for the order of work is not known, but
    the host was in it. A damaged table of another interface costs its calls, and that is told.
    """
    paths = [path for path, is_table in tables_of if is_table]
    damaged = [path.name for path, is_table in tables_of if not is_table]
    findings.add(
        "api.table_not_read",
        len(damaged),
        f"table of host calls is not read: {', '.join(damaged)}",
        f"tables of host calls are not read: {', '.join(damaged)}",
        cause="a file is empty, damaged, or no table of rocprofv3",
    )
    if not paths:
        return None
    tables = [read_columns(path, integers=_CALL_INTEGERS, texts=("Domain", "Function")) for path in paths]
    for columns in tables:
        report_columns(columns, findings)
    names: dict[str, int] = {}
    functions = []
    for columns in tables:
        function = columns.texts["function"]
        code = np.array([names.setdefault(text, len(names)) for text in function.texts], np.int32)
        functions.append(np.append(code, np.int32(NOT_RECORDED))[function.code])

    def joined(name: str) -> Int64Column:
        return np.concatenate([columns.integer(name) for columns in tables])

    count = sum(columns.row_count for columns in tables)
    pids = joined("Process_Id")
    values = ordered_api_calls(
        process=np.zeros(count, np.int32),
        thread_id=joined("Thread_Id"),
        function=np.concatenate(functions),
        correlation_id=joined("Correlation_Id"),
        begin_ns=joined("Start_Timestamp"),
        end_ns=joined("End_Timestamp"),
        arguments=no_arguments(count),
        findings=findings,
    )
    return CsvCalls(values, tuple(names), int(pids[0]) if len(pids) and pids[0] >= 0 else None)


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
