"""Interleaved pairs of base and new, judged as they come: in which order each runs, and when to stop.

``accept_v1`` and ``accept_v2`` (docs/reference/statistics.md) say when pairs prove a gain. The log ratios are
ln(base / new) of one statistic per process run, in the order of measurement. A look is taken after fixed
numbers of pairs; alpha is shared over those that may accept, so peeking costs nothing in error.
``AcceptRule()`` is ``accept_v1``; the optimizer measures by ``accept_v2``, which adds a screening and takes
the middle of the log ratios by Hodges and Lehmann.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

import numpy as np

from rpl_core.values import frozen
from rpl_measure.rank_tests import (
    Requirement,
    median,
    minimum_detectable_change,
    paired_precision,
    pseudo_median,
    robust_sigma,
    signed_rank_interval,
    signed_rank_test,
)

# Which side of a pair runs first: at random from a seed, and balanced in blocks.
#
# A fixed order such as base new, new base lets a disturbance that keeps time with it look like a gain. With
# a random order the sign of each difference is a coin's, whatever disturbs the runs: that is all that the
# signed-rank test needs (R. A. Fisher, The Design of Experiments, 1935, section 21). Blocks keep either
# order from being drawn far more often than the other, which would cost power where the second run of a
# pair is slower.


#: Pairs of a block, half of them with the new version first (chosen: smaller blocks tie the coins to each
#: other, and a disturbance in step with the block then counts twice).
BLOCK_PAIRS = 10


def new_first(seed: int, pairs: int) -> tuple[bool, ...]:
    """For each pair whether the new version runs before the base. Equal on every machine."""
    order: list[bool] = []
    for block in range(-(-pairs // BLOCK_PAIRS)):
        places = sorted(range(BLOCK_PAIRS), key=lambda place: _draw(seed, block, place))
        chosen = frozenset(places[: BLOCK_PAIRS // 2])
        order += [place in chosen for place in range(BLOCK_PAIRS)]
    return tuple(order[:pairs])


def _draw(seed: int, block: int, place: int) -> bytes:
    return hashlib.sha256(f"{seed}:{block}:{place}".encode()).digest()


# The rule, its looks, and the decision of each.


#: docs/reference/statistics.md, rule 1.
LOOKS = (10, 15, 20, 30)
#: Those of accept_v2, after its screening (same page, section 1.2).
LOOKS_V2 = (10, 15, 20, 30, 40)
SCREENING = (3,)
#: Least gain that a screening lets pass, as a part of the least gain.
SCREENING_PART = 0.05
#: Confidence of the interval that keeps makespan and critical path from regressing (rule 3).
GUARD_CONFIDENCE = 0.95


#: The median, or the median of all means of two (Hodges and Lehmann), which wastes less of normal noise.
Centre = Literal["median", "pseudo_median"]
#: Resamples (chosen: the ends of a 95 % interval then move by less than a tenth of its width).
RESAMPLES = 4000
SEED = 20_240_601


class Decision(str, Enum):
    CONTINUE = "continue"  # take more pairs
    ACCEPTED = "accepted"
    REJECTED = "rejected"  # futile: too small a gain to go on
    INCONCLUSIVE = "inconclusive"  # the last look did not decide


@frozen
class AcceptRule:
    """``alpha`` is 0.05 / candidates of the loop (5 candidates: 0.01). Gains are fractions of the time.

    A look of ``screening`` can only reject, by ``screening_gain``: it costs nothing in error. ``centre`` is
    how the middle of the log ratios is taken.
    """

    alpha: float = 0.01
    looks: tuple[int, ...] = LOOKS
    least_gain: float = 0.02
    futile_gain: float = 0.01
    most_guard_loss: float = 0.01
    screening: tuple[int, ...] = ()
    screening_gain: float = 0.0
    centre: Centre = "median"

    @property
    def alpha_per_look(self) -> float:
        return self.alpha / len(self.looks)

    def next_look(self, pairs: int) -> int | None:
        """The first look after ``pairs`` pairs; ``None`` after the last."""
        return next((look for look in self.all_looks if look > pairs), None)

    @property
    def all_looks(self) -> tuple[int, ...]:
        """Those that may accept and those of the screening, in order."""
        return tuple(sorted({*self.screening, *self.looks}))

    def middle(self, log_ratios: Sequence[float]) -> float:
        return median(log_ratios) if self.centre == "median" else pseudo_median(log_ratios)


@frozen
class Look:
    """What one look found. ``ratio`` is new / base time; ``blocked_by`` names guards that failed.

    ``median_log_ratio`` is the middle by which the rule decides.

    ``minimum_detectable_gain`` is the gain that the pairs so far would show with probability 0.8.
    """

    decision: Decision
    pairs: int
    p: float
    median_log_ratio: float
    ratio: float
    ratio_interval: tuple[float, float]
    minimum_detectable_gain: float | None
    blocked_by: tuple[str, ...] = ()


def take_look(log_ratios: Sequence[float], guards: Mapping[str, Sequence[float]], rule: AcceptRule) -> Look:
    """Judge the pairs so far, of which there must be as many as a look asks for.

    ``guards`` holds log ratios of what must not regress (makespan, critical path), one per pair.
    """
    p = signed_rank_test(log_ratios).p_greater
    middle = rule.middle(log_ratios)
    blocked = _failed_guards(guards, rule)
    low, high = paired_ratio_interval([-value for value in log_ratios])
    return Look(
        decision=_decide(len(log_ratios), p, middle, rule, blocked=bool(blocked)),
        pairs=len(log_ratios),
        p=p,
        median_log_ratio=middle,
        ratio=math.exp(-pseudo_median(log_ratios)),
        ratio_interval=(low, high),
        minimum_detectable_gain=_detectable_gain(log_ratios, rule),
        blocked_by=blocked,
    )


def last_look(
    log_ratios: Sequence[float], guards: Mapping[str, Sequence[float]], rule: AcceptRule
) -> Look | None:
    """The look that ended the measurement, found by taking them in turn; ``None`` before the first.

    Pairs behind that look change nothing: nobody may go on until chance decides otherwise. With too few pairs
    for the next look it is the last one that was taken, whose decision is then to continue.
    """
    reached: int | None = None
    for pairs in rule.all_looks:
        if pairs > len(log_ratios):
            break
        reached = pairs
        if decide(log_ratios[:pairs], _of_first_pairs(pairs, guards), rule) is not Decision.CONTINUE:
            break
    return (
        None if reached is None else take_look(log_ratios[:reached], _of_first_pairs(reached, guards), rule)
    )


def decide(log_ratios: Sequence[float], guards: Mapping[str, Sequence[float]], rule: AcceptRule) -> Decision:
    """The decision of ``take_look`` alone."""
    p, middle = signed_rank_test(log_ratios).p_greater, rule.middle(log_ratios)
    return _decide(len(log_ratios), p, middle, rule, blocked=bool(_failed_guards(guards, rule)))


def _of_first_pairs(pairs: int, guards: Mapping[str, Sequence[float]]) -> Mapping[str, Sequence[float]]:
    return {name: ratios[:pairs] for name, ratios in guards.items()}


def _failed_guards(guards: Mapping[str, Sequence[float]], rule: AcceptRule) -> tuple[str, ...]:
    return tuple(sorted(name for name, ratios in guards.items() if not holds(ratios, rule)))


def _decide(pairs: int, p: float, middle: float, rule: AcceptRule, *, blocked: bool) -> Decision:
    if pairs not in rule.looks:
        hopeless = middle < -math.log1p(-rule.screening_gain)
        return Decision.REJECTED if hopeless else Decision.CONTINUE
    if p < rule.alpha_per_look and middle > -math.log1p(-rule.least_gain) and not blocked:
        return Decision.ACCEPTED
    if middle < -math.log1p(-rule.futile_gain):
        return Decision.REJECTED
    return Decision.CONTINUE if rule.next_look(pairs) is not None else Decision.INCONCLUSIVE


def holds(log_ratios: Sequence[float], rule: AcceptRule) -> bool:
    """Whether a guard is proven not to lose: the upper end of its slow-down interval stays below 1 %."""
    interval = signed_rank_interval(log_ratios, GUARD_CONFIDENCE)
    return interval is not None and -interval[0] < math.log1p(rule.most_guard_loss)


def _detectable_gain(log_ratios: Sequence[float], rule: AcceptRule) -> float | None:
    sigma = robust_sigma(log_ratios)
    if sigma is None:
        return None
    # The test is one-sided: alpha per look here is two-sided 2 alpha there.
    required = Requirement(2 * rule.alpha_per_look, -math.log1p(-rule.least_gain))
    slowdown = minimum_detectable_change(paired_precision(sigma, len(log_ratios)), required)
    return 1 - 1 / (1 + slowdown)


def paired_ratio_interval(
    log_ratios: Sequence[float], confidence: float = 0.95, *, seed: int = SEED
) -> tuple[float, float]:
    """Percentile interval of exp(median(log ratio)) over resampled pairs.

    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. Needs at least one pair. An
    approximation that is too narrow below about ten pairs; verdicts use the exact rank interval instead.
    """
    numbers = np.asarray(log_ratios, dtype=np.float64)
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, numbers.size, (RESAMPLES, numbers.size))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.median(numbers[picks], axis=1), [tail, 1 - tail])
    return math.exp(float(low)), math.exp(float(high))
