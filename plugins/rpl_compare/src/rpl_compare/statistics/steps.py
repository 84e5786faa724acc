"""Steps in a series of times: the piecewise-constant fit with the least absolute error and few steps.

The cost is the sum of |x - level| over all entries plus a penalty for each step. The fit is the global
optimum, found by dynamic programming over the last step (Jackson et al., IEEE Signal Process. Lett. 12,
2005, with absolute instead of squared errors so that one outlier makes no step). asv's step detection has
the same shape; the penalty here comes from the noise of neighbouring entries.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from itertools import pairwise

from rpl_compare.statistics.robust import MAD_TO_SIGMA, median
from rpl_core.values import frozen

#: Penalty of a step in units of sigma * ln(n) (chosen: a steady series then shows a step in about 1 of 100
#: cases, see benchmarks/acceptance_statistics.py).
STEP_PENALTY = 4.0
#: Fewer entries say too little about the noise (chosen).
FEWEST_ENTRIES = 5
#: Two entries make a level; only the newest level may rest on one.
_LEAST_LEVEL = 2
#: Relative steps below this are rounding, not noise (chosen: 10 ns in 100 us).
_RESOLUTION = 1e-4


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
    penalty = STEP_PENALTY * max(entry_noise(values), _RESOLUTION) * math.log(count)
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
