"""Test all rules against the figures of a kernel; the strongest rule that holds gives the label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rpl_analysis.bottleneck.ceilings import ABOVE_CEILING
from rpl_analysis.bottleneck.confidence import Competitors, competitors_of, confidence_of, is_near
from rpl_analysis.bottleneck.headroom import headroom_of
from rpl_analysis.bottleneck.model import Classification, TestedCondition, TestedRule
from rpl_core.interfaces.rule import BottleneckLabel, Comparison, Condition, Rule
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness


def classify(kernel: str, figures: Mapping[str, Metric], rules: Sequence[Rule]) -> Classification:
    """Label ``kernel`` by ``rules`` (already in order of precedence). Deterministic."""
    tested = [_test(rule, figures) for rule in rules]
    winner = next((t for t in tested if t.holds), None)
    competitors = competitors_of(winner, tested)
    headroom = headroom_of(figures)
    return Classification(
        kernel=kernel,
        label=winner.rule.label if winner else BottleneckLabel.UNCLASSIFIED,
        confidence=confidence_of(winner, competitors),
        reason=_reason(winner, competitors),
        evidence=tuple(t for t in tested if t.holds),
        near_misses=tuple(t for t in tested if t.holds is False and is_near(t)),
        unknown=_unknown(tested),
        headroom_fraction=headroom.fraction,
        headroom_source=headroom.source,
        headroom_reason=headroom.reason,
    )


def _test(rule: Rule, figures: Mapping[str, Metric]) -> TestedRule:
    return TestedRule(rule, tuple(_test_condition(c, figures) for c in rule.conditions))


def _test_condition(condition: Condition, figures: Mapping[str, Metric]) -> TestedCondition:
    metric = figures.get(condition.quantity)
    if metric is None:
        metric = Metric.unknown("", f"no analyzer gives {condition.quantity}")
    return TestedCondition(condition, metric, _holds(condition, metric))


def _holds(condition: Condition, metric: Metric) -> bool | None:
    """Whether the condition holds whatever the true value is within the metric's bounds.

    A lower bound proves ">=" and refutes "<", but neither refutes ">=" nor proves "<".
    """
    if metric.value is None:
        return None
    low = condition.holds(metric.value)
    if metric.exactness is Exactness.INTERVAL and metric.upper is not None:
        high = condition.holds(metric.upper)
        return low if low == high else None
    if metric.exactness is Exactness.LOWER_BOUND:
        decided = metric.value >= condition.threshold
        return (condition.comparison is Comparison.AT_LEAST) if decided else None
    return low


def _reason(winner: TestedRule | None, competitors: Competitors) -> str:
    if winner is None:
        open_ones = _ids((*competitors.untested, *competitors.backed))
        if open_ones:
            return f"no rule is proven; not testable with this recording: {open_ones}"
        return "every rule was tested and none applies"
    parts = [winner.rule.explanation]
    if competitors.untested:
        parts.append(f"Stronger rules that this recording can't test: {_ids(competitors.untested)}.")
    parts.extend(
        f"{rule.id} can't be tested, but {rule.corroborates}, which looks at the same limit, was."
        for rule in (t.rule for t in competitors.backed)
    )
    if competitors.close:
        parts.append(f"A stronger rule narrowly fails by an inexact figure: {_ids(competitors.close)}.")
    notes = dict.fromkeys(t.metric.note for t in winner.conditions if t.metric.value is not None)
    parts.extend(note for note in notes if note and note.startswith(ABOVE_CEILING))
    return " ".join(parts)


def _ids(rules: Sequence[TestedRule]) -> str:
    return ", ".join(t.rule.id for t in rules)


def _unknown(tested: Sequence[TestedRule]) -> tuple[str, ...]:
    reasons: dict[str, str] = {}
    for rule in tested:
        for part in rule.conditions:
            if part.metric.value is None:
                reasons[part.condition.quantity] = part.metric.reason or "not recorded"
    return tuple(f"{quantity}: {reason}" for quantity, reason in sorted(reasons.items()))
