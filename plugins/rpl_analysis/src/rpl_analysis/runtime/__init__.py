"""Runtime from dispatch timestamps, its stability over runs, and the resources of each kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.contracts.profile import StabilityClass
from rpl_analysis.facts import APPLICATION_TIME, KERNEL_TIMES
from rpl_analysis.options import STRICT
from rpl_analysis.runtime.timing import (
    ApplicationTime,
    DurationGroups,
    KernelResources,
    KernelTime,
    RepresentativeShape,
    TimedRun,
    TimeSource,
    call_overhead,
    choose_time_source,
    group_durations,
    group_sums,
    number_names,
    representative_shapes,
    stability_of,
    usable_rows,
)
from rpl_analysis.text import duration_ns, shown_names
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.metric import Exactness, Metric, Origin
from rpl_core.text import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.model.device import Architecture
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Kernel, Trace

_NO_RESOURCES = RepresentativeShape(None, None, KernelResources(None, None, None, None, None), 0, 0)
_RUNTIME_FORMULA = "mean over runs of sum(end - start) over all dispatches"


class RuntimeAnalyzer(Analyzer):
    """Times from dispatch timestamps only; counter clocks never serve as time.

    See docs/reference/counters.md, 1.4.
    """

    name = "runtime"
    summary = "time per kernel, runtime of the application, stability over runs"
    provides = frozenset({KERNEL_TIMES, APPLICATION_TIME})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        recording, told = with_believable_registers(context.recording, context.architecture)
        source = choose_time_source(recording, strict=context.options[STRICT])
        if source is None:
            application = _without_trace(recording, context)
            return AnalysisOutcome({KERNEL_TIMES: {}, APPLICATION_TIME: application}, told)
        if recording.origin is Origin.MODELLED:  # what nobody measured is exact in no way
            source = attrs.evolve(
                source, exactness=Exactness.ESTIMATE, description=f"modelled: {source.description}"
            )
        table = _KernelTable.build(source)
        times = table.kernel_times(source)
        application = attrs.evolve(
            _application_time(source, table, recording.origin), call_overhead=call_overhead(recording)
        )
        diagnostics = (*told, *timing_diagnostics(source, times, application))
        return AnalysisOutcome({KERNEL_TIMES: times, APPLICATION_TIME: application}, diagnostics)


@frozen(eq=False)
class _KernelTable:
    """Durations of all runs grouped by kernel name, and the sums of each run, (runs, kernels) ns."""

    names: tuple[str, ...]
    numbers: tuple[NDArray[np.int32], ...]
    groups: DurationGroups
    run_sums: NDArray[np.int64]

    @classmethod
    def build(cls, source: TimeSource) -> _KernelTable:
        names, numbers = number_names([run.trace for run in source.runs])
        pooled = [_rows(run, table) for run, table in zip(source.runs, numbers, strict=True)]
        if len(pooled) == 1:
            groups = group_durations(*pooled[0], len(names))
            return cls(names, numbers, groups, group_sums(groups)[None, :])
        sums = [group_sums(group_durations(kernels, ns, len(names))) for kernels, ns in pooled]
        kernels = np.concatenate([p[0] for p in pooled])
        durations = np.concatenate([p[1] for p in pooled])
        return cls(names, numbers, group_durations(kernels, durations, len(names)), np.stack(sums))

    def kernel_times(self, source: TimeSource) -> Mapping[str, KernelTime]:
        """One entry per kernel that ran, in descending order of total time, then by name."""
        shapes: dict[str, RepresentativeShape] = {}
        for run, table in zip(source.runs, self.numbers, strict=True):
            for name, shape in representative_shapes(run.trace, table, self.names).items():
                shapes.setdefault(name, shape)
        low, high = _sums_over(source.low, self.names), _sums_over(source.high, self.names)
        whole = float(self.run_sums.sum()) or 1.0
        times = [
            self._kernel_time(k, shapes.get(name, _NO_RESOURCES), source.exactness, whole, low, high)
            for k, name in enumerate(self.names)
            if self.groups.starts[k + 1] > self.groups.starts[k]
        ]
        return {t.name: t for t in sorted(times, key=lambda t: (-t.total_ns, t.name))}

    def _kernel_time(
        self,
        kernel: int,
        shape: RepresentativeShape,
        exactness: Exactness,
        whole: float,
        low: NDArray[np.int64] | None,
        high: NDArray[np.int64] | None,
    ) -> KernelTime:
        durations = self.groups.group(kernel)
        sums = self.run_sums[:, kernel]
        return KernelTime(
            name=self.names[kernel],
            launches=durations.size / len(self.run_sums),
            total_ns=float(sums.mean()),
            share=float(sums.sum()) / whole,
            mean_ns=float(durations.mean()),
            median_ns=float(_median_of_sorted(durations)),
            min_ns=int(durations[0]),
            max_ns=int(durations[-1]),
            stability=stability_of([float(s) / 1e6 for s in sums]),
            workgroup=shape.workgroup,
            grid=shape.grid,
            resources=shape.resources,
            shape_count=shape.shape_count,
            exactness=exactness,
            range_total_ns=_range_of(kernel, low, high),
        )


def _rows(run: TimedRun, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    rows = usable_rows(run.trace.dispatches)
    if rows.all():
        return numbers[run.trace.dispatches.kernel], run.duration_ns
    return numbers[run.trace.dispatches.kernel[rows]], run.duration_ns[rows]


def _median_of_sorted(values: NDArray[np.int64]) -> float:
    middle = values.size // 2
    if values.size % 2:
        return float(values[middle])
    return (float(values[middle - 1]) + float(values[middle])) / 2


def _sums_over(runs: Sequence[TimedRun], names: tuple[str, ...]) -> NDArray[np.int64] | None:
    """Sums per (run, kernel) of the low or high ends, or ``None`` when times are exact."""
    if not runs:
        return None
    _, numbers = number_names([run.trace for run in runs])
    rows = [_rows(run, table) for run, table in zip(runs, numbers, strict=True)]
    return np.stack([group_sums(group_durations(k, ns, len(names))) for k, ns in rows])


def _range_of(
    kernel: int, low: NDArray[np.int64] | None, high: NDArray[np.int64] | None
) -> tuple[float, float] | None:
    if low is None or high is None:
        return None
    return float(low[:, kernel].min()), float(high[:, kernel].max())


def _application_time(source: TimeSource, table: _KernelTable, origin: Origin) -> ApplicationTime:
    totals = [float(total) / 1e6 for total in table.run_sums.sum(axis=1)]
    launches = table.groups.sorted_ns.size / len(totals)
    if not any(totals):
        reason = "every dispatch has zero duration: the timestamps were rounded or damaged"
        return ApplicationTime(Metric.unknown("ms", reason), source.description, None, launches, ())
    low, high = _sums_over(source.low, table.names), _sums_over(source.high, table.names)
    stability = stability_of(totals)
    runtime = Metric(
        value=stability.mean_ms,
        unit="ms",
        exactness=source.exactness,
        origin=origin,
        formula=_RUNTIME_FORMULA,
        source=source.description,
    )
    application = ApplicationTime(runtime, source.description, stability, launches, tuple(totals))
    if low is None or high is None:
        return application
    bounds = (float(low.sum(axis=1).min()) / 1e6, float(high.sum(axis=1).max()) / 1e6)
    return attrs.evolve(application, range_ms=bounds)


def _without_trace(recording: Recording, context: AnalysisContext) -> ApplicationTime:
    """No dispatch times: the process wall clock if it was taken, otherwise unknown with the reason."""
    if recording.process_ms:
        stability = stability_of(recording.process_ms)
        runtime = Metric(
            value=stability.mean_ms,
            unit="ms",
            exactness=Exactness.EXACT,
            origin=Origin.MEASURED,
            formula="mean over runs of the wall-clock time of the process",
            source="process wall clock",
        )
        source = "wall clock of the whole process (no GPU trace)"
        return ApplicationTime(runtime, source, stability, 0.0, tuple(recording.process_ms))
    if context.options[STRICT] and recording.counter_passes:
        reason = "only counter passes were recorded, and their times are estimates (strict)"
    else:
        reason = "no kernel dispatch was recorded"
    return ApplicationTime(Metric.unknown("ms", reason), "none", None, 0.0, ())


# Vector register counts that no GPU of the architecture could allocate are unknown.


def with_believable_registers(
    recording: Recording, architecture: Callable[[str], Architecture | None]
) -> tuple[Recording, tuple[Diagnostic, ...]]:
    """``recording`` without vector register counts in traces where some contradict the architecture.

    Some profiler releases record fewer vector registers than a GPU allocates (``RecordQuirks``). A count that
    is no allocation proves it, and then discredits all counts of its trace, whatever reader they came from.
    """
    checked = [_checked(trace, architecture) for trace in recording.traces]
    told = tuple(problem for _, problem in checked if problem is not None)
    return (attrs.evolve(recording, traces=tuple(t for t, _ in checked)) if told else recording), told


def _checked(
    trace: Trace, architecture: Callable[[str], Architecture | None]
) -> tuple[Trace, Diagnostic | None]:
    names = {agent.architecture for agent in trace.agents if agent.kind == "GPU"}
    name = names.pop() if len(names) == 1 else None
    facts = architecture(name) if name is not None else None
    if facts is None or not facts.record_quirks.vgprs_may_be_halved:
        return trace, None
    granule = facts.record_quirks.vgpr_granule
    if granule is None or not any(_is_impossible(kernel, granule) for kernel in trace.kernels):
        return trace, None
    kernels = tuple(attrs.evolve(kernel, arch_vgpr=None, accum_vgpr=None) for kernel in trace.kernels)
    return attrs.evolve(trace, kernels=kernels), _told(trace, facts)


def _is_impossible(kernel: Kernel, granule: int) -> bool:
    if kernel.arch_vgpr is None:
        return False
    return (kernel.arch_vgpr + (kernel.accum_vgpr or 0)) % granule != 0


def _told(trace: Trace, facts: Architecture) -> Diagnostic:
    count = len(trace.kernels)
    return Diagnostic(
        "kernel.impossible_registers",
        f"{counted(count, 'kernel has', 'kernels have')} VGPR counts of which some can't be "
        "allocated; all of them count as unknown",
        cause=f"the profiler release miscounts registers on {facts.name}",
        remedy="read the counts from the code objects, or record with a newer profiler",
        where=Path(trace.source.paths[-1]).name if trace.source.paths else None,
        count=count,
    )


# What a reader of the times should know: outliers, instability, damaged timestamps.

#: A kernel whose slowest dispatch takes twice its median has an outlier worth naming (chosen).
OUTLIER_RATIO = 2.0
_DAMAGE = ("dispatch.zero_duration", "dispatch.negative_duration")


def timing_diagnostics(
    source: TimeSource, times: Mapping[str, KernelTime], application: ApplicationTime
) -> tuple[Diagnostic, ...]:
    """Diagnostics about the times, in a fixed order."""
    diagnostics = [*_damaged(source), *_outliers(times)]
    if source.low:
        diagnostics.append(_estimated())
    stability = application.stability
    if stability and stability.classification is StabilityClass.UNSTABLE:
        diagnostics.append(_unstable(stability.cv or 0.0))
    return tuple(diagnostics)


def _damaged(source: TimeSource) -> list[Diagnostic]:
    # A reader that counted them already has named the file as well.
    unreported = [
        run.trace for run in source.runs if not any(d.code in _DAMAGE for d in run.trace.diagnostics)
    ]
    times = [(trace.dispatches.begin_ns, trace.dispatches.end_ns) for trace in unreported]
    zero = sum(int(np.count_nonzero(end == begin)) for begin, end in times)
    negative = sum(int(np.count_nonzero(end < begin)) for begin, end in times)
    diagnostics = []
    if zero:
        diagnostics.append(
            Diagnostic(
                "dispatch.zero_duration",
                f"{counted(zero, 'dispatch has', 'dispatches have')} a duration of zero",
                cause="timestamps rounded by a spreadsheet, or a clock too coarse for the kernel",
                remedy="record again, or take the file as the profiler wrote it",
                count=zero,
            )
        )
    if negative:
        diagnostics.append(
            Diagnostic(
                "dispatch.negative_duration",
                f"{counted(negative, 'dispatch ends', 'dispatches end')} before the start: in no time",
                cause="a clock conversion error of the profiler",
                count=negative,
            )
        )
    return diagnostics


def _outliers(times: Mapping[str, KernelTime]) -> list[Diagnostic]:
    slow = [t for t in times.values() if t.median_ns > 0 and t.max_ns >= OUTLIER_RATIO * t.median_ns]
    if not slow:
        return []
    worst = max(slow, key=lambda t: (t.max_ns - t.median_ns, t.name))
    called = shown_names(times)[worst.name]
    return [
        Diagnostic(
            "dispatch.outlier",
            f"{counted(len(slow), 'kernel has', 'kernels have')} a dispatch of at least "
            f"{OUTLIER_RATIO:g} times the median; "
            f"the largest excess: {duration_ns(worst.max_ns)} against a median of "
            f"{duration_ns(worst.median_ns)} in {called}",
            cause="a cold start, another process on the GPU, or launches of different sizes",
            remedy="look at the median beside the mean, and repeat with more --runs",
            severity=Severity.INFO,
            count=len(slow),
        )
    ]


def _estimated() -> Diagnostic:
    return Diagnostic(
        "time.estimated",
        "times come from counter passes, which serialise and stretch dispatches",
        remedy="record a kernel trace without counters for measured times",
    )


def _unstable(cv: float) -> Diagnostic:
    return Diagnostic(
        "time.unstable",
        f"the runtime varies by {cv:.1%} (CV) over the runs",
        cause="clock or thermal changes, other load, or too few runs",
        remedy="see the reproducibility checklist of `rpl docs user-guide`, and raise --runs",
    )
