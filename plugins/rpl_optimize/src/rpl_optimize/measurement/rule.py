"""Which gain of a kernel counts: ``accept_v2`` with limits from noise and from the share of the path."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rpl_measure.estimates import robust_sigma
from rpl_measure.sequential import LOOKS, LOOKS_V2, SCREENING, SCREENING_PART, AcceptRule

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Error of a whole loop, shared by its candidates (docs/reference/statistics.md, rule 3).
LOOP_ALPHA = 0.05
#: Never accept less: code placement shifts a build by an offset that no repetition shows (same page).
LEAST_FLOOR = 0.02
#: Most that makespan and critical path may lose (rule 3).
MOST_GUARD_LOSS = 0.01
#: Futility as a part of the least gain: 1 % for 2 %, as in rules 3 and 4.
FUTILE_PART = 0.5
#: Bounds of the fresh measurement, and the standard errors that it must tell apart (chosen).
FEWEST_FRESH_PAIRS, MOST_FRESH_PAIRS = 5, 15
_FRESH_ERRORS = 1.9
#: Asymptotic cost of a median against a mean of normal values: sqrt(pi / 2).
_MEDIAN_COST = math.sqrt(math.pi / 2)


def noise_floor(base_cv: float | None, pairs: int = LOOKS_V2[-1]) -> float:
    """The least gain that ``pairs`` pairs can tell from noise, as a fraction; at least 0.02.

    Twice the standard error of the median log ratio of unchanged pairs: sqrt(2) CV from two independent
    times, over sqrt(pairs), times sqrt(pi / 2) for a median. The number of pairs is that of the last look:
    earlier looks have to be significant too, which needs a larger gain by itself. ``base_cv`` is the robust
    CV of the kernel's time over the baseline's own runs (A/A); ``None``, unknown, gives 0.02.
    """
    if base_cv is None:
        return LEAST_FLOOR
    resolution = 2 * math.sqrt(2) * base_cv * _MEDIAN_COST / math.sqrt(pairs)
    return max(LEAST_FLOOR, -math.expm1(-resolution))


def rule_for(
    min_improvement: float,
    share_of_path: float | None,
    candidates: int,
    base_cv: float | None = None,
    *,
    looks: tuple[int, ...] = LOOKS_V2,
) -> AcceptRule | None:
    """The rule for candidates of one kernel; ``None`` when no gain of it can be enough.

    ``min_improvement`` is the least gain of the application's path that is wanted (0.02: 2 %). A kernel with
    ``share_of_path`` of it gains the path at most its own gain times that share, so it has to gain
    ``min_improvement / share_of_path``, and never less than ``noise_floor``. An unknown share counts as 1,
    which asks the least of the kernel; the guards on the application's times hold all the same. ``alpha`` is
    0.05 shared by all ``candidates`` of the session.
    """
    share = 1.0 if share_of_path is None else min(share_of_path, 1.0)
    if share <= 0:
        return None
    least = max(noise_floor(base_cv, looks[-1]), min_improvement / share)
    if least >= 1:
        return None
    return AcceptRule(
        alpha=LOOP_ALPHA / max(candidates, 1),
        looks=looks,
        least_gain=least,
        futile_gain=FUTILE_PART * least,
        most_guard_loss=MOST_GUARD_LOSS,
        screening=tuple(pairs for pairs in SCREENING if pairs < looks[0]),
        screening_gain=SCREENING_PART * least,
        centre="pseudo_median",
    )


def fresh_pairs(rule: AcceptRule, log_ratios: Sequence[float]) -> int:
    """Pairs of the fresh measurement, from the spread of those that decided.

    So many that a true gain of ``least_gain`` comes out above the futile one nearly always: the distance
    between the two is 1.9 standard errors of the middle; from 5 to 15 pairs. ``accept_v1`` takes 10.
    """
    if not rule.screening:
        return LOOKS[0]
    sigma = robust_sigma(log_ratios)
    distance = math.log1p(-rule.futile_gain) - math.log1p(-rule.least_gain)
    if sigma is None or distance <= 0:
        return MOST_FRESH_PAIRS
    wanted = (_FRESH_ERRORS * sigma / distance) ** 2
    return min(MOST_FRESH_PAIRS, max(FEWEST_FRESH_PAIRS, math.ceil(min(wanted, MOST_FRESH_PAIRS))))
