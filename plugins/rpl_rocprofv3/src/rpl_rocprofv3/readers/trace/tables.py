"""Columns as read from a file to the ordered tables of a trace: dispatches, copies, readings, API calls.

They know which rows can't be true (no time, end before begin), which are left out and counted, and the
order that the model asks for. Readers fill a ``DispatchRows``; nothing here knows a file format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, ApiCalls, Copies, CounterValues, Dispatches
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import distinct_shapes, typed_columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column, LaunchShapes, UInt64Column
    from rpl_rocprofv3.readers.columns import Geometry

# What a reader noticed about an input. A finding with count zero is no finding, so that checks can be
# written without an ``if``.


class Findings:
    """Diagnostics about one file, in the order in which they were found."""

    def __init__(self, where: Path) -> None:
        self._where = where.name
        self._found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        count: int,
        one: str,
        several: str,
        *,
        severity: Severity = Severity.WARNING,
        cause: str | None = None,
        remedy: str | None = None,
    ) -> None:
        """Record a fact that continues the number ``count``, of ``one`` or of ``several``, unless it is 0."""
        if count:
            self._found.append(
                Diagnostic(
                    code, counted(count, one, several), severity, cause, remedy, self._where, int(count)
                )
            )

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found)


# Dispatch columns as read from a file to the ordered ``Dispatches`` of a trace.
#
# Knows which rows can't be true (no time, end before begin), which are left out and counted, and the
# order that the model asks for. Readers fill a ``DispatchRows``; nothing here knows a file format.

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
    begin = begin_ns.take(order)
    tied = begin[1:] == begin[:-1]
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


# Copy columns as read from a file to the ordered ``Copies`` of a trace.

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


# Counter readings as read from a file to the ``CounterValues`` of a trace, with consistency checks.
#
# A reading that is no number makes the whole (dispatch, counter) unusable: a sum over the other instances
# would look right and be wrong. Instances without a recorded index are numbered per (dispatch, counter).


@frozen(eq=False)
class CounterRows:
    """Readings in file order. ``instance`` is the recorded instance, or None when none is recorded."""

    dispatch: Int64Column  # final row of the dispatch, -1 where it is unknown
    counter: Int32Column
    value: Float64Column
    duration_ns: Int64Column
    instance: Int32Column | None = None


def checked_counters(rows: CounterRows, names: Sequence[str], findings: Findings) -> CounterValues:
    """Readings in order of (dispatch, counter, instance), without those that can't be used."""
    orphan = (rows.dispatch < 0) | (rows.counter < 0)
    findings.add(
        "counter.unknown_dispatch",
        int(orphan.sum()),
        "counter reading belongs to no recorded dispatch or counter and is left out",
        "counter readings belong to no recorded dispatch or counter and are left out",
    )
    usable_rows = np.flatnonzero(~orphan)
    pair = rows.dispatch[usable_rows] * max(len(names), 1) + rows.counter[usable_rows]
    order = np.argsort(pair, kind="stable")
    usable_rows, pair = usable_rows[order], pair[order]
    instance = _running_instances(pair) if rows.instance is None else rows.instance[usable_rows]
    if rows.instance is not None:
        order = np.lexsort((instance, pair))
        usable_rows, pair, instance = usable_rows[order], pair[order], instance[order]
    usable = ~_of_bad_pairs(pair, ~np.isfinite(rows.value[usable_rows]), findings)
    usable_rows, pair = usable_rows[usable], pair[usable]
    columns: dict[str, NDArray[Any]] = {
        "dispatch": rows.dispatch[usable_rows],
        "counter": rows.counter[usable_rows],
        "instance": instance[usable],
        "value": rows.value[usable_rows],
        "duration_ns": rows.duration_ns[usable_rows],
    }
    values = CounterValues(**typed_columns(CounterValues, columns, None))
    _check_row_counts(values, pair, names, findings)
    return values


def _running_instances(pair: Int64Column) -> Int32Column:
    """0, 1, 2 within each run of equal ``pair``; -1 where the run is a single row (already a sum)."""
    starts = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]]) if len(pair) else np.empty(0, np.int64)
    lengths = np.diff(np.r_[starts, len(pair)])
    running = np.arange(len(pair)) - np.repeat(starts, lengths)
    return np.where(np.repeat(lengths, lengths) == 1, NOT_RECORDED, running).astype(np.int32)


def _of_bad_pairs(pair: Int64Column, bad: NDArray[np.bool_], findings: Findings) -> NDArray[np.bool_]:
    findings.add(
        "counter.not_a_number",
        int(bad.sum()),
        "counter reading is missing, infinite or no number; the counter is unknown for its dispatch",
        "counter readings are missing, infinite or no numbers; the counter is unknown for their dispatches",
        severity=Severity.ERROR,
        cause="the hardware or the driver gave no value",
    )
    return np.isin(pair, pair[bad]) if bad.any() else bad


def _check_row_counts(
    values: CounterValues, pair: Int64Column, names: Sequence[str], findings: Findings
) -> None:
    """Every dispatch of one counter should have the same number of instance rows."""
    if not len(pair):
        return
    starts = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]])
    lengths = np.diff(np.r_[starts, len(pair)])
    counter = values.counter[starts]
    most = np.zeros(len(names), np.int64)
    np.maximum.at(most, counter, lengths)
    uneven = lengths != most[counter]
    affected = sorted({names[i] for i in counter[uneven].tolist()})
    findings.add(
        "counter.uneven_rows",
        int(uneven.sum()),
        f"(dispatch, counter) pair has fewer instance rows than others: {', '.join(affected[:5])}",
        f"(dispatch, counter) pairs have fewer instance rows than others: {', '.join(affected[:5])}",
        cause="readings were lost, or dispatches ran on GPUs with different partitions",
        remedy="collect the counters again before trusting their sums",
    )


def only_first_pass(rows: CounterRows, begin_ns: Int64Column, findings: Findings) -> CounterRows:
    """Without the readings of counters that a later pass read again; adding them up would double them."""
    assert rows.instance is not None  # callers know the instance
    order = np.lexsort((begin_ns, rows.instance, rows.counter, rows.dispatch))
    keys = (rows.dispatch[order], rows.counter[order], rows.instance[order])
    new = np.ones(len(order), np.bool_)
    if len(order):
        new[1:] = np.logical_or.reduce([np.diff(key) != 0 for key in keys])
    first_begin = begin_ns[order][np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    again = begin_ns[order] != first_begin
    findings.add(
        "counter.read_again",
        int(again.sum()),
        "counter reading repeats a counter that an earlier pass read for the same dispatch; the first counts",
        "counter readings repeat a counter that an earlier pass read for the same dispatch; the first counts",
        severity=Severity.INFO,
    )
    first_rows = np.sort(order[~again])
    return CounterRows(
        rows.dispatch[first_rows],
        rows.counter[first_rows],
        rows.value[first_rows],
        rows.duration_ns[first_rows],
        rows.instance[first_rows],
    )


# What rocprofv3 calls the ranges of roctx, whatever the format (docs/reference/formats.md, 2.2).

#: Newer releases have a domain for ranges, and the calls that make them in the older one.
RANGE_DOMAINS = ("MARKER_CORE_RANGE_API", "MARKER_CORE_API")
#: Between start and stop any thread may work in a range; one of push and pop is that of its thread.
OF_PROCESS = ("roctxProcessRangeA", "roctxRangeStartA")


# API calls as read from a file to the ordered ``ApiCalls`` of a trace.


@frozen(eq=False)
class ApiArguments:
    """The arguments that order work, one entry per call."""

    stream_handle: UInt64Column
    event_handle: UInt64Column
    flags: Int64Column
    device: Int64Column


def no_arguments(count: int) -> ApiArguments:
    """Arguments of ``count`` calls of which only the names were recorded."""
    return ApiArguments(
        np.full(count, NO_HANDLE, np.uint64),
        np.full(count, NO_HANDLE, np.uint64),
        np.full(count, NOT_RECORDED, np.int64),
        np.full(count, NOT_RECORDED, np.int64),
    )


def ordered_api_calls(
    *,
    process: Int32Column,
    thread_id: Int64Column,
    function: Int32Column,
    correlation_id: Int64Column,
    begin_ns: Int64Column,
    end_ns: Int64Column,
    arguments: ApiArguments,
    findings: Findings,
) -> ApiCalls:
    """Calls in order of (begin, end, process, correlation id); calls without sensible times are left out."""
    bad = impossible_times(begin_ns, end_ns) | (end_ns < begin_ns)
    findings.add(
        "api.impossible_time",
        int(bad.sum()),
        "API call has no usable times or ends before it begins, and is left out",
        "API calls have no usable times or end before they begin, and are left out",
        cause="the recording is damaged or was edited",
    )
    selection = time_order(~bad, begin_ns, end_ns, process, correlation_id)
    columns = {
        "process": process,
        "thread_id": thread_id,
        "function": function,
        "correlation_id": correlation_id,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        **attrs.asdict(arguments, recurse=False),
    }
    return ApiCalls(**typed_columns(ApiCalls, columns, selection))
