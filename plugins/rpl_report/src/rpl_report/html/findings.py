"""What a reader should take away, as sentences made of figures that the documents hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.safety import readable
from rpl_core.values import frozen
from rpl_report.html.figures import duration, factor, share
from rpl_report.html.kernel_identity import label_text

if TYPE_CHECKING:
    from rpl_analysis.contracts.analysis import AnalysisDocument, KernelAnalysis
    from rpl_analysis.contracts.dag import DagDocument, ForecastPart, SpeedupForecastPart
    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_report.html.kernel_identity import KernelNames

__all__ = ["Finding", "findings_of"]

#: A kernel with at least this share of the time and less than that of the path is worth a sentence (chosen).
_MUCH_TIME = 0.05
_LITTLE_PATH = 0.01
#: Idle time from this share of the makespan on is worth a sentence (chosen).
_MUCH_IDLE = 0.05
_MOST_HIDDEN = 3


@frozen
class Finding:
    """A bold beginning, the sentence, and the place on the page that shows more."""

    head: str
    text: str
    target: str


def findings_of(
    profile: ProfileDocument, dag: DagDocument, analysis: AnalysisDocument, names: KernelNames
) -> tuple[Finding, ...]:
    """At most one finding per question, in the order in which one would act on them."""
    found = [
        _best_gain(dag, analysis, names),
        _shift(dag, names),
        _idle(dag),
        _hidden(profile, dag, names),
        _untimed(dag),
    ]
    return tuple(finding for finding in found if finding is not None)


def _best_gain(dag: DagDocument, analysis: AnalysisDocument, names: KernelNames) -> Finding | None:
    best = next((entry for entry in dag.forecasts if entry.kind == "kernel"), None)
    if best is None:
        return None
    twice = _at(best, 2.0)
    most = _at(best, None)
    if twice is None or twice.application_gain_ns <= 0:
        return None
    label = next((entry for entry in analysis.kernels if entry.kernel == best.name), None)
    said = _said(label) if label else ""
    limit = f", and {factor(most.application_speedup)} is the most it can bring" if most else ""
    return Finding(
        f"Most to gain: {names.plain(best.name)}.",
        f"Twice as fast, it makes the application {factor(twice.application_speedup)} as fast "
        f"({duration(twice.application_gain_ns)} less){limit}.{said}",
        "#what-if",
    )


def _said(label: KernelAnalysis) -> str:
    if label.bottleneck == "unclassified":
        return " What limits it is not known."
    return f" It is labelled {label_text(label.bottleneck)} ({label.confidence} confidence)."


def _at(forecast: ForecastPart, speedup: float | None) -> SpeedupForecastPart | None:
    return next((entry for entry in forecast.speedups if entry.speedup == speedup), None)


def _shift(dag: DagDocument, names: KernelNames) -> Finding | None:
    if dag.dominance_shift_at is None or not dag.dominant_symbol:
        return None
    after = next(
        (
            step.dominant_symbol
            for step in dag.dominance
            if step.dominant_symbol not in (None, dag.dominant_symbol)
        ),
        None,
    )
    if after is None:
        return None
    return Finding(
        f"The dominant kernel changes at {factor(dag.dominance_shift_at)}.",
        f"Once {names.plain(dag.dominant_symbol)} is faster than that, {names.plain(after)} dominates.",
        "#what-if",
    )


def _idle(dag: DagDocument) -> Finding | None:
    domain = max(dag.clock_domains, key=lambda part: part.critical_path_ns, default=None)
    if domain is None or not domain.makespan_ns or domain.idle_ns / domain.makespan_ns < _MUCH_IDLE:
        return None
    text = f"{duration(domain.idle_ns)} in which no kernel and no copy ran"
    if domain.idle is not None:
        parts = {
            "the host": domain.idle.host_ns,
            "synchronisation": domain.idle.sync_ns,
            "launch latency": domain.idle.launch_ns,
            "unknown causes (no API calls recorded)": domain.idle.unattributed_ns,
        }
        named = [f"{duration(ns)} by {name}" for name, ns in parts.items() if ns]
        text += f": {', '.join(named)}" if named else ""
    return Finding(f"The GPU idles for {share(domain.idle_ns / domain.makespan_ns)}.", f"{text}.", "#path")


def _hidden(profile: ProfileDocument, dag: DagDocument, names: KernelNames) -> Finding | None:
    if dag.status != "available":
        return None
    hidden = [
        kernel
        for kernel in profile.kernels
        if kernel.time_share is not None
        and kernel.time_share >= _MUCH_TIME
        and kernel.criticality_weight is not None
        and kernel.criticality_weight < _LITTLE_PATH
    ][:_MOST_HIDDEN]
    if not hidden:
        return None
    listed = ", ".join(
        f"{names.plain(kernel.name)} ({share(kernel.time_share)} of the time)" for kernel in hidden
    )
    return Finding(
        "Much time, nothing to gain.",
        f"Off the critical path: {listed}. A faster version alone would not shorten the run.",
        "#kernels",
    )


def _untimed(dag: DagDocument) -> Finding | None:
    if dag.status == "available":
        return None
    reason = readable(dag.reason or "unknown", 400)
    return Finding("No critical path.", f"{reason[:1].upper()}{reason[1:]}.", "#path")
