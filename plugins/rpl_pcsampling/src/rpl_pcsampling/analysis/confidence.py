"""How far the share of an instruction may be from what infinitely many samples would show.

The interval is Wilson's score interval at 95 % (E. B. Wilson, JASA 22 (1927) 209-212; recommended for small
numbers by Brown, Cai and DasGupta, Statistical Science 16 (2001) 101-133), with the number of samples
replaced by the effective one. Samples that compute units take at one moment are not independent: waves of one
kernel run in step. So each timestamp is a cluster. The variance of a share over clusters is that of a ratio
(Cochran, Sampling Techniques, 3rd ed. 1977, chapter 3 on proportions in clusters), its quotient to the
variance of independent samples the design effect (Kish, Survey Sampling, 1965), and the effective number is
samples / design effect (Dean and Pagano, J. Survey Statistics and Methodology 3 (2015) 484-503). A design
effect below 1 counts as 1.

Not covered: kernels that behave otherwise in other launches or on other inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.trace import Float64Column, Int64Column

__all__ = ["CONFIDENCE", "METHOD", "MIN_SAMPLES", "Shares", "Ticks", "shares_of", "wilson"]

CONFIDENCE: Final = 0.95
_Z: Final = 1.959963984540054  # of the normal distribution, two-sided
METHOD: Final = "Wilson score interval, effective number of samples by timestamp clusters"
#: A share of one half is known to 10 points then: n = z^2 p (1 - p) / 0.1^2 (Cochran 1977, chapter 4).
MIN_SAMPLES: Final = 97


def wilson(share: Float64Column, samples: Float64Column) -> tuple[Float64Column, Float64Column]:
    """Lower and upper end for shares of so many independent samples."""
    scale = _Z**2 / samples
    centre = (share + scale / 2) / (1 + scale)
    half = _Z / (1 + scale) * np.sqrt(share * (1 - share) / samples + scale / (4 * samples))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


@frozen(eq=False)
class Ticks:
    """The moments at which a kernel was sampled: the cluster of each sample, and the size of each cluster."""

    of_sample: Int64Column
    size: Int64Column

    @classmethod
    def of(cls, timestamp_ns: Int64Column) -> Ticks:
        _, cluster, size = np.unique(timestamp_ns, return_inverse=True, return_counts=True)
        return cls(cluster.reshape(-1).astype(np.int64), size.astype(np.int64))


@frozen(eq=False)
class Shares:
    """Of each class of samples: its part of all, and the ends of its interval.

    ``too_few``: the interval is wider than the share, so the share says little but that it is not zero.
    """

    samples: Int64Column
    share: Float64Column
    low: Float64Column
    high: Float64Column

    @property
    def too_few(self) -> list[bool]:
        return [bool(wide) for wide in self.high - self.low > self.share]


def shares_of(classes: Int64Column, count: int, ticks: Ticks) -> Shares:
    """Shares of the classes 0 to ``count`` - 1 among all samples; a negative class counts in none."""
    total = len(classes)
    inside = np.flatnonzero(classes >= 0)
    samples = np.bincount(classes[inside], minlength=count).astype(np.int64)
    share = samples / total
    effective = total / _design_effect(classes[inside], ticks.of_sample[inside], share, ticks.size)
    low, high = wilson(share, effective)
    return Shares(samples, share, low, high)


def _design_effect(
    classes: Int64Column, cluster: Int64Column, share: Float64Column, size: Int64Column
) -> Float64Column:
    """Of each class. Where samples can't tell (one cluster, or a share of 0 or 1) it is the largest one.

    That is the mean size of the cluster that a sample is in: its samples all tell the same.
    """
    total, clusters = float(size.sum()), len(size)
    largest = float((size.astype(np.float64) ** 2).sum()) / total
    effect = np.full(len(share), max(1.0, largest))
    if clusters < 2:
        return effect
    pair, times = np.unique(classes.astype(np.int64) * clusters + cluster, return_counts=True)
    of_class, of_cluster = pair // clusters, pair % clusters
    squares = np.bincount(of_class, times.astype(np.float64) ** 2, minlength=len(share))
    products = np.bincount(of_class, times * size[of_cluster].astype(np.float64), minlength=len(share))
    # Sum over clusters of (samples of the class - share * samples)^2, those without the class included.
    residual = squares - 2 * share * products + share**2 * largest * total
    open_ = (share > 0) & (share < 1)
    independent = share[open_] * (1 - share[open_]) / total
    clustered = clusters / (clusters - 1) * residual[open_] / total**2
    effect[open_] = np.clip(clustered / independent, 1.0, max(1.0, largest))
    return effect
