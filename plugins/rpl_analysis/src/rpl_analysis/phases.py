"""The application's own ranges: what was launched in each, and a recording cut down to one (``--range``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np

from rpl_analysis.contracts.profile import PhasePart, PhasesPart
from rpl_analysis.execution_graph.analyzer import median_run
from rpl_analysis.facts import PHASES
from rpl_core.errors import MissingError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import RANGES, HostRange, TraceRole
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Copies, Dispatches, Trace

    Int64Column = NDArray[np.int64]


class PhasesAnalyzer(Analyzer):
    """Fact ``PHASES`` of the run that the execution graph shows; ``None`` where no range was recorded."""

    name = "phases"
    summary = "GPU time, share and dominant kernel of each range that the application marked"
    provides = frozenset({PHASES})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        chosen = median_run(context.recording)
        if chosen is None or not chosen[1].extras.get(RANGES):
            return AnalysisOutcome({PHASES: None})
        run, trace = chosen
        return AnalysisOutcome({PHASES: phase_report(trace, run)})


# Which kernels the ranges of one run launched.
#
# A kernel belongs to a range when its launch was called inside of it, on the range's thread where that is
# recorded. Without the calls of the runtime its begin on the GPU stands for the launch.

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
        of_process = np.flatnonzero(process == number)
        of_process = of_process[np.argsort(time[of_process], kind="stable")]
        yield (number, _ANY_THREAD), of_process
        for thread_id in np.unique(thread[of_process]).tolist():
            if thread_id != _ANY_THREAD:
                yield (
                    (number, thread_id),
                    of_process[(thread[of_process] == thread_id) | (thread[of_process] == _ANY_THREAD)],
                )


def _inside(spans: Mapping[tuple[int, int], Int64Column], launches: _Launches) -> Int64Column:
    """Rows whose launch lies in one of the intervals, ascending."""
    parts = [np.empty(0, np.int64)]
    for (process, thread), intervals in spans.items():
        known = thread if launches.by == "launch" else _ANY_THREAD
        rows = launches.order.get((process, known))
        if rows is None:
            continue
        first = np.searchsorted(launches.time_ns[rows], intervals[:, 0], "left")
        last = np.searchsorted(launches.time_ns[rows], intervals[:, 1], "right")
        parts += [rows[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    return np.unique(np.concatenate(parts))


def _phase(
    trace: Trace, name: str, times: tuple[int, int], rows: Int64Column, kernel_time: tuple[Int64Column, int]
) -> PhasePart:
    """``times``: how many ranges, and their host time. ``kernel_time``: of each dispatch, and of all."""
    durations, total = kernel_time
    kernel_ns = int(durations[rows].sum())
    by_name: dict[str, int] = {}
    spent = np.bincount(trace.dispatches.kernel[rows], durations[rows], len(trace.kernels))
    for kernel, ns in zip(trace.kernels, spent.tolist(), strict=True):
        by_name[kernel.name] = by_name.get(kernel.name, 0) + int(ns)
    dominant = max(sorted(by_name), key=lambda kernel: by_name[kernel]) if kernel_ns else None
    return PhasePart(
        name=name,
        ranges=times[0],
        host_ns=times[1],
        launches=len(rows),
        kernel_ns=kernel_ns,
        share=kernel_ns / total if total else None,
        dominant_kernel=dominant,
        dominant_share=by_name[dominant] / kernel_ns if dominant is not None else None,
    )


# A recording with nothing but the work of one range, for ``--range``.

_SHOWN = 8
_LONGEST = 60
_RECORD = "record with `rpl profile`, without --no-api (rocprofv3 --marker-trace)"
_OTHERWISE = "choose another name; --range '' takes all work"


def restricted(recording: Recording, name: str | None) -> Recording:
    """``recording`` with the work that ranges called ``name`` launched, or all of it without a name.

    Raises ``MissingError`` without such a range, or without a kernel in one. A counter pass without ranges
    can't be restricted, so its counters go.
    """
    if not name:
        return recording
    named = [(trace, ranges_by_name(trace)) for trace in recording.traces]
    timed = [ranges for trace, ranges in named if trace.role is TraceRole.TIMING]
    if not any(name in ranges for ranges in timed):
        raise MissingError(
            f"no timing run holds a range {name[:_LONGEST]!r}{_known(timed)}",
            next_step=f"{_RECORD}, or {_OTHERWISE}",
        )
    traces = tuple(
        _only(trace, ranges[name]) if name in ranges else trace
        for trace, ranges in named
        if name in ranges or trace.role is TraceRole.THREAD_TRACE
    )
    if not any(len(trace.dispatches) for trace in traces if trace.role is TraceRole.TIMING):
        raise MissingError(
            f"no kernel was launched in the ranges called {name[:_LONGEST]!r}",
            cause="the work was launched by another thread, or the kernel trace is missing",
            next_step=_OTHERWISE,
        )
    said = _said(name, len(recording.traces) - len(traces))
    return attrs.evolve(recording, traces=traces, diagnostics=(*recording.diagnostics, *said))


def _known(timed: Iterable[Iterable[str]]) -> str:
    names = dict.fromkeys(name for ranges in timed for name in ranges)
    shown = ", ".join(repr(name[:_LONGEST]) for name in list(names)[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"; there are {shown}{more}" if names else ", nor any other"


def _said(name: str, left_out: int) -> tuple[Diagnostic, ...]:
    shown = repr(name[:_LONGEST])
    fact = (
        f"only the work that ranges called {shown} launched is analysed; between them the GPU counts as idle"
    )
    diagnostics = [Diagnostic("phases.restricted", fact, severity=Severity.INFO)]
    if left_out:
        told = f"not used: {counted(left_out, 'pass', 'passes')} without a range {shown}"
        diagnostics.append(
            Diagnostic(
                "phases.passes_left_out", told, remedy="record all passes with rocprofv3 --marker-trace"
            )
        )
    return tuple(diagnostics)


def _only(trace: Trace, ranges: list[Place]) -> Trace:
    rows = rows_in_ranges(trace, ranges, trace.dispatches)
    changes: dict[str, Any] = {"dispatches": _picked(trace.dispatches, rows)}
    if trace.copies is not None:
        changes["copies"] = _picked(trace.copies, rows_in_ranges(trace, ranges, trace.copies))
    if trace.counters is not None:
        place = np.full(len(trace.dispatches), -1, np.int64)
        place[rows] = np.arange(len(rows))
        readings = _picked(trace.counters, np.flatnonzero(place[trace.counters.dispatch] >= 0))
        changes["counters"] = attrs.evolve(readings, dispatch=place[readings.dispatch])
    return attrs.evolve(trace, **changes)


def _picked(columns: Any, rows: NDArray[np.int64]) -> Any:
    return type(columns)(
        **{field.name: getattr(columns, field.name)[rows] for field in attrs.fields(type(columns))}
    )
