"""How small a change the measurements at hand can still show, and how many runs a wanted one takes.

Shifts are differences of log times; ``sigma`` is the spread of one log time (or of one log ratio of a
pair). Standard errors are those of the normal mean times sqrt(pi / 3), because the rank tests need pi / 3
times the values of a t-test on normal data (Hodges and Lehmann, Ann. Math. Stat. 27, 1956). Quantiles are
Student's, since few runs make a normal one too hopeful.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from statistics import NormalDist

from rpl_core.values import frozen
from rpl_measure.rank_tests import fewest_pairs, fewest_values

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
    found = least + bisect_left(range(least, MOST_RUNS + 1), True, key=suffices)
    return found if found <= MOST_RUNS else None
