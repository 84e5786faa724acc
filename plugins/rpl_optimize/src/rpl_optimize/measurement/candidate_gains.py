"""Predicted against measured gain of a candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_optimize.measurement.gains import gains_of
from rpl_optimize.measurement.prediction import predicted_gain

if TYPE_CHECKING:
    from rpl_core.plugins.host import PluginHost
    from rpl_optimize.contracts.optimize import EvidencePart
    from rpl_optimize.loop.baseline import Baseline
    from rpl_optimize.loop.target import Target


@attrs.frozen
class CandidateGains:
    """Fractions of the time saved. ``predicted`` is modelled: what-if with the kernel's measured ratio."""

    kernel: float | None = None
    kernel_interval: tuple[float, float] | None = None
    measured: float | None = None  # of the application's makespan
    predicted: float | None = None

    def sentence(self) -> str:
        """Both gains of the application, for people."""
        measured = "unknown" if self.measured is None else f"{self.measured:.1%}"
        predicted = "unknown" if self.predicted is None else f"{self.predicted:.1%}"
        return f"gain of the application: {measured} measured, {predicted} predicted by what-if"


def measured_facts(evidence: EvidencePart) -> dict[str, object]:
    """Fields of ``CandidatePart`` that say what was measured, whatever the verdict."""
    first = evidence.measurement
    if first is None:
        return {}
    last = evidence.remeasurement or first
    return {
        "origin": last.origin,
        "pairs": len(last.log_ratios) or None,
        "first_kernel_gain": gains_of(first).kernel,
    }


def candidate_gains(
    evidence: EvidencePart, baseline: Baseline, target: Target, host: PluginHost
) -> CandidateGains:
    """Gains from the fresh measurement; without one nothing is reported."""
    fresh = evidence.remeasurement
    if fresh is None or fresh.look is None:
        return CandidateGains()
    gains = gains_of(fresh)
    predicted = predicted_gain(
        (baseline.profile_directory,),
        host.catalog.readers().contributions,
        target.recorded,
        fresh.look.ratio,
    )
    return CandidateGains(gains.kernel, gains.kernel_interval, gains.application, predicted.gain)
