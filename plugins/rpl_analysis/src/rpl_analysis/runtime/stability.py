"""Spread of repeated times: sample standard deviation, coefficient of variation and its class."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rpl_analysis.runtime.model import Stability, StabilityClass

#: PRODUCTION_MANUAL, section 5.
STABLE_CV = 0.05
MODERATE_CV = 0.10


def classify_cv(cv: float) -> StabilityClass:
    """cv <= 0.05 stable, <= 0.10 moderate, otherwise unstable."""
    if cv <= STABLE_CV:
        return StabilityClass.STABLE
    return StabilityClass.MODERATE if cv <= MODERATE_CV else StabilityClass.UNSTABLE


def stability_of(times_ms: Sequence[float]) -> Stability:
    """Stability of at least one time. A single run has a mean and nothing else."""
    count = len(times_ms)
    mean = math.fsum(times_ms) / count
    if count < 2:
        return Stability(count, mean, None, None, None)
    variance = math.fsum((t - mean) ** 2 for t in times_ms) / (count - 1)
    stddev = math.sqrt(variance)
    if mean <= 0:
        return Stability(count, mean, stddev, None, None)
    cv = stddev / mean
    return Stability(count, mean, stddev, cv, classify_cv(cv))
