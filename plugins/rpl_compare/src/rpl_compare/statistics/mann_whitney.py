"""The Mann-Whitney U test and the interval that belongs to it, for two independent samples.

Ties share ranks. Up to 60 values together the null distribution of the rank sum is counted exactly over
all ways to choose the first sample; beyond, a normal approximation with tie and continuity correction
takes over (Hollander and Wolfe, Nonparametric Statistical Methods, section 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from rpl_compare.statistics.ranks import doubled_ranks, sized_subset_sum_counts, tie_sizes
from rpl_compare.statistics.robust import pairwise_differences
from rpl_core.values import frozen

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
        greater, less = _approximate(u, m, n, tie_sizes(pooled).tolist())
        return MannWhitneyTest(u, greater, less)
    if np.unique(pooled).size == m + n:  # without ties the distribution is known from m and n alone
        tail = upper_tail(m, n)
        return MannWhitneyTest(u, tail[int(u)], tail[m * n - int(u)])
    counts = sized_subset_sum_counts(ranks, n)
    ways = float(math.comb(m + n, n))
    return MannWhitneyTest(
        u=u,
        p_greater=float(counts[doubled_sum:].sum()) / ways,
        p_less=float(counts[: doubled_sum + 1].sum()) / ways,
    )


def _approximate(u: float, m: int, n: int, ties: Sequence[int]) -> tuple[float, float]:
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
def upper_tail(m: int, n: int) -> tuple[float, ...]:
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
    tails = np.asarray(upper_tail(m, n))[::-1]
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
