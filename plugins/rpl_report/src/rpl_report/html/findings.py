"""What a reader should take away, as sentences made of figures that the documents hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.execution_graph.results.forecasts import most_gain_ns
from rpl_analysis.text.figures import between, mark, marked, unit_of
from rpl_core.text.safety import readable
from rpl_core.values import frozen
from rpl_report.advice_section import UNTIMED, UNTIMED_COMMAND
from rpl_report.html.figures import duration, factor, share
from rpl_report.html.kernel_identity import by_time, label_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rpl_analysis.contracts.analysis import (
        AnalysisDocument,
        ConfirmationPart,
        KernelAnalysis,
        NextStepPart,
        PriorityPart,
    )
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
#: What cannot make the application this much faster is none (chosen).
_NOTEWORTHY = 1.005
#: Subjects of next steps beyond those that have a finding (chosen).
_MORE_SUBJECTS = 3
_IDLE, _COPIES = "GPU idle", "copies"


@frozen
class Finding:
    """A bold beginning, the sentence, and the place on the page that shows more.

    ``subject`` is what next steps are listed under, ``advice`` the first of them in at most three lines.
    """

    head: str
    text: str
    target: str
    subject: str = ""
    advice: tuple[str, ...] = ()


def findings_of(
    profile: ProfileDocument, dag: DagDocument, analysis: AnalysisDocument, names: KernelNames
) -> tuple[Finding, ...]:
    """At most one finding per question: what can be gained by its size, then what else one should know.

    Sizes are what the run saves if the subject takes half its time.
    """
    gains = (
        _idle(dag),
        _best_gain(dag, analysis, names, "copy"),
        _best_gain(dag, analysis, names, "kernel"),
    )
    known = [gain for gain in gains if gain is not None]
    subjects = {finding.subject for _, finding in known}
    ranges = [_ranges(p) for p in analysis.next_steps if p.share is None]
    further = (p for p in analysis.next_steps if p.share is not None and not _told(p, subjects))
    known += [(_most(p), _further(p, names)) for p in further][:_MORE_SUBJECTS]
    gained = [finding for _, finding in sorted(known, key=lambda gain: -gain[0])]
    ranked: Iterable[Finding] = (*ranges, *gained)
    if dag.status != "available":
        ranked = _of_most_time(profile, analysis, names)
    others = (_shift(dag, names), _hidden(profile, dag, names), _untimed(profile, dag))
    return (*_advised(ranked, analysis), *(finding for finding in others if finding is not None))


def _of_most_time(
    profile: ProfileDocument, analysis: AnalysisDocument, names: KernelNames
) -> Iterator[Finding]:
    """Where no gain is known: the kernels that take the most time and have a next step."""
    known = {kernel.kernel: kernel for kernel in analysis.kernels if kernel.next_steps}
    timed = [kernel for kernel in by_time(profile) if kernel.time_share and kernel.name in known]
    for kernel in timed[:_MORE_SUBJECTS]:
        text = f"{share(kernel.time_share)} of kernel time.{_said(known[kernel.name])}"
        yield Finding(f"{names.short(kernel.name)}.", text, f"#{names.of(kernel.name)}", kernel.name)


def _told(priority: PriorityPart, subjects: set[str]) -> bool:
    """Whether a finding is about it; idle time is one finding whatever its causes are."""
    return any(priority.subject.startswith(subject) for subject in subjects)


def _most(priority: PriorityPart) -> int:
    return priority.gain_ns if priority.gain_at_most_ns is None else priority.gain_at_most_ns


def _ranges(priority: PriorityPart) -> Finding:
    """What the recording lacks, before the gains that are ranges without it."""
    subject = priority.subject[:1].upper() + priority.subject[1:]
    text = f"Gains are known to within {duration(priority.gain_at_most_ns)} only."
    return Finding(f"{readable(subject, 120)}.", text, "#what-if", priority.subject)


def _further(priority: PriorityPart, names: KernelNames) -> Finding:
    """Another subject of the ranking."""
    of_kernel = priority.kind == "kernel"
    subject = names.short(priority.subject) if of_kernel else readable(priority.subject, 80)
    most = priority.share if priority.share_at_most is None else priority.share_at_most
    part = f" ({between(share(priority.share), share(most))} of the makespan)"
    less = between(duration(priority.gain_ns), duration(_most(priority)))
    label = f" It is labelled {label_text(priority.label)}." if priority.label else ""
    if priority.label == "unclassified":
        label = ""
    text = f"In half its time the run would take {less}{part} less.{label}"
    target = f"#{names.of(priority.subject)}" if of_kernel and names.of(priority.subject) else "#what-if"
    return Finding(
        f"{subject[:1].upper() if not of_kernel else subject[:1]}{subject[1:]}.",
        text,
        target,
        priority.subject,
    )


def _advised(findings: Iterable[Finding], analysis: AnalysisDocument) -> Iterator[Finding]:
    """Each with the first step for its subject; one that stands at an earlier finding already is named."""
    told: dict[str, int] = {}
    for number, finding in enumerate(findings, 1):
        matching = (
            p for p in analysis.next_steps if finding.subject and p.subject.startswith(finding.subject)
        )
        steps = next((p.steps for p in matching if p.steps), ())
        labelled = (k.next_steps for k in analysis.kernels if k.kernel == finding.subject)
        step = next(iter(steps or next(labelled, ())), None)
        if step is None:
            yield finding
        elif step.advice in told:
            yield attrs.evolve(finding, advice=(f"Next: as for {told[step.advice]}.",))
        else:
            told[step.advice] = number
            yield attrs.evolve(finding, advice=tuple(_lines(step)))


def _lines(step: NextStepPart) -> Iterator[str]:
    yield readable(f"Next: {step.text}", 500)
    confirming = [_confirmation(each) for each in step.confirm]
    if confirming:
        yield readable(f"Confirmed by: {'; '.join(confirming)}", 400)
    if step.command:
        yield readable(f"Run: {step.command.replace('{command}', 'COMMAND')}", 300)


def _confirmation(each: ConfirmationPart) -> str:
    counters = f" ({', '.join(each.counters)})" if each.counters else ""
    if each.value is None:
        return f"{each.quantity}, not recorded{counters}"
    if each.unit == "fraction":
        ends = [share(end) for end in (each.value, each.upper) if end is not None]
        return f"{each.quantity} {mark(each.exactness) if each.upper is None else ''}{between(*ends)}"
    figure = marked(each.value, each.exactness, each.upper)
    return f"{each.quantity} {figure} {unit_of(each.value, each.unit)}".rstrip()


def _best_gain(
    dag: DagDocument, analysis: AnalysisDocument, names: KernelNames, kind: str
) -> tuple[int, Finding] | None:
    """The kernel or copy direction with the largest gain, and how much it is if it cost nothing."""
    best = next((entry for entry in dag.forecasts if entry.kind == kind), None)
    if best is None:
        return None
    twice = _at(best, 2.0)
    most = _at(best, None)
    if twice is None or most is None or (_most_speedup(most) or 2.0) < _NOTEWORTHY:
        return None
    label = next((entry for entry in analysis.kernels if entry.kernel == best.name), None)
    said = _said(label) if label else ""
    head = f"Most to gain from a kernel: {names.short(best.name)}."
    if kind == "copy":
        head = f"Copies: {names.work(best.name, kind)}."
    finding = Finding(
        head,
        f"Twice as fast, it makes the application {_as_fast(twice)} as fast "
        f"({_less(twice)} less), "
        f"and {factor(_most_speedup(most))} is the most it can bring.{said}",
        "#what-if",
        _COPIES if kind == "copy" else best.name,
    )
    return most_gain_ns(twice), finding


def _as_fast(answer: SpeedupForecastPart) -> str:
    return between(factor(answer.application_speedup), factor(_most_speedup(answer)))


def _less(answer: SpeedupForecastPart) -> str:
    return between(duration(answer.application_gain_ns), duration(most_gain_ns(answer)))


def _most_speedup(answer: SpeedupForecastPart) -> float | None:
    """The upper end; ``None``: nothing may be left."""
    if answer.application_gain_at_most_ns is None:
        return answer.application_speedup
    makespan = answer.application_ns + answer.application_gain_ns
    left = makespan - answer.application_gain_at_most_ns
    return makespan / left if left > 0 else None


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
            "copies that were not recorded, probably": domain.idle.copying_ns,
            "launch latency": domain.idle.launch_ns,
            "unknown causes (no API calls recorded)": domain.idle.unattributed_ns,
        }
        named = [f"{duration(ns)} by {name}" for name, ns in parts.items() if ns]
        text += f": {', '.join(named)}" if named else ""
    head = f"The GPU idles for {share(domain.idle_ns / domain.makespan_ns)}."
    limit = f"Without it the application would be {factor(domain.makespan_ns / domain.busy_ns)} as fast"
    return domain.idle_ns // 2, Finding(head, f"{text}. {limit}.", "#path", _IDLE)


def _hidden(profile: ProfileDocument, dag: DagDocument, names: KernelNames) -> Finding | None:
    if dag.status != "available":
        return None
    gaining = {
        forecast.name
        for forecast in dag.forecasts
        if (free := _at(forecast, None)) is None or (_most_speedup(free) or 2.0) >= _NOTEWORTHY
    }
    # Where the order is unknown only an upper end tells that nothing is gained.
    told = {forecast.name for forecast in dag.forecasts if forecast.kind == "kernel"}
    hidden = [
        kernel
        for kernel in profile.kernels
        if kernel.name not in gaining and (dag.order_known or kernel.name in told)
    ]
    hidden = [
        kernel
        for kernel in hidden
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


def _untimed(profile: ProfileDocument, dag: DagDocument) -> Finding | None:
    if dag.status == "available":
        return None
    reason = readable(dag.reason or "unknown", 400)
    only_traced = not profile.kernels and profile.untimed_thread_traces
    advice = (f"Next: {UNTIMED}", f"Run: {UNTIMED_COMMAND}") if only_traced else ()
    # A page of thread traces alone has no section of the path to lead to.
    target = "#thread-traces" if only_traced else "#path"
    return Finding("No critical path.", f"{reason[:1].upper()}{reason[1:]}.", target, advice=advice)
