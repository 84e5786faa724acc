"""How small a change the measurements at hand can still show, and how many runs a wanted one takes.

Shifts are differences of log times; ``sigma`` is the spread of one log time (or of one log ratio of a
pair). Standard errors are those of the normal mean times sqrt(pi / 3), because the rank tests need pi / 3
times the values of a t-test on normal data (Hodges and Lehmann, Ann. Math. Stat. 27, 1956).
"""

from __future__ import annotations

import math
from statistics import NormalDist

import attrs

from rpl_core.statistics.mann_whitney import fewest_values
from rpl_core.statistics.signed_rank import fewest_pairs

#: Probability that a change of the minimum detectable size is found (chosen; the usual convention).
POWER = 0.8
#: More runs than this are not worth proposing (chosen).
MOST_RUNS = 1000
_RANK_TEST_COST = math.sqrt(math.pi / 3)


@attrs.frozen
class Requirement:
    """What a verdict asks for: ``alpha`` two-sided, and an estimate beyond ``threshold`` (a log ratio)."""

    alpha: float
    threshold: float

    @property
    def z_significant(self) -> float:
        return NormalDist().inv_cdf(1 - self.alpha / 2)


def standard_error_unpaired(sigma: float, left: int, right: int) -> float:
    """Of the shift between two independent samples."""
    return sigma * math.sqrt(1 / left + 1 / right) * _RANK_TEST_COST


def standard_error_paired(sigma: float, pairs: int) -> float:
    """Of the centre of paired differences."""
    return sigma / math.sqrt(pairs) * _RANK_TEST_COST


def minimum_detectable_change(standard_error: float, required: Requirement) -> float:
    """The true slow-down (0.05 is 5 %) that is found with probability 0.8.

    It must be significant, (z(1 - alpha/2) + z(0.8)) SE, and its estimate must pass the threshold,
    threshold + z(0.8) SE; the larger of the two counts (Cohen, Statistical Power Analysis, ch. 2).
    """
    z_power = NormalDist().inv_cdf(POWER)
    significant = (required.z_significant + z_power) * standard_error
    return math.exp(max(significant, required.threshold + z_power * standard_error)) - 1


def runs_needed(sigma: float, required: Requirement) -> int | None:
    """Runs per side after which an unchanged kernel is called unchanged with probability 0.8.

    The interval at 1 - alpha around an estimate of about zero must lie within the threshold:
    (z(1 - alpha/2) + z(0.9)) SE <= threshold. ``None`` above 1000 runs.
    """
    fewest = fewest_values(required.alpha)
    width = (required.z_significant + NormalDist().inv_cdf((1 + POWER) / 2)) * sigma * _RANK_TEST_COST
    wanted = max(fewest, math.ceil(2 * (width / required.threshold) ** 2))
    return wanted if wanted <= MOST_RUNS else None


def pairs_needed(sigma: float, required: Requirement) -> int | None:
    """As ``runs_needed``, for pairs whose log ratios spread by ``sigma``."""
    width = (required.z_significant + NormalDist().inv_cdf((1 + POWER) / 2)) * sigma * _RANK_TEST_COST
    wanted = max(fewest_pairs(required.alpha / 2), math.ceil((width / required.threshold) ** 2))
    return wanted if wanted <= MOST_RUNS else None
