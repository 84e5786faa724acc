"""Why a kernel got its label, as ``rpl explain`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.text.figures import faster_application

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.analysis import ConditionEvidence, KernelAnalysis, RuleEvidence
    from rpl_analysis.contracts.dag import DagDocument

__all__ = ["gain_lines", "label_lines"]


def label_lines(label: KernelAnalysis) -> Iterator[str]:
    """The label, the rules that gave it and those that nearly did, and what stayed unknown."""
    yield f"label       {label.bottleneck} (confidence: {label.confidence})"
    yield f"why         {label.reason}"
    yield f"headroom    {_headroom(label)}"
    for title, rules in (("evidence", label.evidence), ("near misses", label.near_misses)):
        for i, rule in enumerate(rules):
            yield ""
            decides = ", decides" if title == "evidence" and i == 0 else ""
            yield f"{title:<12}{rule.rule} -> {rule.label}{decides}"
            yield from _rule_lines(rule)
    if label.unknown:
        yield ""
    for line in label.unknown:
        yield f"unknown     {line}"
    if label.remedy:
        yield f"remedy      {label.remedy.replace('{command}', 'COMMAND')}"


def gain_lines(document: DagDocument | None, kernel: str) -> Iterator[str]:
    """What the application gains from a faster one; both ends where the order of streams is unknown."""
    forecasts = () if document is None else document.forecasts
    most = "at most " if document and document.sync_info == "none" and document.order_known else ""
    own = next((entry for entry in forecasts if (entry.name, entry.kind) == (kernel, "kernel")), None)
    for answer in () if own is None else own.speedups:
        if answer.speedup in (2.0, None):
            factor = "twice as fast" if answer.speedup else "at no cost"
            told = f"it makes the application {most}{faster_application(answer)} as fast"
            if answer.application_ns <= 0:
                told = "nothing would be left of the application's recorded time"
            yield f"{'gain':<12}{factor}, {told}"


def _headroom(label: KernelAnalysis) -> str:
    if label.headroom_fraction is None:
        return f"unknown: {label.headroom_reason or 'nothing was recorded that tells'}"
    return f"{label.headroom_fraction:.1%}  [{label.headroom_source}]"


def _rule_lines(rule: RuleEvidence) -> Iterator[str]:
    """The rule in words, then each condition with its figure, its exactness and where it comes from."""
    yield f"{'':<12}{rule.explanation}"
    rows = [
        (
            condition.quantity,
            _value(condition),
            f"{condition.comparison} {condition.threshold:.0%}",
            {True: "holds", False: "fails", None: "unknown"}[condition.holds],
            f"threshold: {condition.source}",
        )
        for condition in rule.conditions
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for (name, value, limit, verdict, source), condition in zip(rows, rule.conditions, strict=True):
        yield (
            f"{'':<14}{name:<{widths[0]}}  {value:>{widths[1]}} {limit:<{widths[2]}}  {verdict:<{widths[3]}}"
            f"  [{source}]"
        )
        if condition.formula is not None:
            yield f"{'':<16}= {condition.formula}"


def _value(condition: ConditionEvidence) -> str:
    """In percent; an inexact figure says so, one near its threshold shows the digits that tell them apart."""
    if condition.value is None:
        return "unknown"
    near = abs(condition.value - condition.threshold) < 0.001
    text = f"{condition.value:.{3 if near else 1}%}"
    if condition.upper is not None:
        return f"{text} to {condition.upper:.1%}"
    return text if condition.exactness in ("exact", None) else f"{text} ({condition.exactness})"
