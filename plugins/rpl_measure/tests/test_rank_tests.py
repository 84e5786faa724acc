"""Exact rank tests: values counted by hand, enumeration as oracle for ties, scipy where it is installed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpl_measure import rank_tests
from rpl_measure.rank_tests import mann_whitney_test, shift_interval, signed_rank_interval, signed_rank_test

SMALL = st.integers(-4, 4).map(float)


def enumerated_signed_rank(values: list[float]) -> tuple[float, float]:
    """P(W >= w) and P(W <= w) over all sign patterns of the non-zero values, with mid-ranks."""
    used = [v for v in values if v]
    size = [abs(v) for v in used]
    ranks = [sum(s < a for s in size) + (sum(s == a for s in size) + 1) / 2 for a in size]
    observed = sum(r for r, v in zip(ranks, used, strict=True) if v > 0)
    sums = [
        sum(r for r, positive in zip(ranks, signs, strict=True) if positive)
        for signs in itertools.product((0, 1), repeat=len(used))
    ]
    return (
        sum(s >= observed for s in sums) / len(sums),
        sum(s <= observed for s in sums) / len(sums),
    )


def enumerated_mann_whitney(left: list[float], right: list[float]) -> tuple[float, float]:
    pooled = left + right
    ranks = [sum(s < a for s in pooled) + (sum(s == a for s in pooled) + 1) / 2 for a in pooled]
    observed = sum(ranks[len(left) :])
    sums = [sum(pick) for pick in itertools.combinations(ranks, len(right))]
    return (
        sum(s >= observed for s in sums) / len(sums),
        sum(s <= observed for s in sums) / len(sums),
    )


def test_all_positive_differences_give_the_least_p() -> None:
    # 10 positive differences: one of 2^10 patterns is as extreme.
    found = signed_rank_test([float(i) for i in range(1, 11)])
    assert found.rank_sum == 55
    assert found.p_greater == 1 / 1024
    assert found.p_less == 1.0
    assert found.p_two_sided == 2 / 1024


def test_signed_rank_by_hand() -> None:
    # |d| = 1 2 3 with signs - + +: W = 5; of 8 patterns W >= 5 in {5: 2+3, 6} = 2, W <= 5 in 7.
    found = signed_rank_test([-1.0, 2.0, 3.0])
    assert (found.p_greater, found.p_less) == (2 / 8, 7 / 8)


def test_zeros_are_dropped_and_counted() -> None:
    found = signed_rank_test([0.0, 1.0, 2.0, 0.0])
    assert (found.used, found.zeros) == (2, 2)
    assert found.p_greater == 1 / 4


def test_nothing_but_zeros_says_nothing() -> None:
    found = signed_rank_test([0.0, 0.0])
    assert (found.p_greater, found.p_less, found.p_two_sided, found.rank_sum) == (1.0, 1.0, 1.0, 0.0)


@given(st.lists(SMALL, min_size=1, max_size=8))
def test_signed_rank_with_ties_equals_enumeration(values: list[float]) -> None:
    found = signed_rank_test(values)
    if any(values):
        assert (found.p_greater, found.p_less) == pytest.approx(enumerated_signed_rank(values), abs=1e-12)


@given(st.lists(SMALL, min_size=1, max_size=6), st.lists(SMALL, min_size=1, max_size=6))
def test_mann_whitney_with_ties_equals_enumeration(left: list[float], right: list[float]) -> None:
    found = mann_whitney_test(left, right)
    assert (found.p_greater, found.p_less) == pytest.approx(enumerated_mann_whitney(left, right), abs=1e-12)


def test_mann_whitney_by_hand() -> None:
    # 3 against 3 completely separated: 1 of C(6, 3) = 20 choices.
    found = mann_whitney_test([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    assert found.u == 9
    assert found.p_greater == 1 / 20
    assert found.p_two_sided == 2 / 20


def test_three_runs_per_side_never_reach_one_percent() -> None:
    assert rank_tests.least_p_two_sided(3, 3) == 0.1
    assert rank_tests.fewest_values(0.01) == 5  # 2 / C(10, 5) = 0.0079
    assert rank_tests.fewest_values(0.05) == 4  # 2 / C(8, 4) = 0.029
    assert rank_tests.fewest_pairs(0.01) == 7  # 2^-7 = 0.0078
    assert rank_tests.fewest_pairs(0.5**10) == 10


@pytest.mark.parametrize("size", [3, 10, 25, 50, 51, 120])
def test_signed_rank_agrees_with_scipy(size: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(size)
    for move in (0.0, 0.3):
        values = rng.normal(move, 1, size).tolist()
        method = "exact" if size <= 50 else "approx"
        theirs = stats.wilcoxon(values, alternative="greater", method=method, correction=size > 50)
        assert signed_rank_test(values).p_greater == pytest.approx(float(theirs.pvalue), rel=1e-9)


@pytest.mark.parametrize(("m", "n"), [(3, 3), (10, 7), (30, 30), (40, 25), (60, 60)])
def test_mann_whitney_agrees_with_scipy(m: int, n: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(m * 100 + n)
    for move in (0.0, 0.4):
        left, right = rng.normal(0, 1, m).tolist(), rng.normal(move, 1, n).tolist()
        method = "exact" if m + n <= 60 else "asymptotic"
        theirs = stats.mannwhitneyu(right, left, alternative="greater", method=method)
        assert mann_whitney_test(left, right).p_greater == pytest.approx(float(theirs.pvalue), rel=1e-9)


def test_approximations_with_ties_agree_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(5)
    values = rng.integers(-6, 9, 90).astype(float).tolist()
    theirs = stats.wilcoxon(values, alternative="greater", method="approx", correction=True)
    assert signed_rank_test(values).p_greater == pytest.approx(float(theirs.pvalue), rel=1e-9)
    left, right = rng.integers(0, 9, 50).astype(float).tolist(), rng.integers(1, 9, 40).astype(float).tolist()
    theirs = stats.mannwhitneyu(right, left, alternative="greater", method="asymptotic")
    assert mann_whitney_test(left, right).p_greater == pytest.approx(float(theirs.pvalue), rel=1e-9)


def test_equal_values_everywhere_give_p_one() -> None:
    assert mann_whitney_test([5.0] * 40, [5.0] * 40).p_two_sided == 1.0
    assert mann_whitney_test([5.0] * 4, [5.0] * 4).p_two_sided == 1.0


def test_paired_interval_by_hand() -> None:
    # n = 6, confidence 0.95: P(W <= 0) = 1/64 <= 0.025, P(W <= 1) = 2/64 > 0.025, so one Walsh average is
    # cut from each end: the interval runs from the smallest to the largest value.
    assert signed_rank_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0], 0.95) == (1.0, 6.0)
    assert signed_rank_interval([1.0, 2.0, 3.0, 4.0, 5.0], 0.95) is None  # 2^-4 > 0.05


def test_unpaired_interval_by_hand() -> None:
    # 4 against 4 at 0.95: P(U <= 0) = 1/70 <= 0.025, P(U <= 1) = 2/70 > 0.025: all differences bound.
    assert shift_interval([0.0, 1.0, 2.0, 3.0], [10.0, 11.0, 12.0, 13.0], 0.95) == (7.0, 13.0)
    assert shift_interval([0.0, 1.0, 2.0], [10.0, 11.0, 12.0], 0.95) is None


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(8, 30), st.sampled_from([0.9, 0.95, 0.99]))
def test_an_interval_excludes_zero_exactly_when_its_test_rejects(seed: int, size: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(0, 1, size).tolist(), rng.normal(0.6, 1, size).tolist()
    differences = [b - a for a, b in zip(left, right, strict=True)]
    for interval, p in (
        (shift_interval(left, right, level), mann_whitney_test(left, right).p_two_sided),
        (signed_rank_interval(differences, level), signed_rank_test(differences).p_two_sided),
    ):
        if interval is None:
            assert p > 1 - level
        elif min(abs(interval[0]), abs(interval[1])) > 0:
            assert (interval[0] > 0 or interval[1] < 0) == (p <= 1 - level + 1e-12)


def test_intervals_cover_as_often_as_they_promise() -> None:
    rng = np.random.default_rng(11)
    covered = {"paired": 0, "unpaired": 0}
    for _ in range(800):
        left, right = rng.normal(0, 1, 12).tolist(), rng.normal(0.5, 1, 12).tolist()
        low, high = shift_interval(left, right, 0.95) or (math.nan, math.nan)
        covered["unpaired"] += low <= 0.5 <= high
        low, high = signed_rank_interval(right, 0.95) or (math.nan, math.nan)
        covered["paired"] += low <= 0.5 <= high
    # 95 % or slightly more (discrete); 3 standard errors of 800 trials are 2.3 %.
    assert all(0.927 <= count / 800 <= 0.985 for count in covered.values()), covered


def test_large_samples_use_the_normal_interval() -> None:
    values = np.random.default_rng(2).normal(1, 1, 200).tolist()
    low, high = signed_rank_interval(values, 0.95) or (0, 0)
    # sigma / sqrt(n) * sqrt(pi / 3) = 0.0724; the interval is about +-1.96 of it.
    assert high - low == pytest.approx(2 * 1.96 * 0.0724, rel=0.2)
    low, high = shift_interval(values[:100], values[100:], 0.95) or (0, 0)
    assert high - low == pytest.approx(2 * 1.96 * 0.0724 * 2, rel=0.25)
