"""How sure a label is, from the evidence that is present: see ``Confidence``."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from rpl_analysis.bottleneck.model import Confidence, TestedCondition, TestedRule
from rpl_core.model.origin import Exactness

#: A failed condition within this relative distance of its threshold makes a near-miss (chosen).
NEAR_MISS = 0.10


@attrs.frozen
class Competitors:
    """Rules stronger than the one that gave the label which might have given another label.

    ``untested`` lack a figure. So do ``backed``, but a rule that looks at the same limit was decided.
    ``close`` failed narrowly, by a figure that is not exact.
    """

    untested: tuple[TestedRule, ...]
    backed: tuple[TestedRule, ...]
    close: tuple[TestedRule, ...]


def competitors_of(winner: TestedRule | None, tested: Sequence[TestedRule]) -> Competitors:
    """``tested`` in order of precedence. A rule of the winner's own label can't change the label."""
    stronger = tested if winner is None else tested[: tested.index(winner)]
    rivals = [t for t in stronger if winner is None or t.rule.label != winner.rule.label]
    decided = {t.rule.id for t in tested if t.holds is not None}
    open_ones = [t for t in rivals if t.holds is None and t.rule.required]
    return Competitors(
        untested=tuple(t for t in open_ones if t.rule.corroborates not in decided),
        backed=tuple(t for t in open_ones if t.rule.corroborates in decided),
        close=tuple(t for t in rivals if t.holds is False and is_near(t) and not _exact(_failed(t))),
    )


def confidence_of(winner: TestedRule | None, competitors: Competitors) -> Confidence:
    """The confidence in the label of ``winner``."""
    if winner is None:
        return Confidence.NONE
    if competitors.untested:
        return Confidence.LOW
    unshaken = not competitors.backed and not competitors.close
    return Confidence.HIGH if unshaken and _exact(winner.conditions) else Confidence.MEDIUM


def is_near(tested: TestedRule) -> bool:
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
