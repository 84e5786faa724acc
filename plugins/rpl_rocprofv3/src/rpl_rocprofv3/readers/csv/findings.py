"""What reading a CSV table noticed, as diagnostics. Shared by all CSV formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.diagnostic import Severity

if TYPE_CHECKING:
    from rpl_rocprofv3.readers.csv.tables import CsvColumns
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["report_columns"]

_TIMES = ("start_timestamp", "end_timestamp")


def report_columns(columns: CsvColumns, findings: Findings) -> None:
    """Report rows and values that could not be taken as they are."""
    findings.add(
        "csv.misshapen_rows",
        columns.misshapen_rows,
        "row has more or fewer fields than the header and is left out",
        "rows have more or fewer fields than the header and are left out",
        severity=Severity.ERROR,
        cause="the file was cut off or edited",
        remedy="copy the file again, or record again",
    )
    findings.add(
        "csv.unreadable_values",
        columns.unreadable,
        "value is no integer and counts as not recorded",
        "values are no integers and count as not recorded",
    )
    findings.add(
        "dispatch.rounded_timestamps",
        max(columns.rounded.get(name, 0) for name in _TIMES),
        "row has rounded timestamps; its duration is unusable",
        "rows have rounded timestamps; their durations are unusable",
        severity=Severity.ERROR,
        cause="the file was saved by a spreadsheet, which keeps 5 or 15 digits",
        remedy="use the original file",
    )
    findings.add(
        "dispatch.averaged_timestamps",
        max(columns.averaged.get(name, 0) for name in _TIMES),
        "row has times with a fraction of a ns: means of several runs, used to the ns",
        "rows have times with a fraction of a ns: means of several runs, used to the ns",
        severity=Severity.INFO,
        cause="rocprofiler-compute merged runs",
    )
