"""Rank tests and the intervals that belong to them: two independent samples, and paired differences.

Rank tests ask nothing of how times are distributed. Few values are counted exactly over all arrangements,
beyond that a normal approximation with tie and continuity correction takes over (Hollander and Wolfe,
Nonparametric Statistical Methods, sections 3.1 and 4.1). One family of tests is corrected by Holm.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What a few repeated times say by themselves: their middle and spread, and whether that allows a verdict.
#
# Location and spread are those that a few outliers can't move: median, median absolute deviation (MAD),
# robust coefficient of variation, and the centres of Hodges and Lehmann. All arguments are plain sequences of
# numbers.

#: 1 / the 0.75 quantile of the normal distribution: makes the MAD of normal data estimate its sigma.
MAD_TO_SIGMA = 1.4826


def median(values: Sequence[float]) -> float:
    """Median of at least one value."""
    return float(np.median(np.asarray(values, dtype=np.float64)))


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, unscaled."""
    numbers = np.asarray(values, dtype=np.float64)
    return float(np.median(np.abs(numbers - np.median(numbers))))


def robust_cv(values: Sequence[float]) -> float | None:
    """1.4826 * MAD / median (docs/reference/statistics.md, rule 6); ``None`` below 2 values or median 0."""
    middle = median(values) if len(values) > 1 else 0.0
    return MAD_TO_SIGMA * mad(values) / middle if middle > 0 else None


def robust_sigma(values: Sequence[float]) -> float | None:
    """Spread of single values: 1.4826 * MAD, or the sample standard deviation where the MAD is zero.

    More than half of the values are then equal. ``None`` below 2 values.
    """
    if len(values) < 2:
        return None
    scaled = MAD_TO_SIGMA * mad(values)
    return scaled if scaled > 0 else float(np.std(np.asarray(values, dtype=np.float64), ddof=1))


def walsh_averages(values: Sequence[float]) -> NDArray[np.float64]:
    """All (x_i + x_j) / 2 with i <= j, sorted: n (n + 1) / 2 numbers."""
    numbers = np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(numbers.size)
    return np.sort((numbers[first] + numbers[second]) / 2)


def pairwise_differences(left: Sequence[float], right: Sequence[float]) -> NDArray[np.float64]:
    """All right_j - left_i, sorted: m * n numbers."""
    first, second = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    return np.sort((second[None, :] - first[:, None]).ravel())


def pseudo_median(values: Sequence[float]) -> float:
    """Hodges-Lehmann centre of one sample: the median of the Walsh averages (J. Am. Stat. Assoc., 1963)."""
    return float(np.median(walsh_averages(values)))


def shift(left: Sequence[float], right: Sequence[float]) -> float:
    """Hodges-Lehmann shift from ``left`` to ``right``: the median of all pairwise differences."""
    return float(np.median(pairwise_differences(left, right)))


# The noise gate: below which spread a series of times supports a verdict at all.


#: docs/reference/statistics.md, rule 6.
WARN_CV = 0.05
REFUSE_CV = 0.10


class NoiseLevel(str, Enum):
    """``noisy`` times are warned about, ``too_noisy`` ones are refused unless the user insists."""

    QUIET = "quiet"
    NOISY = "noisy"
    TOO_NOISY = "too_noisy"


def noise_level(cv: float | None) -> NoiseLevel:
    """Level of a robust CV; an unknown one is quiet, since nothing speaks against it."""
    if cv is None or cv <= WARN_CV:
        return NoiseLevel.QUIET
    return NoiseLevel.NOISY if cv <= REFUSE_CV else NoiseLevel.TOO_NOISY


# Ranks with ties shared, as whole numbers, and how rank sums are distributed by chance.


def doubled_ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Twice the mid-rank of each value (n,), counted from 1: ties share their mean rank, without halves."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    first = last - counts + 1
    return (first + last)[inverse.reshape(-1)].astype(np.int64)


def tie_sizes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """How often each distinct value occurs."""
    return np.unique(values, return_counts=True)[1].astype(np.int64)


def subset_sum_counts(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Entry s: how many of the 2^n subsets of ``weights`` sum to s. Exact up to n = 62."""
    counts = np.zeros(int(weights.sum()) + 1, dtype=np.int64)
    counts[0] = 1
    for weight in weights:
        shifted = np.zeros_like(counts)
        shifted[weight:] = counts[: counts.size - weight]
        counts = counts + shifted
    return counts


def sized_subset_sum_counts(weights: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Entry s: how many subsets of exactly ``size`` of the ``weights`` sum to s. Exact up to n = 62."""
    counts = np.zeros((size + 1, int(weights.sum()) + 1), dtype=np.int64)
    counts[0, 0] = 1
    for weight in weights:
        counts[1:, weight:] += counts[:-1, : counts.shape[1] - weight].copy()
    found: NDArray[np.int64] = counts[size]
    return found


# The Mann-Whitney U test, for two independent samples. Ties share ranks. Up to 60 values together the null
# distribution of the rank sum is counted over all ways to choose the first sample.


#: C(60, 30) = 1.2e17 subsets are exact in 64 bits.
EXACT_VALUES = 60


@frozen
class MannWhitneyTest:
    """``p_greater`` is small when ``right`` tends to be larger than ``left``, ``p_less`` when smaller.

    ``u`` counts the pairs in which ``right`` is larger; a tie counts one half.
    """

    u: float
    p_greater: float
    p_less: float

    @property
    def p_two_sided(self) -> float:
        return min(1.0, 2 * min(self.p_greater, self.p_less))


def mann_whitney_test(left: Sequence[float], right: Sequence[float]) -> MannWhitneyTest:
    """Test whether ``right`` is distributed like ``left``. Each needs at least one value."""
    pooled = np.concatenate([np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)])
    m, n = len(left), len(right)
    ranks = doubled_ranks(pooled)
    doubled_sum = int(ranks[m:].sum())
    u = doubled_sum / 2 - n * (n + 1) / 2
    if m + n > EXACT_VALUES:
        greater, less = _normal_tails_of_u(u, m, n, tie_sizes(pooled).tolist())
        return MannWhitneyTest(u, greater, less)
    if np.unique(pooled).size == m + n:  # without ties the distribution is known from m and n alone
        tail = u_tail(m, n)
        return MannWhitneyTest(u, tail[int(u)], tail[m * n - int(u)])
    counts = sized_subset_sum_counts(ranks, n)
    ways = float(math.comb(m + n, n))
    return MannWhitneyTest(
        u=u,
        p_greater=float(counts[doubled_sum:].sum()) / ways,
        p_less=float(counts[: doubled_sum + 1].sum()) / ways,
    )


def _normal_tails_of_u(u: float, m: int, n: int, ties: Sequence[int]) -> tuple[float, float]:
    total = m + n
    shared = sum(t**3 - t for t in ties) / (total * (total - 1))
    variance = m * n / 12 * (total + 1 - shared)
    if variance <= 0:  # all values are equal
        return 1.0, 1.0
    deviation, normal = math.sqrt(variance), NormalDist()
    return (
        1 - normal.cdf((u - m * n / 2 - 0.5) / deviation),
        normal.cdf((u - m * n / 2 + 0.5) / deviation),
    )


@lru_cache(maxsize=256)
def u_tail(m: int, n: int) -> tuple[float, ...]:
    """P(U >= u) for u = 0 .. m * n without ties; m + n up to 60."""
    counts = sized_subset_sum_counts(np.arange(1, m + n + 1, dtype=np.int64), n)
    counts = counts[n * (n + 1) // 2 : n * (n + 1) // 2 + m * n + 1]
    return tuple((np.cumsum(counts[::-1])[::-1] / float(math.comb(m + n, n))).tolist())


def shift_interval(
    left: Sequence[float], right: Sequence[float], confidence: float
) -> tuple[float, float] | None:
    """The shifts from ``left`` to ``right`` that the two-sided test does not reject at 1 - ``confidence``.

    ``None`` when so few values can't exclude anything: 2 / C(m + n, n) > 1 - confidence.
    """
    differences = pairwise_differences(left, right)
    left_out = _differences_outside(len(left), len(right), (1 - confidence) / 2)
    if left_out < 1:
        return None
    return float(differences[left_out - 1]), float(differences[differences.size - left_out])


def _differences_outside(m: int, n: int, tail: float) -> int:
    """The largest k with P(U <= k - 1) <= ``tail``: the k-th difference from each end bounds."""
    if m + n > EXACT_VALUES:
        deviation = math.sqrt(m * n * (m + n + 1) / 12)
        return math.floor(m * n / 2 + NormalDist().inv_cdf(tail) * deviation)
    tails = np.asarray(u_tail(m, n))[::-1]
    return int(np.searchsorted(tails, tail, side="right"))


def least_p_two_sided(m: int, n: int) -> float:
    """The smallest two-sided p that m and n values can give: 2 / C(m + n, n)."""
    return min(1.0, 2 / math.comb(m + n, n))


def fewest_values(alpha: float) -> int:
    """The fewest values per side whose two-sided p can reach ``alpha``."""
    count = 1
    while least_p_two_sided(count, count) > alpha:
        count += 1
    return count


# Wilcoxon's signed-rank test, for paired differences. Zero differences carry no sign and are dropped
# (Wilcoxon's own treatment); tied differences share ranks, and the null distribution is that of the ranks
# as they are. Up to 50 differences it is counted by integer dynamic programming over the 2^n sign patterns.


#: 2^50 sign patterns and all their partial sums are exact in 64 bits.
EXACT_PAIRS = 50


@frozen
class SignedRankTest:
    """``p_greater`` is small when the differences tend to be positive, ``p_less`` when negative."""

    used: int
    zeros: int
    rank_sum: float  # of the positive differences
    p_greater: float
    p_less: float

    @property
    def p_two_sided(self) -> float:
        return min(1.0, 2 * min(self.p_greater, self.p_less))


def signed_rank_test(differences: Sequence[float]) -> SignedRankTest:
    """Test whether ``differences`` are symmetric around zero. Nothing but zeros gives p = 1."""
    numbers = np.asarray(differences, dtype=np.float64)
    signed = numbers[numbers != 0]
    zeros = int(numbers.size - signed.size)
    if signed.size == 0:
        return SignedRankTest(0, zeros, 0.0, 1.0, 1.0)
    ranks = doubled_ranks(np.abs(signed))
    doubled_sum = int(ranks[signed > 0].sum())
    if signed.size > EXACT_PAIRS:
        greater, less = _normal_tails_of_rank_sum(
            doubled_sum / 2, int(signed.size), tie_sizes(np.abs(signed)).tolist()
        )
        return SignedRankTest(int(signed.size), zeros, doubled_sum / 2, greater, less)
    counts = subset_sum_counts(ranks)
    patterns = 2.0 ** int(signed.size)
    return SignedRankTest(
        used=int(signed.size),
        zeros=zeros,
        rank_sum=doubled_sum / 2,
        p_greater=float(counts[doubled_sum:].sum() / patterns),
        p_less=float(counts[: doubled_sum + 1].sum() / patterns),
    )


def _normal_tails_of_rank_sum(rank_sum: float, used: int, ties: Sequence[int]) -> tuple[float, float]:
    mean = used * (used + 1) / 4
    variance = used * (used + 1) * (2 * used + 1) / 24 - sum(t**3 - t for t in ties) / 48
    deviation = math.sqrt(variance)
    normal = NormalDist()
    greater = 1 - normal.cdf((rank_sum - mean - 0.5) / deviation)
    less = normal.cdf((rank_sum - mean + 0.5) / deviation)
    return greater, less


@lru_cache(maxsize=64)
def signed_rank_tail(pairs: int) -> tuple[float, ...]:
    """P(rank sum >= w) for w = 0 .. n (n + 1) / 2 without ties; ``pairs`` up to 50."""
    counts = subset_sum_counts(np.arange(1, pairs + 1, dtype=np.int64))
    return tuple((np.cumsum(counts[::-1])[::-1] / 2.0**pairs).tolist())


def signed_rank_interval(differences: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """The centres that the two-sided test does not reject at 1 - ``confidence``, by Walsh averages.

    ``None`` when so few differences can't exclude anything: 2^(1-n) > 1 - confidence.
    """
    tail = (1 - confidence) / 2
    averages = walsh_averages(differences)
    left_out = _averages_outside(len(differences), tail)
    if left_out < 1:
        return None
    return float(averages[left_out - 1]), float(averages[averages.size - left_out])


def _averages_outside(pairs: int, tail: float) -> int:
    """The largest k with P(rank sum <= k - 1) <= ``tail``: the k-th average from each end bounds."""
    if pairs > EXACT_PAIRS:
        deviation = math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
        return math.floor(pairs * (pairs + 1) / 4 + NormalDist().inv_cdf(tail) * deviation)
    # By symmetry P(rank sum <= k - 1) = P(rank sum >= n (n + 1) / 2 - k + 1).
    tails = np.asarray(signed_rank_tail(pairs))[::-1]
    return int(np.searchsorted(tails, tail, side="right"))


def fewest_pairs(alpha: float) -> int:
    """The fewest pairs whose one-sided p can reach ``alpha``: the least p is 2^-n."""
    return max(1, math.ceil(-math.log2(alpha) - 1e-12))


# Many tests at once: Holm's step-down correction (Scand. J. Statist. 6, 1979), valid under dependence.


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the given order: reject those up to alpha, and all errors together stay below it.

    The k-th smallest of K (k = 0, 1, ...) is multiplied by K - k; the result never falls and never exceeds 1.
    """
    order = sorted(range(len(p_values)), key=lambda i: (p_values[i], i))
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - position)))
        adjusted[index] = highest
    return tuple(adjusted)


# How small a change the measurements at hand can still show, and how many runs a wanted one takes.
#
# Shifts are differences of log times; ``sigma`` is the spread of one log time (or of one log ratio of a
# pair). Standard errors are those of the normal mean times sqrt(pi / 3), because the rank tests need pi / 3
# times the values of a t-test on normal data (Hodges and Lehmann, Ann. Math. Stat. 27, 1956). Quantiles are
# Student's, since few runs make a normal one too hopeful.

#: Probability that a change of the minimum detectable size is found (chosen; the usual convention).
POWER = 0.8
#: More runs than this are not worth proposing (chosen).
MOST_RUNS = 1000
_RANK_TEST_COST = math.sqrt(math.pi / 3)


@frozen
class Requirement:
    """What a verdict asks for: ``alpha`` two-sided, and an estimate beyond ``threshold`` (a log ratio)."""

    alpha: float
    threshold: float


@frozen
class Precision:
    """How well a shift is known: its standard error and the degrees of freedom behind it."""

    standard_error: float
    degrees: int

    def margin(self, probability: float) -> float:
        """``standard_error`` times Student's quantile."""
        return self.standard_error * student_quantile(probability, self.degrees)


def unpaired_precision(sigma: float, left: int, right: int) -> Precision:
    """Of the shift between two independent samples."""
    return Precision(sigma * math.sqrt(1 / left + 1 / right) * _RANK_TEST_COST, max(left + right - 2, 1))


def paired_precision(sigma: float, pairs: int) -> Precision:
    """Of the centre of paired differences."""
    return Precision(sigma / math.sqrt(pairs) * _RANK_TEST_COST, max(pairs - 1, 1))


def student_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t by its expansion around the normal one.

    Abramowitz and Stegun, 26.7.5, to the second order: within 1 % for p up to 0.995 from 9 degrees on.
    """
    z = NormalDist().inv_cdf(probability)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2


def minimum_detectable_change(precision: Precision, required: Requirement) -> float:
    """The true slow-down (0.05 is 5 %) that is found with probability 0.8.

    It must be significant, (t(1 - alpha/2) + t(0.8)) SE, and its estimate must pass the threshold,
    threshold + t(0.8) SE; the larger of the two counts (Cohen, Statistical Power Analysis, ch. 2).
    """
    of_power = precision.margin(POWER)
    significant = precision.margin(1 - required.alpha / 2) + of_power
    return math.exp(max(significant, required.threshold + of_power)) - 1


def runs_needed(sigma: float, required: Requirement) -> int | None:
    """Runs per side after which an unchanged kernel is called unchanged with probability 0.8.

    The interval at 1 - alpha around an estimate of about zero must lie within the threshold:
    (t(1 - alpha/2) + t(0.9)) SE <= threshold. ``None`` above 1000 runs.
    """
    return _fewest(
        lambda n: _is_precise(unpaired_precision(sigma, n, n), required), fewest_values(required.alpha)
    )


def pairs_needed(sigma: float, required: Requirement) -> int | None:
    """As ``runs_needed``, for pairs whose log ratios spread by ``sigma``."""
    return _fewest(
        lambda n: _is_precise(paired_precision(sigma, n), required), fewest_pairs(required.alpha / 2)
    )


def _is_precise(precision: Precision, required: Requirement) -> bool:
    reach = precision.margin(1 - required.alpha / 2) + precision.margin((1 + POWER) / 2)
    return reach <= required.threshold


def _fewest(suffices: Callable[[int], bool], least: int) -> int | None:
    """The fewest runs from ``least`` on that suffice; more always suffice too."""
    runs = least + bisect_left(range(least, MOST_RUNS + 1), True, key=suffices)
    return runs if runs <= MOST_RUNS else None
