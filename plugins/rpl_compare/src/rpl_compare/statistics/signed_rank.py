"""Wilcoxon's signed-rank test and the interval that belongs to it, for paired differences.

Zero differences carry no sign and are dropped (Wilcoxon's own treatment); tied differences share ranks,
and the null distribution is that of the ranks as they are. Up to 50 differences it is counted exactly by
integer dynamic programming over the 2^n sign patterns; beyond, a normal approximation with tie and
continuity correction takes over (Hollander and Wolfe, Nonparametric Statistical Methods, section 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from rpl_compare.statistics.ranks import doubled_ranks, subset_sum_counts, tie_sizes
from rpl_compare.statistics.robust import walsh_averages
from rpl_core.values import frozen

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
        greater, less = _approximate(doubled_sum / 2, int(signed.size), tie_sizes(np.abs(signed)).tolist())
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


def _approximate(rank_sum: float, used: int, ties: Sequence[int]) -> tuple[float, float]:
    mean = used * (used + 1) / 4
    variance = used * (used + 1) * (2 * used + 1) / 24 - sum(t**3 - t for t in ties) / 48
    deviation = math.sqrt(variance)
    normal = NormalDist()
    greater = 1 - normal.cdf((rank_sum - mean - 0.5) / deviation)
    less = normal.cdf((rank_sum - mean + 0.5) / deviation)
    return greater, less


@lru_cache(maxsize=64)
def upper_tail(pairs: int) -> tuple[float, ...]:
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
    tails = np.asarray(upper_tail(pairs))[::-1]
    return int(np.searchsorted(tails, tail, side="right"))


def fewest_pairs(alpha: float) -> int:
    """The fewest pairs whose one-sided p can reach ``alpha``: the least p is 2^-n."""
    return max(1, math.ceil(-math.log2(alpha) - 1e-12))
