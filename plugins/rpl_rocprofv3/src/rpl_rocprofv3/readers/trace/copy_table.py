"""Copy columns as read from a file to the ordered ``Copies`` of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import Copies
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.model_columns import typed_columns
from rpl_rocprofv3.readers.trace.dispatch_table import impossible_times, time_order

if TYPE_CHECKING:
    from rpl_core.model.trace import Int32Column, Int64Column
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["CopyRows", "direction_name", "ordered_copies"]

_PREFIX = "MEMORY_COPY_"
# Spellings of RPD; rocprofv3 before 7.0 leaves out the prefix.
_RPD_NAMES = {
    "CopyHostToDevice": "HOST_TO_DEVICE",
    "CopyDeviceToHost": "DEVICE_TO_HOST",
    "CopyDeviceToDevice": "DEVICE_TO_DEVICE",
    "CopyHostToHost": "HOST_TO_HOST",
}


def direction_name(recorded: str) -> str:
    """The direction in the spelling of rocpd, such as ``MEMORY_COPY_HOST_TO_DEVICE``."""
    name = _RPD_NAMES.get(recorded, recorded)
    return name if name.startswith(_PREFIX) else f"{_PREFIX}{name}"


@frozen(eq=False)
class CopyRows:
    """Copies in file order; ``direction`` points into ``directions``."""

    process: Int32Column
    source_agent: Int32Column
    destination_agent: Int32Column
    stream: Int32Column
    direction: Int32Column
    size_bytes: Int64Column
    correlation_id: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    directions: tuple[str, ...]


def ordered_copies(rows: CopyRows, findings: Findings) -> Copies:
    """Copies in order of (begin, end, process, correlation id); rows without sensible times are left out."""
    bad = impossible_times(rows.begin_ns, rows.end_ns) | (rows.end_ns < rows.begin_ns)
    findings.add(
        "copy.impossible_time",
        int(bad.sum()),
        "copy has no usable times or ends before it begins, and is left out",
        "copies have no usable times or end before they begin, and are left out",
        severity=Severity.ERROR,
        cause="the recording is damaged or was edited",
    )
    selection = time_order(~bad, rows.begin_ns, rows.end_ns, rows.process, rows.correlation_id)
    columns = {field.name: getattr(rows, field.name) for field in attrs.fields(Copies)}
    return Copies(**typed_columns(Copies, columns, selection))
