"""Test all rules against the figures of a kernel; the strongest rule that holds gives the label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rpl_core.analysis.bottleneck.model import Classification, Confidence, TestedCondition, TestedRule
from rpl_core.interfaces.rule import BottleneckLabel, Comparison, Condition, Rule
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness

#: A failed condition within this relative distance of its threshold makes a near-miss (chosen).
NEAR_MISS = 0.10


def classify(kernel: str, figures: Mapping[str, Metric], rules: Sequence[Rule]) -> Classification:
    """Label ``kernel`` by ``rules`` (already in order of precedence). Deterministic."""
    tested = [_test(rule, figures) for rule in rules]
    winner = next((t for t in tested if t.holds), None)
    stronger = tested if winner is None else tested[: tested.index(winner)]
    left_open = [t for t in stronger if t.holds is None]
    headroom, headroom_source = _headroom(figures)
    return Classification(
        kernel=kernel,
        label=winner.rule.label if winner else BottleneckLabel.UNCLASSIFIED,
        confidence=_confidence(winner, left_open),
        reason=_reason(winner, left_open),
        evidence=tuple(t for t in tested if t.holds),
        near_misses=tuple(t for t in tested if t.holds is False and _is_near(t)),
        unknown=_unknown(tested),
        headroom_fraction=headroom,
        headroom_source=headroom_source,
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


def _is_near(tested: TestedRule) -> bool:
    """Every failed condition is within ``NEAR_MISS`` of its threshold and the others hold."""
    failed = [t for t in tested.conditions if t.holds is False]
    open_ones = [t for t in tested.conditions if t.holds is None]
    return not open_ones and all(_distance(t) <= NEAR_MISS for t in failed)


def _distance(tested: TestedCondition) -> float:
    value, threshold = tested.metric.value, tested.condition.threshold
    if value is None:
        return float("inf")
    return abs(value - threshold) / abs(threshold) if threshold else abs(value)


def _confidence(winner: TestedRule | None, left_open: Sequence[TestedRule]) -> Confidence:
    if winner is None:
        return Confidence.NONE
    if left_open:
        return Confidence.LOW
    exact = all(t.metric.exactness is Exactness.EXACT for t in winner.conditions)
    return Confidence.HIGH if exact else Confidence.MEDIUM


def _reason(winner: TestedRule | None, left_open: Sequence[TestedRule]) -> str:
    untested = ", ".join(t.rule.id for t in left_open)
    if winner is None:
        if left_open:
            return f"no rule is proven; not testable with this recording: {untested}"
        return "every rule was tested and none applies"
    if left_open:
        return f"{winner.rule.explanation} Stronger rules that this recording can't test: {untested}."
    return winner.rule.explanation


def _unknown(tested: Sequence[TestedRule]) -> tuple[str, ...]:
    reasons: dict[str, str] = {}
    for rule in tested:
        for part in rule.conditions:
            if part.metric.value is None:
                reasons[part.condition.quantity] = part.metric.reason or "not recorded"
    return tuple(f"{quantity}: {reason}" for quantity, reason in sorted(reasons.items()))


def _headroom(figures: Mapping[str, Metric]) -> tuple[float | None, str | None]:
    """``1 - max(bandwidth / ceiling, flops / ceiling)`` from counters, else what a thread trace says.

    ``None`` when neither is known.
    """
    shares = [figures.get("hbm_utilization"), figures.get("compute_utilization")]
    values = [metric.value for metric in shares if metric is not None and metric.value is not None]
    if len(values) < len(shares):
        traced = figures.get("trace_headroom")
        return (None, None) if traced is None or traced.value is None else (traced.value, traced.source)
    return max(0.0, 1.0 - max(values)), "counters: 1 - max(bandwidth / ceiling, flops / ceiling)"
