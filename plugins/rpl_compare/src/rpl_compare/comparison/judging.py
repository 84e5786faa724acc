"""Judge all items of two sides together: gate, families of tests, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from rpl_compare.comparison.model import (
    CompareRule,
    Evidence,
    ItemKey,
    Judged,
    Kind,
    Method,
    RunObservation,
    Sample,
)
from rpl_compare.comparison.samples import samples_of
from rpl_compare.comparison.verdict import excludes_regression, judge
from rpl_compare.statistics.holm import holm_adjusted
from rpl_compare.statistics.minimum_detectable import minimum_detectable_change, pairs_needed, runs_needed

if TYPE_CHECKING:
    from rpl_compare.comparison.evidence import TakeEvidence


@attrs.frozen
class Question:
    """What is asked of both sides. ``kernels`` are names of which a kernel must contain one; none: all.

    With names given only those kernels decide; otherwise the application and every kernel with at least
    ``rule.min_share`` of the kernel time on one side does.
    """

    rule: CompareRule
    method: Method
    take_evidence: TakeEvidence
    kernels: tuple[str, ...] = ()
    incomparable: Mapping[ItemKey, str] = attrs.field(factory=dict)


@attrs.frozen
class _Item:
    key: ItemKey
    gated: bool
    base: Sample
    new: Sample
    evidence: Evidence


def judge_items(
    base: Sequence[RunObservation], new: Sequence[RunObservation], question: Question
) -> tuple[Judged, ...]:
    """Every item that both sides have: application times first, then kernels by descending time.

    Gated and other items are two families: small kernels don't cost the large ones their significance.
    """
    left, right = samples_of(base), samples_of(new)
    keys = [key for key in left if key in right and _is_asked_for(key, question.kernels)]
    items = [_item(key, left[key], right[key], question) for key in keys]
    judged = [*_family((i for i in items if i.gated), question)]
    judged += _family((i for i in items if not i.gated), question)
    order = {key: number for number, key in enumerate(left)}
    return tuple(sorted(judged, key=lambda item: _position(item, order)))


def _is_asked_for(key: ItemKey, kernels: tuple[str, ...]) -> bool:
    return key.kind is not Kind.KERNEL or not kernels or matches(key.name, kernels)


def matches(name: str, wanted: Iterable[str]) -> bool:
    """Whether a kernel is meant by one of the given names or parts of names."""
    return any(part in name for part in wanted)


def _item(key: ItemKey, base: Sample, new: Sample, question: Question) -> _Item:
    reason = question.incomparable.get(key)
    evidence = (
        question.take_evidence(base, new, question.rule, question.method)
        if reason is None
        else Evidence(problem=reason)
    )
    return _Item(key, _is_gated(key, base, new, question), base, new, evidence)


def _is_gated(key: ItemKey, base: Sample, new: Sample, question: Question) -> bool:
    if question.kernels:
        return key.kind is Kind.KERNEL
    if key in question.incomparable:
        return False
    return key.kind is not Kind.KERNEL or max(base.share or 0.0, new.share or 0.0) >= question.rule.min_share


def _family(items: Iterable[_Item], question: Question) -> Iterable[Judged]:
    members = list(items)
    testable = [item for item in members if item.evidence.p is not None]
    adjusted = holm_adjusted([item.evidence.p or 0.0 for item in testable])
    p_of = {item.key: p for item, p in zip(testable, adjusted, strict=True)}
    return [_judged(item, p_of.get(item.key), len(testable), question) for item in members]


def _judged(item: _Item, p_adjusted: float | None, family: int, question: Question) -> Judged:
    evidence, method = item.evidence, question.method
    verdict, reason = judge(evidence, p_adjusted, question.rule, method, family)
    required = method.requirement(question.rule, family)
    precision = evidence.precision if evidence.least_p * family <= method.alpha else None
    detectable = None if precision is None else minimum_detectable_change(precision, required)
    needed = pairs_needed if method.paired else runs_needed
    return Judged(
        key=item.key,
        gated=item.gated,
        base=item.base,
        new=item.new,
        evidence=evidence,
        verdict=verdict,
        reason=reason,
        excludes_regression=excludes_regression(evidence, question.rule),
        p_adjusted=p_adjusted,
        minimum_detectable_change=detectable,
        runs_needed=None if evidence.sigma is None else needed(evidence.sigma, required),
    )


def _position(item: Judged, order: Mapping[ItemKey, int]) -> tuple[int, float, int]:
    if item.key.kind is not Kind.KERNEL:
        return (0, 0.0, order[item.key])
    share = max(item.base.share or 0.0, item.new.share or 0.0)
    return (1, -share, order[item.key])
