"""The noise gate: below which spread a series of times supports a verdict at all."""

from __future__ import annotations

from enum import Enum

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
