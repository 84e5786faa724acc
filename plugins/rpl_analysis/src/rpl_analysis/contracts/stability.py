"""How times spread over runs, and what recording calls adds: parts of ``profile.json``, declared once."""

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


@record
class AddedTime:
    """``added``: mean of the runs with calls over the one without, less 1; negative where it took longer.

    ``added_range`` holds the least and the most of the single runs with calls; null for one run. The run
    without calls is a single one, so its own spread is in neither.
    """

    with_calls_ms: float
    without_calls_ms: float
    added: float
    added_range: tuple[float, float] | None


@record
class CallOverhead:
    """What recording API calls and copies added to the timing runs, by a run of the same command without.

    ``makespan`` is the time from the first begin to the last end of a dispatch: null where several machines
    took part.
    """

    runs_with_calls: int
    kernel_time: AddedTime
    makespan: AddedTime | None
