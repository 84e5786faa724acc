"""Times of kernels from several traces: dispatches grouped by name, what stands for one, the source of time.

A few sorts of columns, never row by row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_analysis.contracts.profile import AddedTime, CallOverhead, StabilityClass, StabilityPart
from rpl_core.model.metric import Exactness, Metric
from rpl_core.model.recording import Recording
from rpl_core.model.trace import Dispatches, Trace
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Times per kernel and per application with their spread over runs: what the runtime analyzer gives.

#: kalowery/rocm-perf-lab @112862e5 docs/USER_GUIDE.md, section 5.
STABLE_CV = 0.05
MODERATE_CV = 0.10


@frozen
class KernelResources:
    """Allocated registers, LDS and scratch of a kernel; ``None`` where the recording lacks them."""

    arch_vgpr: int | None
    accum_vgpr: int | None
    sgpr: int | None
    lds_bytes: int | None  # static + dynamic, per workgroup
    scratch_bytes: int | None  # per work-item


@frozen
class KernelTime:
    """One kernel (by displayed name) over all timing runs.

    ``total_ns`` is the mean over runs of the kernel's summed dispatch time, ``mean_ns`` .. ``max_ns``
    describe single dispatches over all runs. ``exactness`` is ``estimate`` when only counter passes
    exist; then ``range_total_ns`` spans the passes. Geometry and resources are those of the dispatch
    shape with the largest share of the kernel's time; ``shape_count`` tells how many there are.
    """

    name: str
    launches: float  # mean per run
    total_ns: float
    share: float  # of the summed kernel time, 0..1
    mean_ns: float
    median_ns: float
    min_ns: int
    max_ns: int
    stability: StabilityPart
    workgroup: tuple[int, int, int] | None
    grid: tuple[int, int, int] | None  # work-items
    resources: KernelResources
    shape_count: int
    exactness: Exactness = Exactness.EXACT
    range_total_ns: tuple[float, float] | None = None


@frozen
class ApplicationTime:
    """``runtime`` is the mean over runs of the sum of (end - start) over all dispatches, in ms."""

    runtime: Metric
    runtime_source: str
    stability: StabilityPart | None
    launches: float
    run_totals_ms: tuple[float, ...]
    range_ms: tuple[float, float] | None = None  # over counter passes, for estimates
    call_overhead: CallOverhead | None = None  # null without calls, or without a run that lacks them


def classify_cv(cv: float) -> StabilityClass:
    """cv <= 0.05 stable, <= 0.10 moderate, otherwise unstable."""
    if cv <= STABLE_CV:
        return StabilityClass.STABLE
    return StabilityClass.MODERATE if cv <= MODERATE_CV else StabilityClass.UNSTABLE


def stability_of(times_ms: Sequence[float]) -> StabilityPart:
    """Stability of at least one time. A single run has a mean and nothing else."""
    count = len(times_ms)
    mean = math.fsum(times_ms) / count
    if count < 2:
        return StabilityPart(count, mean)
    variance = math.fsum((t - mean) ** 2 for t in times_ms) / (count - 1)
    stddev = math.sqrt(variance)
    if mean <= 0:
        return StabilityPart(count, mean, stddev)
    cv = stddev / mean
    return StabilityPart(count, mean, stddev, cv, classify_cv(cv))


#: Widths of a sort key that holds kernel number and duration; the narrow one sorts twice as fast.
_KEYS: tuple[tuple[int, type[np.integer[Any]]], ...] = ((32, np.uint32), (63, np.int64))


@frozen(eq=False)
class DurationGroups:
    """Durations sorted within each kernel: group ``k`` is ``sorted_ns[starts[k]:starts[k + 1]]``.

    ``sorted_ns`` is narrower than int64 where all of them fit.
    """

    sorted_ns: NDArray[np.integer[Any]]
    starts: NDArray[np.int64]

    def group(self, kernel: int) -> NDArray[np.int64]:
        """The durations of one kernel, ascending."""
        return self.sorted_ns[self.starts[kernel] : self.starts[kernel + 1]].astype(np.int64, copy=False)


def number_names(traces: Sequence[Trace]) -> tuple[tuple[str, ...], tuple[NDArray[np.int32], ...]]:
    """All kernel names, sorted, and for each trace the number of the name of each of its kernels."""
    names = tuple(sorted({kernel.name for trace in traces for kernel in trace.kernels}))
    numbers = {name: i for i, name in enumerate(names)}
    tables = tuple(np.array([numbers[k.name] for k in trace.kernels], dtype=np.int32) for trace in traces)
    return names, tables


def usable_rows(dispatches: Dispatches) -> NDArray[np.bool_]:
    """Dispatches with a known kernel and a duration of zero or more."""
    rows: NDArray[np.bool_] = (dispatches.kernel >= 0) & (dispatches.end_ns >= dispatches.begin_ns)
    return rows


def group_durations(
    kernels: NDArray[np.int32], durations: NDArray[np.int64], kernel_count: int
) -> DurationGroups:
    """Sort ``durations`` (n,) within their ``kernels`` (n,) numbers."""
    counts = np.bincount(kernels, minlength=kernel_count)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    bits = int(durations.max(initial=0)).bit_length()
    for width, kind in _KEYS:
        if bits + kernel_count.bit_length() <= width and int(durations.min(initial=0)) >= 0:
            keys = kernels.astype(kind)
            keys <<= bits
            keys |= durations.astype(kind, copy=False)
            keys.sort()
            keys &= (1 << bits) - 1
            return DurationGroups(keys, starts)
    order = np.lexsort((durations, kernels))
    return DurationGroups(durations[order], starts)


def group_sums(groups: DurationGroups) -> NDArray[np.int64]:
    """Exact int64 sum of each group."""
    sums = np.zeros(groups.starts.size - 1, dtype=np.int64)
    filled = np.flatnonzero(groups.starts[1:] > groups.starts[:-1])
    if filled.size:
        sums[filled] = np.add.reduceat(groups.sorted_ns, groups.starts[filled], dtype=np.int64)
    return sums


# Which launch shape and which resources stand for a kernel that was launched in several ways.

_BLOCK = 2**16
Triple = tuple[int, int, int]


@frozen
class RepresentativeShape:
    """Geometry and resources of the shape in which a kernel spent most of its time."""

    workgroup: Triple | None
    grid: Triple | None
    resources: KernelResources
    shape_count: int
    register_variants: int  # distinct (arch, accum, sgpr) under this name


def representative_shapes(
    trace: Trace, name_numbers: NDArray[np.int32], names: tuple[str, ...]
) -> Mapping[str, RepresentativeShape]:
    """For each kernel name of ``trace``: its shape with the largest summed time (ties: lowest index)."""
    dispatches = trace.dispatches
    best: dict[int, tuple[float, int]] = {}
    counts: dict[int, int] = {}
    for row, time in _shapes_in_use(trace):
        number = int(name_numbers[dispatches.kernel[row]])
        counts[number] = counts.get(number, 0) + 1
        if number not in best or time > best[number][0]:
            best[number] = (time, row)
    variants = _register_variants(trace, name_numbers)
    return {
        names[number]: _shape_at(trace, row, counts[number], variants[number])
        for number, (_, row) in sorted(best.items())
    }


def _shapes_in_use(trace: Trace) -> list[tuple[int, float]]:
    """First row and summed time of every pair of kernel and shape that was launched, pairs ascending."""
    dispatches = trace.dispatches
    shapes = max(len(trace.shapes), 1) + 1
    pairs = len(trace.kernels) * shapes
    first: dict[int, int] = {}
    times: dict[int, float] = {}
    # In blocks, which stay in the caches and need no memory per row.
    for begin in range(0, len(dispatches), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        duration = dispatches.end_ns[block] - dispatches.begin_ns[block]
        pair = dispatches.kernel[block].astype(np.int64) * shapes + dispatches.shape[block] + 1
        usable = (duration >= 0) & (dispatches.kernel[block] >= 0)
        rows = np.arange(begin, begin + pair.size)
        if not usable.all():
            pair, duration, rows = pair[usable], duration[usable], rows[usable]
        for number, row, spent in _summed(pair, rows, duration, pairs):
            first.setdefault(number, row)
            times[number] = times.get(number, 0.0) + spent
    return [(first[pair], times[pair]) for pair in sorted(first)]


def _summed(
    pair: NDArray[np.int64], rows: NDArray[np.int64], duration: NDArray[np.int64], pairs: int
) -> Iterable[tuple[int, int, float]]:
    """Number, first row and summed time of each pair that occurs."""
    if pairs > _BLOCK:
        distinct, first, pair = np.unique(pair, return_index=True, return_inverse=True)
        return zip(distinct.tolist(), rows[first].tolist(), np.bincount(pair, duration).tolist(), strict=True)
    first = np.full(pairs, -1, np.int64)
    first[pair[::-1]] = rows[::-1]  # the last assignment counts, which is that of the first row
    present = np.flatnonzero(first >= 0)
    time = np.bincount(pair, duration, pairs)
    return zip(present.tolist(), first[present].tolist(), time[present].tolist(), strict=True)


def _shape_at(trace: Trace, row: int, shape_count: int, register_variants: int) -> RepresentativeShape:
    kernel = trace.kernels[int(trace.dispatches.kernel[row])]
    shape = int(trace.dispatches.shape[row])
    known = shape >= 0
    shapes = trace.shapes
    lds = int(shapes.lds_bytes[shape]) if known else -1
    scratch = int(shapes.scratch_bytes[shape]) if known else -1
    return RepresentativeShape(
        workgroup=_triple(shapes.workgroup[shape]) if known else None,
        grid=_triple(shapes.grid[shape]) if known else None,
        resources=KernelResources(
            arch_vgpr=kernel.arch_vgpr,
            accum_vgpr=kernel.accum_vgpr,
            sgpr=kernel.sgpr,
            lds_bytes=lds if lds >= 0 else None,
            scratch_bytes=scratch if scratch >= 0 else None,
        ),
        shape_count=shape_count,
        register_variants=register_variants,
    )


def _triple(row: NDArray[np.int64]) -> Triple | None:
    """The three axes, or ``None`` where the source recorded no geometry (-1)."""
    x, y, z = (int(v) for v in row)
    return None if min(x, y, z) < 0 else (x, y, z)


def _register_variants(trace: Trace, name_numbers: NDArray[np.int32]) -> dict[int, int]:
    # One entry per kernel, and one that -1 lands in.
    launched = np.zeros(len(trace.kernels) + 1, np.bool_)
    launched[trace.dispatches.kernel] = True
    seen: dict[int, set[tuple[int | None, int | None, int | None]]] = {}
    for index in np.flatnonzero(launched[:-1]).tolist():
        kernel = trace.kernels[index]
        registers = (kernel.arch_vgpr, kernel.accum_vgpr, kernel.sgpr)
        seen.setdefault(int(name_numbers[index]), set()).add(registers)
    return {number: len(registers) for number, registers in seen.items()}


# Choose the source of time: timing runs, else counter passes as an estimate, else process times.


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
