"""What the order and the grouping of many times say: a drift, two modes, steps in a history."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from rpl_core.values import frozen
from rpl_measure.rank_tests import MAD_TO_SIGMA, doubled_ranks, median

# Drift of the times with their order, by Spearman's rank correlation.


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


# Whether the times of one program fall into two groups with nothing in between: a fast and a slow mode.
#
# Clocks that are lowered in some runs, or memory that lands elsewhere, make such times. Their median jumps
# between the modes, so it says little about either.


#: Fewer times say too little (chosen: those of the first look).
FEWEST_TIMES = 10
#: Least part of the times in either mode; fewer are outliers (chosen).
LEAST_SHARE = 0.15
#: Least distance of the medians, and least width of the empty space between the groups, in mean absolute
#: deviations from the medians of the groups (chosen: 1 % of steady normal series of 10 times show two modes,
#: fewer of longer ones; modes 10 % apart with noise of 1 % are found in 4 of 5 series of 10 times).
LEAST_DISTANCE = 8.0
LEAST_GAP = 4.0
#: Modes closer than this are rounding (chosen).
_LEAST_LOG_DISTANCE = 1e-3


@frozen
class Modes:
    """``slow_share`` of the times are in the slow mode, which is slower by ``slower_by`` (0.1: 10 %)."""

    slow_share: float
    slower_by: float


def find_modes(times: Sequence[float]) -> Modes | None:
    """The two modes of ``times`` (above 0), ``None`` where they are one group or too few."""
    count = len(times)
    if count < FEWEST_TIMES:
        return None
    logs = sorted(map(math.log, times))
    least = max(2, math.ceil(LEAST_SHARE * count))
    spread, cut = min((_spread_in_groups(logs, cut), cut) for cut in range(least, count - least + 1))
    distance = median(logs[cut:]) - median(logs[:cut])
    gap = logs[cut] - logs[cut - 1]
    if distance < max(LEAST_DISTANCE * spread, _LEAST_LOG_DISTANCE) or gap < LEAST_GAP * spread:
        return None
    return Modes((count - cut) / count, math.expm1(distance))


def _spread_in_groups(logs: Sequence[float], cut: int) -> float:
    """Mean distance of each time from the median of its group."""
    groups = (logs[:cut], logs[cut:])
    return sum(abs(value - median(group)) for group in groups for value in group) / len(logs)


# Steps in a series of times: the piecewise-constant fit with the least absolute error and few steps.
#
# The cost is the sum of |x - level| over all entries plus a penalty for each step. The fit is the global
# optimum, found by dynamic programming over the last step (Jackson et al., IEEE Signal Process. Lett. 12,
# 2005, with absolute instead of squared errors so that one outlier makes no step). asv's step detection has
# the same shape; the penalty here comes from the noise of neighbouring entries.


#: Penalty of a step in units of sigma * ln(n) (chosen: a steady series then shows a step in about 1 of 100
#: cases, see benchmarks/acceptance_statistics.py).
STEP_PENALTY = 4.0
#: Fewer entries say too little about the noise (chosen).
FEWEST_ENTRIES = 5
#: Two entries make a level; only the newest level may rest on one.
_LEAST_LEVEL = 2
#: Relative steps below this are rounding, not noise (chosen: 10 ns in 100 us).
_LEAST_NOISE = 1e-4


@frozen
class Level:
    """Entries ``first`` .. ``last`` (inclusive) around ``value``, their median."""

    first: int
    last: int
    value: float

    @property
    def entries(self) -> int:
        return self.last - self.first + 1


def find_levels(values: Sequence[float]) -> tuple[Level, ...]:
    """The levels of ``values`` (log times in order) from the oldest to the newest; one level is no step.

    Series of fewer than 5 entries are one level.
    """
    count = len(values)
    if count < FEWEST_ENTRIES:
        return (Level(0, count - 1, median(values)),) if count else ()
    penalty = STEP_PENALTY * max(entry_noise(values), _LEAST_NOISE) * math.log(count)
    best = [0.0] + [math.inf] * count
    came_from = [0] * (count + 1)
    for first in range(count):
        if math.isinf(best[first]):
            continue
        entry = best[first] + (penalty if first else 0.0)
        for offset, error in enumerate(_errors_from(values, first)):
            end = first + offset + 1
            if (offset + 1 >= _LEAST_LEVEL or end == count) and entry + error < best[end]:
                best[end], came_from[end] = entry + error, first
    return _levels(values, came_from)


def _levels(values: Sequence[float], came_from: Sequence[int]) -> tuple[Level, ...]:
    levels, end = [], len(values)
    while end:
        first = came_from[end]
        levels.append(Level(first, end - 1, median(values[first:end])))
        end = first
    return tuple(reversed(levels))


def entry_noise(values: Sequence[float]) -> float:
    """Spread of one entry, from differences of neighbours, which few steps hardly touch."""
    changes = [abs(b - a) for a, b in pairwise(values)]
    return MAD_TO_SIGMA * median(changes) / math.sqrt(2)


def _errors_from(values: Sequence[float], first: int) -> list[float]:
    """Least absolute errors of values[first : first + 1], values[first : first + 2], ..."""
    ordered: list[float] = []
    errors, error = [], 0.0
    for value in values[first:]:
        # The error grows by the distance to the old median interval: one binary insertion per entry.
        size = len(ordered)
        if size:
            low, high = ordered[(size - 1) // 2], ordered[size // 2]
            error += max(low - value, value - high, 0.0)
        insort(ordered, value)
        errors.append(error)
    return errors
