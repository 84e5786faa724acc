"""Which kernels the ranges of one run launched.

A kernel belongs to a range when its launch was called inside of it, on the range's thread where that is
recorded. Without the calls of the runtime its begin on the GPU stands for the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from rpl_analysis.contracts.phases import PhasePart, PhasesPart
from rpl_core.model.trace import RANGES, HostRange
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.trace import Copies, Dispatches, Trace

    Int64Column = NDArray[np.int64]

__all__ = ["Place", "phase_report", "ranges_by_name", "rows_in_ranges"]

#: Of one range: process, thread, begin, end.
Place = tuple[int, int, int, int]

#: Names beyond these are left out, those with the least time first (chosen).
MOST_PHASES = 256
_ANY_THREAD = -1


@frozen(eq=False)
class _Launches:
    """When and where each dispatch was launched; ``order`` holds the rows of each lane by time."""

    by: Literal["launch", "begin"]
    order: Mapping[tuple[int, int], Int64Column]
    time_ns: Int64Column


def phase_report(trace: Trace, run: int) -> PhasesPart | None:
    """``None`` where the trace holds no range."""
    named = ranges_by_name(trace)
    if not named:
        return None
    launches = _launches(trace, trace.dispatches)
    spans = {name: _merged(ranges) for name, ranges in named.items()}
    by_time = sorted(spans, key=lambda name: (-_length(spans[name]), name))
    durations = trace.dispatches.duration_ns()
    total = int(durations.sum())
    inside = np.zeros(len(durations), np.bool_)
    phases = []
    for name in by_time[:MOST_PHASES]:
        rows = _inside(spans[name], launches)
        inside[rows] = True
        times = len(named[name]), _length(spans[name])
        phases.append(_phase(trace, name, times, rows, (durations, total)))
    phases.sort(key=lambda phase: (-phase.kernel_ns, -phase.host_ns, phase.name))
    outside = int(durations[~inside].sum())
    return PhasesPart(run, launches.by, tuple(phases), max(0, len(by_time) - MOST_PHASES), outside)


def rows_in_ranges(trace: Trace, ranges: Iterable[Place], rows: Dispatches | Copies) -> Int64Column:
    """Rows of the work that ``ranges`` of ``trace`` launched, ascending."""
    return _inside(_merged(ranges), _launches(trace, rows))


def ranges_by_name(trace: Trace) -> dict[str, list[Place]]:
    """(process, thread, begin, end) of the ranges by name."""
    process = {(p.guid, p.pid): number for number, p in enumerate(trace.processes)}
    by_name: dict[str, list[Place]] = {}
    for item in trace.extras.get(RANGES, ()):
        if isinstance(item, HostRange) and (item.guid, item.pid) in process:
            place = process[item.guid, item.pid], item.thread_id, item.begin_ns, item.end_ns
            by_name.setdefault(item.name, []).append(place)
    return by_name


def _merged(ranges: Iterable[Place]) -> dict[tuple[int, int], Int64Column]:
    """Disjoint intervals (n, 2) by process and thread."""
    lanes: dict[tuple[int, int], list[list[int]]] = {}
    for process, thread, begin, end in sorted(ranges):
        intervals = lanes.setdefault((process, thread), [])
        if intervals and begin <= intervals[-1][1]:
            intervals[-1][1] = max(intervals[-1][1], end)
        else:
            intervals.append([begin, end])
    return {lane: np.array(intervals, np.int64) for lane, intervals in lanes.items()}


def _length(spans: Mapping[tuple[int, int], Int64Column]) -> int:
    return sum(int((ends[:, 1] - ends[:, 0]).sum()) for ends in spans.values())


def _launches(trace: Trace, rows: Dispatches | Copies) -> _Launches:
    calls = trace.api_calls
    time, thread = rows.begin_ns.copy(), np.full(len(rows), _ANY_THREAD, np.int64)
    by: Literal["launch", "begin"] = "begin"
    if calls is not None and len(calls):
        order = np.lexsort((calls.correlation_id, calls.process))
        keys = _keys(calls.process, calls.correlation_id)[order]
        wanted = _keys(rows.process, rows.correlation_id)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        known = (keys[place] == wanted) & (rows.correlation_id >= 0)
        if known.any():
            by, call = "launch", order[place]
            time = np.where(known, calls.begin_ns[call], time)
            thread = np.where(known, calls.thread_id[call], _ANY_THREAD)
    return _Launches(by, dict(_lanes(rows.process.astype(np.int64), thread, time)), time)


def _keys(process: NDArray[np.int32], correlation: Int64Column) -> Int64Column:
    """One number for process and id; ids beyond 48 bits would be none that a profiler gives."""
    return (process.astype(np.int64) << 48) + (correlation & ((1 << 48) - 1))


def _lanes(
    process: Int64Column, thread: Int64Column, time: Int64Column
) -> Iterator[tuple[tuple[int, int], Int64Column]]:
    """Rows by time, of each thread and of each process as a whole."""
    for number in np.unique(process).tolist():
        own = np.flatnonzero(process == number)
        own = own[np.argsort(time[own], kind="stable")]
        yield (number, _ANY_THREAD), own
        for one in np.unique(thread[own]).tolist():
            if one != _ANY_THREAD:
                yield (number, one), own[(thread[own] == one) | (thread[own] == _ANY_THREAD)]


def _inside(spans: Mapping[tuple[int, int], Int64Column], launches: _Launches) -> Int64Column:
    """Rows whose launch lies in one of the intervals, ascending."""
    found = [np.empty(0, np.int64)]
    for (process, thread), intervals in spans.items():
        known = thread if launches.by == "launch" else _ANY_THREAD
        rows = launches.order.get((process, known))
        if rows is None:
            continue
        first = np.searchsorted(launches.time_ns[rows], intervals[:, 0], "left")
        last = np.searchsorted(launches.time_ns[rows], intervals[:, 1], "right")
        found += [rows[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    return np.unique(np.concatenate(found))


def _phase(
    trace: Trace, name: str, times: tuple[int, int], rows: Int64Column, kernel_time: tuple[Int64Column, int]
) -> PhasePart:
    """``times``: how many ranges, and their host time. ``kernel_time``: of each dispatch, and of all."""
    durations, total = kernel_time
    own = int(durations[rows].sum())
    by_name: dict[str, int] = {}
    spent = np.bincount(trace.dispatches.kernel[rows], durations[rows], len(trace.kernels))
    for kernel, ns in zip(trace.kernels, spent.tolist(), strict=True):
        by_name[kernel.name] = by_name.get(kernel.name, 0) + int(ns)
    dominant = max(sorted(by_name), key=lambda kernel: by_name[kernel]) if own else None
    return PhasePart(
        name=name,
        ranges=times[0],
        host_ns=times[1],
        launches=len(rows),
        kernel_ns=own,
        share=own / total if total else None,
        dominant_kernel=dominant,
        dominant_share=by_name[dominant] / own if dominant is not None else None,
    )
