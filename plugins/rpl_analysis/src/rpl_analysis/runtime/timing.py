"""Choose the source of time: timing runs, else counter passes as an estimate, else process times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.contracts.stability import AddedTime, CallOverhead
from rpl_core.model.metric import Exactness
from rpl_core.model.recording import Recording
from rpl_core.model.trace import Trace
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@frozen(eq=False)
class TimedRun:
    """A trace with the duration of each of its dispatches that time is counted by (n,), ns."""

    trace: Trace
    duration_ns: NDArray[np.int64]


@frozen(eq=False)
class TimeSource:
    """Runs to be averaged. ``low`` and ``high`` are the extremes over counter passes, for estimates."""

    runs: tuple[TimedRun, ...]
    description: str
    exactness: Exactness
    low: tuple[TimedRun, ...] = ()
    high: tuple[TimedRun, ...] = ()


def choose_time_source(recording: Recording, *, strict: bool) -> TimeSource | None:
    """Timing runs where they exist; counter passes as ``estimate`` unless ``strict``; else ``None``."""
    timing = tuple(t for t in recording.timing_runs if len(t.dispatches))
    if timing:
        runs = tuple(TimedRun(t, t.dispatches.duration_ns()) for t in timing)
        besides = ", API calls recorded too" if recording.reference_runs else ""
        description = f"sum(end - start) of the kernel-trace runs{besides}"
        return TimeSource(runs, description, Exactness.EXACT)
    passes = tuple(t for t in recording.counter_passes if len(t.dispatches))
    if not passes or strict:
        return None
    return _estimate_from_passes(passes)


def _estimate_from_passes(passes: tuple[Trace, ...]) -> TimeSource:
    """Counter passes stretch dispatches, so their times are an estimate with a range.

    Several passes in one trace (the same dispatch timed once per pass) give the median per dispatch and
    the extremes per dispatch; several traces give one run each.
    """
    per_dispatch = [_per_dispatch_extremes(trace) for trace in passes]
    description = "dispatch times of counter passes (serialised and stretched: an estimate)"
    middle = tuple(TimedRun(t, m) for t, (_, m, _) in zip(passes, per_dispatch, strict=True))
    low = tuple(TimedRun(t, lo) for t, (lo, _, _) in zip(passes, per_dispatch, strict=True))
    high = tuple(TimedRun(t, hi) for t, (_, _, hi) in zip(passes, per_dispatch, strict=True))
    return TimeSource(middle, description, Exactness.ESTIMATE, low, high)


def _per_dispatch_extremes(
    trace: Trace,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Lowest, median (of the distinct) and highest duration of each dispatch over its passes, ns."""
    low = trace.dispatches.duration_ns()
    middle, high = low.copy(), low.copy()
    counters = trace.counters
    if counters is None or not len(counters):
        return low, middle, high
    known = counters.duration_ns >= 0
    if not known.any():
        return low, middle, high
    pairs = np.unique(np.stack([counters.dispatch[known], counters.duration_ns[known]], axis=1), axis=0)
    rows, starts = np.unique(pairs[:, 0], return_index=True)
    ends = np.append(starts[1:], pairs.shape[0])
    low[rows] = pairs[starts, 1]
    high[rows] = pairs[ends - 1, 1]
    middle[rows] = (pairs[(starts + ends - 1) // 2, 1] + pairs[(starts + ends) // 2, 1]) // 2
    return low, middle, high


def call_overhead(recording: Recording) -> CallOverhead | None:
    """What recording calls added to the timing runs; ``None`` without a run that did not record them."""
    timing = [trace for trace in recording.timing_runs if len(trace.dispatches)]
    references = [trace for trace in recording.reference_runs if len(trace.dispatches)]
    if not timing or not references:
        return None
    one_clock = len({process.node for trace in (*timing, *references) for process in trace.processes}) == 1
    kernel_time = _added([_kernel_ns(t) for t in timing], [_kernel_ns(t) for t in references])
    makespan = _added([_makespan_ns(t) for t in timing], [_makespan_ns(t) for t in references])
    if kernel_time is None:
        return None
    return CallOverhead(len(timing), kernel_time, makespan if one_clock else None)


def _kernel_ns(trace: Trace) -> int:
    duration = trace.dispatches.duration_ns()
    return int(duration[(trace.dispatches.kernel >= 0) & (duration >= 0)].sum())


def _makespan_ns(trace: Trace) -> int:
    return int(trace.dispatches.end_ns.max() - trace.dispatches.begin_ns.min())


def _added(with_calls_ns: Sequence[int], without_ns: Sequence[int]) -> AddedTime | None:
    without, mean = sum(without_ns) / len(without_ns), sum(with_calls_ns) / len(with_calls_ns)
    if without <= 0:
        return None
    added = [ns / without - 1 for ns in with_calls_ns]
    bounds = (min(added), max(added)) if len(added) > 1 else None
    return AddedTime(mean / 1e6, without / 1e6, mean / without - 1, bounds)
