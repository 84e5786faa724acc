"""Location, spread, corrections, drift and detectable changes against figures worked out by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpl_measure.rank_tests import (
    NoiseLevel,
    Requirement,
    holm_adjusted,
    mad,
    mann_whitney_test,
    median,
    minimum_detectable_change,
    noise_level,
    paired_precision,
    pairs_needed,
    pseudo_median,
    robust_cv,
    robust_sigma,
    runs_needed,
    shift,
    student_quantile,
    unpaired_precision,
)
from rpl_measure.sequential import paired_ratio_interval
from rpl_measure.series import find_drift


def test_location_and_spread_by_hand() -> None:
    values = [1.0, 2.0, 4.0, 7.0, 100.0]
    assert median(values) == 4
    assert mad(values) == 3  # deviations 3 2 0 3 96
    assert robust_cv(values) == pytest.approx(1.4826 * 3 / 4)
    assert robust_cv([5.0]) is None
    assert robust_cv([0.0, 0.0]) is None


def test_hodges_lehmann_by_hand() -> None:
    # Walsh averages of 1 2 6: 1 1.5 2 3.5 4 6, median 2.75.
    assert pseudo_median([1.0, 2.0, 6.0]) == 2.75
    # Differences of {1, 5} and {2, 9}: 1 8 -3 4, median 2.5.
    assert shift([1.0, 5.0], [2.0, 9.0]) == 2.5


def test_mostly_equal_values_fall_back_to_the_standard_deviation() -> None:
    assert robust_sigma([5.0, 5.0, 5.0, 9.0]) == 2.0  # mean 6, squares 1 1 1 9, 12 / 3
    assert robust_sigma([1.0]) is None
    assert robust_sigma([1.0, 1.0]) == 0.0


@pytest.mark.parametrize(
    ("cv", "level"),
    [
        (None, NoiseLevel.QUIET),
        (0.05, NoiseLevel.QUIET),
        (0.0501, NoiseLevel.NOISY),
        (0.10, NoiseLevel.NOISY),
        (0.1001, NoiseLevel.TOO_NOISY),
    ],
)
def test_noise_levels_at_their_boundaries(cv: float | None, level: NoiseLevel) -> None:
    assert noise_level(cv) is level


def test_holm_by_hand() -> None:
    # Sorted 0.01 0.02 0.04: times 3, 2, 1 -> 0.03 0.04 0.04.
    assert holm_adjusted([0.02, 0.01, 0.04]) == (0.04, 0.03, 0.04)
    assert holm_adjusted([]) == ()
    assert holm_adjusted([0.9, 0.8]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm_adjusted(p_values)
    assert all(a >= p and a <= 1 for a, p in zip(adjusted, p_values, strict=True))
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert all(adjusted[i] <= adjusted[j] for i, j in pairwise(order))


def test_rising_times_drift() -> None:
    found = find_drift([100.0, 101, 102, 103, 104, 105, 106, 107])
    assert found is not None
    assert found.rho == 1.0
    # z = sqrt(7): p = 2 (1 - Phi(2.6458)) = 0.00815
    assert found.p == pytest.approx(0.00815, abs=1e-5)
    assert found.flagged
    assert found.change == pytest.approx(105.5 / 101.5 - 1)


def test_spearman_agrees_with_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(3).integers(0, 8, 25).astype(float).tolist()
    found = find_drift(values)
    assert found is not None
    assert found.rho == pytest.approx(float(stats.spearmanr(values, range(25)).statistic))


def test_steady_or_few_times_do_not_drift() -> None:
    assert find_drift([1.0, 2.0, 3.0]) is None
    assert find_drift([7.0] * 9) is None


def test_bootstrap_is_repeatable_and_mirrors() -> None:
    ratios = np.random.default_rng(1).normal(0.05, 0.02, 15).tolist()
    low, high = paired_ratio_interval(ratios)
    assert (low, high) == paired_ratio_interval(ratios)
    assert low < math.exp(median(ratios)) < high
    mirrored = paired_ratio_interval([-r for r in ratios])
    assert mirrored == pytest.approx((1 / high, 1 / low), rel=1e-9)


def test_equal_ratios_give_a_point() -> None:
    assert paired_ratio_interval([math.log(1.25)] * 10) == pytest.approx((1.25, 1.25))


def test_student_quantiles_agree_with_tables() -> None:
    # Tables of Student's t: 0.995 at 18: 2.878, at 9: 3.250; 0.8 at 18: 0.862.
    assert student_quantile(0.995, 18) == pytest.approx(2.878, abs=0.002)
    assert student_quantile(0.995, 9) == pytest.approx(3.250, abs=0.02)
    assert student_quantile(0.8, 18) == pytest.approx(0.862, abs=0.001)


def test_minimum_detectable_change_by_hand() -> None:
    # alpha 0.01 two-sided, 18 degrees: t = 2.878; power 0.8: 0.862.
    # SE = 0.02 sqrt(2/10) sqrt(pi/3) = 0.009153.
    precision = unpaired_precision(0.02, 10, 10)
    assert precision.standard_error == pytest.approx(0.0091530, abs=1e-6)
    found = minimum_detectable_change(precision, Requirement(0.01, 0.0))
    assert found == pytest.approx(math.expm1(3.740 * 0.0091530), rel=1e-3)
    # With a limit of 10 % passing the limit is the harder part: ln 1.1 + 0.862 SE.
    found = minimum_detectable_change(precision, Requirement(0.01, math.log(1.1)))
    assert found == pytest.approx(math.expm1(math.log(1.1) + 0.862 * 0.0091530), rel=1e-4)


def test_runs_needed_by_hand() -> None:
    required = Requirement(0.01, math.log(1.03))
    # n = 16, 30 degrees: (2.750 + 1.310) 0.02 sqrt(2/16) sqrt(pi/3) = 0.02938 <= ln 1.03 = 0.02956.
    # n = 15, 28 degrees: (2.763 + 1.313) 0.02 sqrt(2/15) sqrt(pi/3) = 0.03046 is more.
    assert runs_needed(0.02, required) == 16
    # n = 10, 9 degrees: (3.250 + 1.383) 0.02 / sqrt(10) sqrt(pi/3) = 0.02998 is more, n = 11 suffices.
    assert pairs_needed(0.02, required) == 11
    assert runs_needed(0.0, required) == 5
    assert runs_needed(5.0, required) is None


@pytest.mark.parametrize("runs", [10, 20])
def test_a_change_of_the_detectable_size_is_found_four_times_in_five(runs: int) -> None:
    sigma, rng, found = 0.05, np.random.default_rng(runs), 0
    change = minimum_detectable_change(unpaired_precision(sigma, runs, runs), Requirement(0.01, 0.0))
    for _ in range(600):
        left = rng.normal(0, sigma, runs).tolist()
        right = rng.normal(math.log1p(change), sigma, runs).tolist()
        found += mann_whitney_test(left, right).p_two_sided <= 0.01
    assert found / 600 == pytest.approx(0.8, abs=0.08)


def test_a_pair_is_as_precise_as_two_samples_of_twice_the_runs() -> None:
    paired, unpaired = paired_precision(1.0, 10), unpaired_precision(1.0, 20, 20)
    assert paired.standard_error == pytest.approx(unpaired.standard_error)
