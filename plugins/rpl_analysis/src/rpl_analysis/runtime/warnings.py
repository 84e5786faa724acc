"""What a reader of the times should know: outliers, instability, damaged timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rpl_analysis.contracts.stability import StabilityClass
from rpl_analysis.runtime.model import ApplicationTime, KernelTime
from rpl_analysis.runtime.timing import TimeSource
from rpl_analysis.text.figures import duration_ns
from rpl_analysis.text.names import shown_names
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.text import counted

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
    unreported = [run.trace for run in source.runs if not _names_damage(run.trace.diagnostics)]
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


def _names_damage(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(d.code in _DAMAGE for d in diagnostics)


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
