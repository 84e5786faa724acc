"""Whether repeated times drift with their order: Spearman's rank correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from rpl_compare.statistics.ranks import doubled_ranks
from rpl_compare.statistics.robust import median
from rpl_core.values import frozen

#: Chosen, as for the verdicts: a flag in one of a hundred steady series.
DRIFT_P = 0.01


@frozen
class Drift:
    """``rho`` in -1..1; ``change`` is the median of the later half over that of the earlier half, minus 1."""

    rho: float
    p: float
    change: float

    @property
    def flagged(self) -> bool:
        return self.p < DRIFT_P


def find_drift(values: Sequence[float]) -> Drift | None:
    """Drift of ``values`` in the order of measurement; ``None`` below 4 values or when all are equal.

    p is two-sided from z = rho * sqrt(n - 1), the normal limit (Kendall and Gibbons, Rank Correlation
    Methods, chapter 4): a flag for people, not a verdict.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size < 4 or np.all(numbers == numbers[0]):
        return None
    ranks = doubled_ranks(numbers).astype(np.float64)
    order = np.arange(numbers.size, dtype=np.float64)
    rho = float(np.corrcoef(ranks, order)[0, 1])
    z = abs(rho) * math.sqrt(numbers.size - 1)
    half = numbers.size // 2
    early, late = median(numbers[:half].tolist()), median(numbers[-half:].tolist())
    return Drift(rho=rho, p=2 * (1 - NormalDist().cdf(z)), change=late / early - 1 if early else 0.0)
