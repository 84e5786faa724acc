"""The verdict rule case by case, at its boundaries, and mirrored."""

from __future__ import annotations

import math

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpl_compare.comparison.judging import (
    CompareRule,
    Evidence,
    Method,
    Verdict,
    excludes_regression,
    judge,
    paired_evidence,
    unpaired_evidence,
)
from rpl_measure.samples import Sample

RULE = CompareRule()  # 3 %, alpha 0.01
METHOD = Method(paired=False, alpha=0.01)
LIMIT = math.log(1.03)

MIRROR = {
    Verdict.REGRESSED: Verdict.IMPROVED,
    Verdict.IMPROVED: Verdict.REGRESSED,
    Verdict.UNCHANGED: Verdict.UNCHANGED,
    Verdict.INCONCLUSIVE: Verdict.INCONCLUSIVE,
}


def evidence(shift: float, low: float | None, high: float | None, p: float, **more: object) -> Evidence:
    interval = None if low is None or high is None else (low, high)
    values = {"least_p": 1e-5, "cv": 0.01, **more}
    return Evidence(shift=shift, interval=interval, p=p, **values)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (evidence(0.05, 0.04, 0.06, 1e-5), Verdict.REGRESSED),
        (evidence(-0.05, -0.06, -0.04, 1e-5), Verdict.IMPROVED),
        (evidence(0.0, -0.01, 0.01, 0.9), Verdict.UNCHANGED),
        # significantly slower, but surely within the limit: allowed
        (evidence(0.02, 0.01, 0.025, 1e-5), Verdict.UNCHANGED),
        # the estimate is within the limit, the interval is not
        (evidence(0.02, 0.01, 0.04, 1e-5), Verdict.INCONCLUSIVE),
        # the estimate is beyond the limit, but not significant
        (evidence(0.05, -0.01, 0.11, 0.08), Verdict.INCONCLUSIVE),
        # beyond the limit and significant, although the interval reaches back below it
        (evidence(0.05, 0.01, 0.09, 0.001), Verdict.REGRESSED),
    ],
)
def test_each_verdict(found: Evidence, expected: Verdict) -> None:
    assert judge(found, found.p, RULE, METHOD, 1)[0] is expected


@pytest.mark.parametrize(
    ("shift", "p", "expected"),
    [
        (LIMIT * 1.001, 0.01, Verdict.REGRESSED),
        (LIMIT * 0.999, 0.01, Verdict.INCONCLUSIVE),
        (LIMIT * 1.001, 0.0101, Verdict.INCONCLUSIVE),
        (-LIMIT * 1.001, 0.01, Verdict.IMPROVED),
        (-LIMIT * 0.999, 0.01, Verdict.INCONCLUSIVE),
    ],
)
def test_boundaries_of_limit_and_alpha(shift: float, p: float, expected: Verdict) -> None:
    found = evidence(shift, shift - 0.02, shift + 0.02, p)
    assert judge(found, p, RULE, METHOD, 1)[0] is expected


@pytest.mark.parametrize(("half", "expected"), [(0.999, Verdict.UNCHANGED), (1.001, Verdict.INCONCLUSIVE)])
def test_unchanged_needs_the_whole_interval_within_the_limits(half: float, expected: Verdict) -> None:
    found = evidence(0.0, -half * LIMIT, half * LIMIT, 0.9)
    assert judge(found, found.p, RULE, METHOD, 1)[0] is expected


def test_three_runs_per_side_are_too_few_and_it_is_said_how_many_are_needed() -> None:
    samples = Sample((100.0, 101.0, 102.0)), Sample((200.0, 201.0, 202.0))
    found = unpaired_evidence(*samples, RULE, METHOD)
    verdict, reason = judge(found, found.p, RULE, METHOD, 1)
    assert verdict is Verdict.INCONCLUSIVE
    assert "least p 0.1" in reason
    assert "at least 5 runs per side" in reason
    _, reason = judge(found, found.p, RULE, METHOD, 8)
    assert "among 8 comparisons" in reason
    assert "at least 7 runs per side" in reason


def test_so_few_pairs_are_counted_in_pairs() -> None:
    method = Method(paired=True, alpha=0.01 / 4)
    samples = Sample((100.0, 101.0, 102.0)), Sample((200.0, 201.0, 202.0))
    found = paired_evidence(*samples, RULE, method)
    # One-sided 0.00125: 2^-10 = 0.00098 is the first below.
    assert "at least 10 pairs" in judge(found, found.p, RULE, method, 1)[1]


def test_noise_above_ten_percent_is_refused_unless_forced() -> None:
    found = evidence(0.05, 0.04, 0.06, 1e-5, cv=0.1001)
    verdict, reason = judge(found, found.p, RULE, METHOD, 1)
    assert verdict is Verdict.INCONCLUSIVE
    assert "10.0%" in reason
    assert judge(found, found.p, attrs.evolve(RULE, forced=True), METHOD, 1)[0] is Verdict.REGRESSED
    assert judge(attrs.evolve(found, cv=0.1), found.p, RULE, METHOD, 1)[0] is Verdict.REGRESSED


def test_a_change_beyond_the_noise_itself_needs_no_quiet() -> None:
    far = evidence(0.7, 0.5, 0.9, 1e-5, cv=0.3)
    assert judge(far, far.p, RULE, METHOD, 1)[0] is Verdict.REGRESSED
    faster = evidence(-0.7, -0.9, -0.5, 1e-5, cv=0.3)
    assert judge(faster, faster.p, RULE, METHOD, 1)[0] is Verdict.IMPROVED
    near = evidence(0.7, math.log(1.29), 0.9, 1e-5, cv=0.3)
    assert judge(near, near.p, RULE, METHOD, 1)[0] is Verdict.INCONCLUSIVE


def test_drift_within_a_side_refuses_the_unpaired_verdict_only() -> None:
    rising = Sample(tuple(100.0 + i for i in range(12)))
    flat = Sample(tuple(110.0 + (0.1 if i % 2 else -0.1) for i in range(12)))
    found = unpaired_evidence(rising, flat, RULE, METHOD)
    assert found.drift_matters
    verdict, reason = judge(found, found.p, RULE, METHOD, 1)
    assert verdict is Verdict.INCONCLUSIVE
    assert "drift" in reason
    both = Sample(tuple(1.05 * value * (1 + 0.001 * (-1) ** i) for i, value in enumerate(rising.values_ns)))
    paired = paired_evidence(rising, both, RULE, Method(paired=True, alpha=0.01))
    assert paired.base_drift is not None
    assert paired.base_drift.flagged
    assert judge(paired, paired.p, RULE, Method(paired=True, alpha=0.01), 1)[0] is Verdict.REGRESSED


def test_a_drift_too_small_to_matter_is_let_pass() -> None:
    slight = Sample(tuple(100.0 + 0.05 * i for i in range(12)))
    found = unpaired_evidence(slight, slight, RULE, METHOD)
    assert found.base_drift is not None
    assert found.base_drift.flagged
    assert not found.drift_matters


def test_a_sample_with_a_problem_has_no_verdict_and_says_why() -> None:
    found = unpaired_evidence(
        Sample((1.0,), problem="only 1 of 5 runs hold it"), Sample((1.0,)), RULE, METHOD
    )
    verdict, reason = judge(found, None, RULE, METHOD, 1)
    assert verdict is Verdict.INCONCLUSIVE
    assert reason == "BASE: only 1 of 5 runs hold it"


def test_identical_times_in_enough_runs_are_unchanged() -> None:
    same = Sample((100.0,) * 6)
    found = unpaired_evidence(same, same, RULE, METHOD)
    assert judge(found, found.p, RULE, METHOD, 1)[0] is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("found", "excluded"),
    [
        (evidence(0.0, -0.01, 0.01, 0.9), True),
        (evidence(-0.029, -0.04, -0.02, 1e-5), True),  # unchanged or improved: open, but surely not slower
        (evidence(0.0, -0.01, LIMIT * 0.999, 0.9), True),
        (evidence(0.0, -0.01, LIMIT * 1.001, 0.9), False),
        (evidence(0.0, None, None, 0.9), False),
        (evidence(0.0, -0.01, 0.01, 0.9, cv=0.2), False),
    ],
)
def test_a_gate_may_pass_only_below_the_upper_limit(found: Evidence, excluded: bool) -> None:
    assert excludes_regression(found, RULE) is excluded


TIMES = st.lists(st.floats(50, 200), min_size=1, max_size=14)


@settings(max_examples=200)
@given(TIMES, TIMES, st.sampled_from([0.01, 0.05]), st.booleans())
def test_swapping_the_sides_mirrors_the_verdict(
    left: list[float], right: list[float], alpha: float, forced: bool
) -> None:
    rule, method = CompareRule(alpha=alpha, forced=forced), Method(paired=False, alpha=alpha)
    base, new = Sample(tuple(left)), Sample(tuple(right))
    there = unpaired_evidence(base, new, rule, method)
    back = unpaired_evidence(new, base, rule, method)
    assert back.p == pytest.approx(there.p)
    verdict = judge(there, there.p, rule, method, 1)[0]
    assert judge(back, back.p, rule, method, 1)[0] is MIRROR[verdict]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(90, 120), st.floats(90, 120)), min_size=1, max_size=20))
def test_swapping_paired_sides_mirrors_the_verdict(pairs: list[tuple[float, float]]) -> None:
    method = Method(paired=True, alpha=0.01)
    base, new = Sample(tuple(a for a, _ in pairs)), Sample(tuple(b for _, b in pairs))
    there = paired_evidence(base, new, RULE, method)
    back = paired_evidence(new, base, RULE, method)
    verdict = judge(there, there.p, RULE, method, 1)[0]
    assert judge(back, back.p, RULE, method, 1)[0] is MIRROR[verdict]
