"""What a few repeated times say by themselves: their middle and spread, and whether that allows a verdict.

Location and spread are those that a few outliers can't move: median, median absolute deviation (MAD), robust
coefficient of variation, and the centres of Hodges and Lehmann. All arguments are plain sequences of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: 1 / the 0.75 quantile of the normal distribution: makes the MAD of normal data estimate its sigma.
MAD_TO_SIGMA = 1.4826


def median(values: Sequence[float]) -> float:
    """Median of at least one value."""
    return float(np.median(np.asarray(values, dtype=np.float64)))


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, unscaled."""
    numbers = np.asarray(values, dtype=np.float64)
    return float(np.median(np.abs(numbers - np.median(numbers))))


def robust_cv(values: Sequence[float]) -> float | None:
    """1.4826 * MAD / median (docs/reference/statistics.md, rule 6); ``None`` below 2 values or median 0."""
    middle = median(values) if len(values) > 1 else 0.0
    return MAD_TO_SIGMA * mad(values) / middle if middle > 0 else None


def robust_sigma(values: Sequence[float]) -> float | None:
    """Spread of single values: 1.4826 * MAD, or the sample standard deviation where the MAD is zero.

    More than half of the values are then equal. ``None`` below 2 values.
    """
    if len(values) < 2:
        return None
    scaled = MAD_TO_SIGMA * mad(values)
    return scaled if scaled > 0 else float(np.std(np.asarray(values, dtype=np.float64), ddof=1))


def walsh_averages(values: Sequence[float]) -> NDArray[np.float64]:
    """All (x_i + x_j) / 2 with i <= j, sorted: n (n + 1) / 2 numbers."""
    numbers = np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(numbers.size)
    return np.sort((numbers[first] + numbers[second]) / 2)


def pairwise_differences(left: Sequence[float], right: Sequence[float]) -> NDArray[np.float64]:
    """All right_j - left_i, sorted: m * n numbers."""
    first, second = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    return np.sort((second[None, :] - first[:, None]).ravel())


def pseudo_median(values: Sequence[float]) -> float:
    """Hodges-Lehmann centre of one sample: the median of the Walsh averages (J. Am. Stat. Assoc., 1963)."""
    return float(np.median(walsh_averages(values)))


def shift(left: Sequence[float], right: Sequence[float]) -> float:
    """Hodges-Lehmann shift from ``left`` to ``right``: the median of all pairwise differences."""
    return float(np.median(pairwise_differences(left, right)))


# The noise gate: below which spread a series of times supports a verdict at all.


#: docs/reference/statistics.md, rule 6.
WARN_CV = 0.05
REFUSE_CV = 0.10


class NoiseLevel(str, Enum):
    """``noisy`` times are warned about, ``too_noisy`` ones are refused unless the user insists."""

    QUIET = "quiet"
    NOISY = "noisy"
    TOO_NOISY = "too_noisy"


def noise_level(cv: float | None) -> NoiseLevel:
    """Level of a robust CV; an unknown one is quiet, since nothing speaks against it."""
    if cv is None or cv <= WARN_CV:
        return NoiseLevel.QUIET
    return NoiseLevel.NOISY if cv <= REFUSE_CV else NoiseLevel.TOO_NOISY
