"""Dispatch columns as read from a file to the ordered ``Dispatches`` of a trace.

Knows which rows can't be true (no time, end before begin), which are left out and counted, and the
order that the model asks for. Readers fill a ``DispatchRows``; nothing here knows a file format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.model.diagnostic import Severity
from rpl_core.model.trace import NOT_RECORDED, Dispatches
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns.launch_shapes import distinct_shapes
from rpl_rocprofv3.readers.columns.model_columns import typed_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Int32Column, Int64Column, LaunchShapes
    from rpl_rocprofv3.readers.columns.launch_shapes import Geometry
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["DispatchRows", "OrderedDispatches", "ordered_dispatches", "time_order"]

# Nanoseconds since boot or epoch stay far below this (2**62 ns are 146 years).
LATEST_NS = 1 << 62


@frozen(eq=False)
class DispatchRows:
    """Dispatches in file order; index columns already point into the tuples of the trace."""

    process: Int32Column
    agent: Int32Column
    kernel: Int32Column
    stream: Int32Column
    queue: Int32Column
    dispatch_id: Int64Column
    correlation_id: Int64Column
    begin_ns: Int64Column
    end_ns: Int64Column
    geometry: Geometry


@frozen(eq=False)
class OrderedDispatches:
    """The result. ``selection``: file rows in their final order, None where all stay as they are."""

    dispatches: Dispatches
    shapes: LaunchShapes
    selection: Int64Column | None
    file_rows: int

    @property
    def row_of(self) -> Int64Column:
        """The final row of each file row, -1 where it was left out."""
        if self.selection is None:
            return np.arange(self.file_rows)
        row_of = np.full(self.file_rows, NOT_RECORDED, np.int64)
        row_of[self.selection] = np.arange(len(self.selection))
        return row_of


def time_order(
    keep: NDArray[np.bool_],
    begin_ns: Int64Column,
    end_ns: Int64Column,
    process: Int32Column,
    number: Int64Column,
) -> Int64Column | None:
    """The rows to keep in order of (begin, end, process, number); None when all are in order already."""
    everything = bool(keep.all())
    if everything and bool((begin_ns[1:] > begin_ns[:-1]).all()):
        return None
    # Rows come nearly in order of begin, which a stable sort exploits; what ties is sorted once more.
    order: Int64Column = np.argsort(begin_ns, kind="stable")
    tied = begin_ns[order[1:]] == begin_ns[order[:-1]]
    if tied.any():
        slots = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        rows = order[slots]
        order[slots] = rows[np.lexsort((number[rows], process[rows], end_ns[rows], begin_ns[rows]))]
    return order if everything else order[keep[order]]


def impossible_times(begin_ns: Int64Column, end_ns: Int64Column) -> NDArray[np.bool_]:
    """Rows without a usable begin or end."""
    lowest = min(int(begin_ns.min(initial=0)), int(end_ns.min(initial=0)))
    highest = max(int(begin_ns.max(initial=0)), int(end_ns.max(initial=0)))
    if lowest == 0 and highest <= LATEST_NS:
        return np.zeros(len(begin_ns), np.bool_)
    return (begin_ns < 0) | (end_ns < 0) | (begin_ns > LATEST_NS) | (end_ns > LATEST_NS)


def ordered_dispatches(rows: DispatchRows, findings: Findings) -> OrderedDispatches:
    """Check, filter and order the rows; what is left out or odd goes to ``findings``."""
    keep = _believable(rows, findings)
    shapes, shape, impossible = distinct_shapes(rows.geometry)
    findings.add(
        "dispatch.impossible_geometry",
        impossible,
        "dispatch has a grid or workgroup size that no GPU accepts; its geometry is unknown",
        "dispatches have a grid or workgroup size that no GPU accepts; their geometry is unknown",
    )
    selection = time_order(keep, rows.begin_ns, rows.end_ns, rows.process, rows.dispatch_id)
    columns = {field.name: getattr(rows, field.name) for field in attrs.fields(DispatchRows)}
    typed = typed_columns(Dispatches, {**columns, "shape": shape}, selection)
    return OrderedDispatches(Dispatches(**typed), shapes, selection, len(keep))


def _believable(rows: DispatchRows, findings: Findings) -> NDArray[np.bool_]:
    timeless, late = impossible_times(rows.begin_ns, rows.end_ns), rows.end_ns > rows.begin_ns
    # As a rule all end after they begin; then there is nothing to count.
    suspect = np.flatnonzero(~late & ~timeless) if not late.all() else np.empty(0, np.int64)
    negative = suspect[rows.end_ns[suspect] < rows.begin_ns[suspect]]
    findings.add(
        "dispatch.no_time",
        int(timeless.sum()),
        "dispatch has no usable begin or end time and is left out",
        "dispatches have no usable begin or end time and are left out",
        severity=Severity.ERROR,
        cause="the recording is damaged or was edited",
        remedy="record again",
    )
    findings.add(
        "dispatch.negative_duration",
        len(negative),
        "dispatch ends before it begins and is left out",
        "dispatches end before they begin and are left out",
        severity=Severity.ERROR,
        cause="GPU clock conversion failed or the recording was edited",
        remedy="record again",
    )
    findings.add(
        "dispatch.zero_duration",
        len(suspect) - len(negative),
        "dispatch begins and ends at the same time; its duration can't be used",
        "dispatches begin and end at the same time; their durations can't be used",
        cause="timestamps were rounded, or the clock is coarser than the kernel",
        remedy="use the original recording, not a copy saved by a spreadsheet",
    )
    findings.add(
        "dispatch.duplicate_id",
        _duplicates(rows.process, rows.dispatch_id),
        "dispatch shares its id with another one of its process; both count",
        "dispatches share their id with another one of their process; all of them count",
        cause="the recording is damaged, was edited, or two of them were joined by hand",
    )
    keep = ~timeless
    keep[negative] = False
    return keep


def _duplicates(process: Int32Column, dispatch_id: Int64Column) -> int:
    """Rows beyond the first of their process and id. Ids that ascend, as they do, cost no sorting."""
    if bool((dispatch_id[1:] > dispatch_id[:-1]).all()):
        return 0
    order = np.lexsort((dispatch_id, process))
    number, owner = dispatch_id[order], process[order]
    same = (number[1:] == number[:-1]) & (owner[1:] == owner[:-1]) & (number[1:] >= 0)
    return int(same.sum())
