"""``analysis.json`` from the classifier's results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_analysis.contracts.analysis import ConditionEvidence, KernelAnalysis, KernelLabels, RuleEvidence
from rpl_analysis.interfaces import label_name

if TYPE_CHECKING:
    from rpl_analysis.advice.model import NextSteps
    from rpl_analysis.bottleneck.model import Classification, TestedCondition, TestedRule
    from rpl_analysis.contracts.roofline import KernelRooflineDoc
    from rpl_analysis.runtime.model import KernelTime


def kernel_labels(
    times: Mapping[str, KernelTime],
    classifications: Mapping[str, Classification],
    rooflines: Mapping[str, KernelRooflineDoc],
    weights: Mapping[str, float],
    steps: NextSteps | None = None,
    *,
    extensions: Mapping[str, Any],
) -> KernelLabels:
    """One entry per classified kernel, in descending order of time."""
    kernels = tuple(
        _kernel(
            time,
            classifications[name],
            rooflines.get(name),
            weights.get(name),
            steps,
        )
        for name, time in times.items()
        if name in classifications
    )
    return KernelLabels(
        kernels=kernels,
        next_steps=steps.priorities if steps else (),
        extensions=extensions,
    )


def _kernel(
    time: KernelTime,
    classification: Classification,
    roofline: KernelRooflineDoc | None,
    weight: float | None,
    steps: NextSteps | None,
) -> KernelAnalysis:
    then = classification.label_by_active_lanes
    return KernelAnalysis(
        kernel=time.name,
        time_ms=time.total_ns / 1e6 if time.max_ns > 0 else None,
        operational_intensity=roofline.operational_intensity.value if roofline else None,
        roofline_position=roofline.position.value if roofline else None,
        critical_path_score=weight,
        bottleneck=label_name(classification.label),
        confidence=classification.confidence,
        reason=classification.reason,
        evidence=tuple(_rule(tested) for tested in classification.evidence),
        near_misses=tuple(_rule(tested) for tested in classification.near_misses),
        unknown=classification.unknown,
        headroom_fraction=classification.headroom_fraction,
        headroom_source=classification.headroom_source,
        headroom_reason=classification.headroom_reason,
        next_steps=steps.kernels.get(time.name, ()) if steps else (),
        remedy=steps.remedies.get(time.name) if steps else None,
        label_by_active_lanes=label_name(then) if then else None,
    )


def _rule(tested: TestedRule) -> RuleEvidence:
    return RuleEvidence(
        rule=tested.rule.id,
        label=label_name(tested.rule.label),
        explanation=tested.rule.explanation,
        conditions=tuple(_condition(part) for part in tested.conditions),
    )


def _condition(tested: TestedCondition) -> ConditionEvidence:
    metric = tested.metric
    return ConditionEvidence(
        quantity=tested.condition.quantity,
        comparison=tested.condition.comparison,
        threshold=tested.condition.threshold,
        source=tested.condition.source,
        value=metric.value,
        holds=tested.holds,
        exactness=metric.exactness,
        upper=metric.upper,
        formula=metric.formula,
        note=metric.note,
    )
