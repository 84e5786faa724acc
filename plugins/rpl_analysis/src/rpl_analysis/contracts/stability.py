"""How times spread over runs: ``stability`` of ``profile.json``, declared once."""

from __future__ import annotations

from enum import Enum

from rpl_analysis.contracts.record import record


class StabilityClass(str, Enum):
    """``stability`` cites its source: cv <= 0.05 stable, <= 0.10 moderate, else unstable."""

    STABLE = "stable"
    MODERATE = "moderate"
    UNSTABLE = "unstable"


@record
class StabilityPart:
    """Over runs. ``cv`` is null for one run."""

    runs: int | None = None
    mean_ms: float | None = None
    stddev_ms: float | None = None  # of the sample (n - 1)
    cv: float | None = None
    classification: StabilityClass | None = None
