"""HIP runtime calls of a CSV set: names and times, no arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_rocprofv3.readers.api_table import no_arguments, ordered_api_calls
from rpl_rocprofv3.readers.csv_findings import report_columns
from rpl_rocprofv3.readers.csv_tables import read_columns

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.model.trace import ApiCalls
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["CsvCalls", "read_csv_calls"]

_HIP_RUNTIME = "HIP_RUNTIME_API"
_INTEGERS = ("Process_Id", "Thread_Id", "Correlation_Id", "Start_Timestamp", "End_Timestamp")


@attrs.frozen(eq=False)
class CsvCalls:
    values: ApiCalls
    functions: tuple[str, ...]
    pid: int | None


def read_csv_calls(path: Path, findings: Findings) -> CsvCalls:
    """Read a HIP API trace; calls of the HIP compiler interface are left out."""
    columns = read_columns(path, integers=_INTEGERS, texts=("Domain", "Function"))
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
