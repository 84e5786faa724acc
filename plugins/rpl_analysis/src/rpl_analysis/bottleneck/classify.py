"""Test all rules against the figures of a kernel; the strongest rule that holds gives the label.

How sure that label is follows from the evidence that is present: see ``Confidence``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rpl_analysis.bottleneck.ceilings import ABOVE_CEILING
from rpl_analysis.bottleneck.model import Classification, Confidence, TestedCondition, TestedRule
from rpl_analysis.counters.sums_of_quantities import is_open_above
from rpl_analysis.interfaces import BottleneckLabel, Comparison, Condition, Rule
from rpl_core.model.metric import Exactness, Metric
from rpl_core.values import frozen

#: A failed condition within this relative distance of its threshold makes a near-miss (chosen).
NEAR_MISS = 0.10
_FROM_COUNTERS = "counters: 1 - max(bandwidth / ceiling, flops / ceiling)"
#: Ends of an interval that are farther apart than this leave the headroom unknown (chosen).
_WIDEST_INTERVAL = 0.01


def classify(kernel: str, figures: Mapping[str, Metric], rules: Sequence[Rule]) -> Classification:
    """Label ``kernel`` by ``rules`` (already in order of precedence). Deterministic."""
    tested = [_test(rule, figures) for rule in rules]
    winner = next((t for t in tested if t.holds), None)
    competitors = _competitors_of(winner, tested)
    headroom = headroom_of(figures)
    return Classification(
        kernel=kernel,
        label=winner.rule.label if winner else BottleneckLabel.UNCLASSIFIED,
        confidence=_confidence_of(winner, competitors),
        reason=_reason(winner, competitors),
        evidence=tuple(t for t in tested if t.holds),
        near_misses=tuple(t for t in tested if t.holds is False and _is_near(t)),
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

    A lower bound proves ">=" and refutes "<", but neither refutes ">=" nor proves "<"; so does an estimate of
    a part, as far as estimates prove anything.
    """
    if metric.value is None:
        return None
    low = condition.holds(metric.value)
    if metric.exactness is Exactness.INTERVAL and metric.upper is not None:
        high = condition.holds(metric.upper)
        return low if low == high else None
    if is_open_above(metric):
        decided = metric.value >= condition.threshold
        return (condition.comparison is Comparison.AT_LEAST) if decided else None
    return low


def _reason(winner: TestedRule | None, competitors: _Competitors) -> str:
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


@frozen
class _Competitors:
    """Rules stronger than the one that gave the label which might have given another label.

    ``untested`` lack a figure. So do ``backed``, but a rule that looks at the same limit was decided.
    ``close`` failed narrowly, by a figure that is not exact.
    """

    untested: tuple[TestedRule, ...]
    backed: tuple[TestedRule, ...]
    close: tuple[TestedRule, ...]


def _competitors_of(winner: TestedRule | None, tested: Sequence[TestedRule]) -> _Competitors:
    """``tested`` in order of precedence. A rule of the winner's own label can't change the label."""
    stronger = tested if winner is None else tested[: tested.index(winner)]
    rivals = [t for t in stronger if winner is None or t.rule.label != winner.rule.label]
    decided = {t.rule.id for t in tested if t.holds is not None}
    open_ones = [t for t in rivals if t.holds is None and t.rule.required]
    return _Competitors(
        untested=tuple(t for t in open_ones if t.rule.corroborates not in decided),
        backed=tuple(t for t in open_ones if t.rule.corroborates in decided),
        close=tuple(t for t in rivals if t.holds is False and _is_near(t) and not _exact(_failed(t))),
    )


def _confidence_of(winner: TestedRule | None, competitors: _Competitors) -> Confidence:
    """The confidence in the label of ``winner``."""
    if winner is None:
        return Confidence.NONE
    if competitors.untested:
        return Confidence.LOW
    unshaken = not competitors.backed and not competitors.close
    return Confidence.HIGH if unshaken and _exact(winner.conditions) else Confidence.MEDIUM


def _is_near(tested: TestedRule) -> bool:
    """Every failed condition is within ``NEAR_MISS`` of its threshold and the others hold."""
    if any(t.holds is None for t in tested.conditions):
        return False
    return all(_distance(t) <= NEAR_MISS for t in _failed(tested))


def _failed(tested: TestedRule) -> list[TestedCondition]:
    return [t for t in tested.conditions if t.holds is False]


def _exact(conditions: Sequence[TestedCondition]) -> bool:
    return all(t.metric.exactness is Exactness.EXACT for t in conditions)


def _distance(tested: TestedCondition) -> float:
    """Relative distance of the value from its threshold; of the nearer end of an interval."""
    metric, threshold = tested.metric, tested.condition.threshold
    if metric.value is None:
        return float("inf")
    ends = [metric.value] if metric.upper is None else [metric.value, metric.upper]
    nearest = min(abs(end - threshold) for end in ends)
    return nearest / abs(threshold) if threshold else nearest


@frozen
class Headroom:
    """``fraction`` with its source, or ``None`` with the reason."""

    fraction: float | None
    source: str | None = None
    reason: str | None = None


def headroom_of(figures: Mapping[str, Metric]) -> Headroom:
    """From counters when they decide it, else from the thread trace, else unknown.

    A share of which only a lower bound is known would overstate the headroom, and one above its ceiling is
    no share of it: both leave it unknown.
    """
    shares = {name: figures.get(name) for name in ("hbm_utilization", "compute_utilization")}
    problem = next((why for name, share in shares.items() if (why := _unusable(name, share))), None)
    known = [share for share in shares.values() if share is not None and share.value is not None]
    if problem is None:
        low, high = max(_low(share) for share in known), max(_high(share) for share in known)
        if high - low <= _WIDEST_INTERVAL:
            return Headroom(1.0 - high, _source(known))
        problem = f"the nearer ceiling is reached to between {low:.0%} and {high:.0%}"
    traced = figures.get("trace_headroom")
    if traced is not None and traced.value is not None:
        return Headroom(traced.value, traced.source)
    return Headroom(None, reason=problem)


def _unusable(name: str, share: Metric | None) -> str | None:
    if share is None or share.value is None:
        return f"{name} is unknown"
    if _high(share) > 1.0:
        return f"{name} is {_high(share):.0%} of its ceiling, so the figure is no share of it"
    if is_open_above(share):
        return f"{name} is known as a lower bound only" if not share.partial else f"{name} is known in part"
    return None


def _source(shares: list[Metric]) -> str:
    estimated = any(share.exactness is Exactness.ESTIMATE for share in shares)
    return f"{_FROM_COUNTERS}{' (an estimate)' if estimated else ''}"


def _low(share: Metric) -> float:
    return share.value or 0.0


def _high(share: Metric) -> float:
    return _low(share) if share.upper is None else share.upper
