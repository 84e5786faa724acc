"""Whether the times of one program fall into two groups with nothing in between: a fast and a slow mode.

Clocks that are lowered in some runs, or memory that lands elsewhere, make such times. Their median jumps
between the modes, so it says little about either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rpl_compare.statistics.robust import median
from rpl_core.values import frozen

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
_RESOLUTION = 1e-3


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
    spread, cut = min((_spread(logs, cut), cut) for cut in range(least, count - least + 1))
    distance = median(logs[cut:]) - median(logs[:cut])
    gap = logs[cut] - logs[cut - 1]
    if distance < max(LEAST_DISTANCE * spread, _RESOLUTION) or gap < LEAST_GAP * spread:
        return None
    return Modes((count - cut) / count, math.expm1(distance))


def _spread(logs: Sequence[float], cut: int) -> float:
    """Mean distance of each time from the median of its group."""
    groups = (logs[:cut], logs[cut:])
    return sum(abs(value - median(group)) for group in groups for value in group) / len(logs)
