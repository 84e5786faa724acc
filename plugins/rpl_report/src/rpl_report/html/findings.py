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
    """At most one finding per question: what can be gained by its size, then what else one should know."""
    gains = (
        _idle(dag),
        _best_gain(dag, analysis, names, "copy"),
        _best_gain(dag, analysis, names, "kernel"),
    )
    ranked = sorted((gain for gain in gains if gain is not None), key=lambda gain: -gain[0])
    others = (_shift(dag, names), _hidden(profile, dag, names), _untimed(dag))
    return (*(finding for _, finding in ranked), *(finding for finding in others if finding is not None))


def _best_gain(
    dag: DagDocument, analysis: AnalysisDocument, names: KernelNames, kind: str
) -> tuple[int, Finding] | None:
    """The kernel or copy direction with the largest gain, and how much it is if it cost nothing."""
    best = next((entry for entry in dag.forecasts if entry.kind == kind), None)
    if best is None:
        return None
    twice = _at(best, 2.0)
    most = _at(best, None)
    if twice is None or twice.application_gain_ns <= 0 or most is None:
        return None
    label = next((entry for entry in analysis.kernels if entry.kernel == best.name), None)
    said = _said(label) if label else ""
    head = f"Most to gain from a kernel: {names.short(best.name)}."
    if kind == "copy":
        head = f"Copies: {names.work(best.name, kind)}."
    finding = Finding(
        head,
        f"Twice as fast, it makes the application {factor(twice.application_speedup)} as fast "
        f"({duration(twice.application_gain_ns)} less), "
        f"and {factor(most.application_speedup)} is the most it can bring.{said}",
        "#what-if",
    )
    return most.application_gain_ns, finding


def _said(label: KernelAnalysis) -> str:
    if label.bottleneck == "unclassified":
        return " What limits it is not known."
    return f" It is labelled {label_text(label.bottleneck)} ({label.confidence} confidence)."


def _at(forecast: ForecastPart, speedup: float | None) -> SpeedupForecastPart | None:
    return next((entry for entry in forecast.speedups if entry.speedup == speedup), None)


def _shift(dag: DagDocument, names: KernelNames) -> Finding | None:
    first = dag.dominant_work
    if dag.dominance_shift_at is None or first is None:
        return None
    kinds = {symbol.name: symbol.kind for symbol in dag.symbols}
    after = next(
        (step.dominant_symbol for step in dag.dominance if step.dominant_symbol not in (None, first.name)),
        None,
    )
    if after is None:
        return None
    next_one = names.work(after, kinds.get(after, "kernel"))
    return Finding(
        f"What dominates the path changes at {factor(dag.dominance_shift_at)}.",
        f"Once {names.work(first.name, first.kind)} is faster than that, {next_one} dominates.",
        "#what-if",
    )


def _idle(dag: DagDocument) -> tuple[int, Finding] | None:
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
    head = f"The GPU idles for {share(domain.idle_ns / domain.makespan_ns)}."
    limit = f"Without it the application would be {factor(domain.makespan_ns / domain.busy_ns)} as fast"
    return domain.idle_ns, Finding(head, f"{text}. {limit}.", "#path")


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
        f"{names.short(kernel.name)} ({share(kernel.time_share)} of the time)" for kernel in hidden
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
