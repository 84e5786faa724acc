"""The interval of a share: Wilson's formula against its definition, the design effect against hand counts."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from rpl_pcsampling.counting import MIN_SAMPLES, Ticks, shares_of, wilson


def score_ends(hits, samples):
    """The shares that a score test at 95 % just does not reject, by bisection: Wilson's definition."""
    observed, z = hits / samples, NormalDist().inv_cdf(0.975)

    def rejected(share):
        return abs(observed - share) > z * math.sqrt(share * (1 - share) / samples)

    ends = []
    for outer in (0.0, 1.0):
        inner = observed
        for _ in range(100):
            middle = (outer + inner) / 2
            outer, inner = (middle, inner) if rejected(middle) else (outer, middle)
        ends.append(inner)
    return ends


@pytest.mark.parametrize(("hits", "samples"), [(10, 100), (0, 20), (20, 20), (1, 1), (3, 4000)])
def test_wilson_holds_the_shares_that_a_score_test_does_not_reject(hits, samples):
    found = wilson(np.array([hits / samples]), np.array([float(samples)]))
    assert [float(end[0]) for end in found] == pytest.approx(score_ends(hits, samples), abs=1e-9)


def test_the_fewest_samples_tell_a_half_to_ten_points():
    half = [float(0.5 - wilson(np.array([0.5]), np.array([float(n)]))[0][0]) for n in (60, MIN_SAMPLES)]
    assert half[0] > 0.1
    assert half[1] < 0.1


def spread(samples_per_tick, ticks):
    return Ticks.of(np.repeat(np.arange(ticks), samples_per_tick))


def test_samples_at_moments_of_their_own_are_independent():
    classes = np.array([0] * 30 + [1] * 70)
    shares = shares_of(classes, 2, spread(1, 100))
    low, high = wilson(np.array([0.3, 0.7]), np.array([100.0, 100.0]))
    # n / (n - 1) of the variance over clusters is all that differs.
    assert shares.low == pytest.approx(low, abs=2e-3)
    assert shares.high == pytest.approx(high, abs=2e-3)
    assert shares.samples.tolist() == [30, 70]


def test_samples_of_one_moment_that_agree_count_as_one():
    """20 ticks of 10 samples, all of a tick at one instruction: 20 samples' worth, by hand.

    Share 1/2, residuals of each tick +-5, variance 20/19 * 20 * 25 / 200^2 = 0.013158; of 200 independent
    samples 0.25 / 200 = 0.00125; the effect is 10.53, at most the mean cluster of 10.
    """
    classes = np.repeat([0, 1] * 10, 10)
    shares = shares_of(classes, 2, spread(10, 20))
    low, high = wilson(np.array([0.5]), np.array([20.0]))
    assert float(shares.low[0]) == pytest.approx(float(low[0]))
    assert float(shares.high[0]) == pytest.approx(float(high[0]))


def test_the_design_effect_of_mixed_moments_by_hand():
    """Ticks (3 of class 0, 1 other) and (1, 3), twice: share 1/2, residuals +-1.

    Variance 4/3 * 4 / 16^2 = 0.0208333, of independent samples 0.25 / 16 = 0.015625: effect 4/3.
    """
    classes = np.array([0, 0, 0, 1, 0, 1, 1, 1] * 2)
    shares = shares_of(classes, 2, spread(4, 4))
    low, _ = wilson(np.array([0.5]), np.array([16 / (4 / 3)]))
    assert float(shares.low[0]) == pytest.approx(float(low[0]))


def test_one_moment_tells_next_to_nothing():
    shares = shares_of(np.zeros(500, np.int64), 1, spread(500, 1))
    assert float(shares.low[0]) == pytest.approx(score_ends(1, 1)[0])


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """4000 recordings of 150 samples in 30 ticks; within a tick, samples repeat one of the tick's own."""
    random = np.random.default_rng(31)
    ticks, per_tick, truth = 30, 5, 0.3
    clusters = spread(per_tick, ticks)
    covered = naive = 0
    for _ in range(4000):
        of_tick = random.random(ticks) < truth
        alone = random.random((ticks, per_tick)) < truth
        same = random.random((ticks, per_tick)) < 0.5
        classes = np.where(np.where(same, of_tick[:, None], alone), 0, 1).reshape(-1)
        shares = shares_of(classes, 2, clusters)
        covered += bool(shares.low[0] <= truth <= shares.high[0])
        low, high = wilson(shares.share[:1], np.array([float(ticks * per_tick)]))
        naive += bool(low[0] <= truth <= high[0])
    assert covered / 4000 > 0.93
    assert naive / 4000 < 0.90  # what independent samples would claim
