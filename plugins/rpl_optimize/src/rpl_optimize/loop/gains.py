"""What a gain is worth to the application: which kernel to work on, and predicted against measured gains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_analysis.execution_graph.results.forecasts import most_gain_ns
from rpl_analysis.what_if import FasterKernel, ReplayedRun
from rpl_codeobject.kernel_names import is_instance, source_name
from rpl_core.errors import BadDataError, NoVerdictError
from rpl_core.ingest.load import load_recording
from rpl_core.values import frozen
from rpl_optimize.measurement.gains import Gains, gains_of, placement_share

if TYPE_CHECKING:
    from rpl_analysis.contracts.dag import DagDocument, ForecastPart
    from rpl_core.ingest.claims import Readers
    from rpl_core.plugins.host import PluginHost
    from rpl_optimize.contracts.optimize import EvidencePart
    from rpl_optimize.loop.baseline import Baseline


@frozen
class Target:
    """``recorded`` is the name in the documents, ``kernel`` the one in the source.

    ``ceiling_gain`` is the part of the application's time that would be saved if the kernel cost nothing:
    by solving the graph again, launches, host time and waits included.
    """

    recorded: str
    kernel: str
    ceiling_gain: float


def rank_targets(dag: DagDocument, wanted: str | None = None) -> tuple[Target, ...]:
    """Kernels by ceiling, highest first; ``wanted`` limits them to one source kernel.

    Raises ``NoVerdictError`` when the baseline gave no graph or does not hold the wanted kernel.
    """
    if dag.status != "available":
        raise NoVerdictError(
            f"the baseline has no critical path: {dag.reason or 'no reason given'}",
            next_step="see `rpl doctor`, and profile the program once with `rpl profile`",
        )
    kernels = [f for f in dag.forecasts if f.kind == "kernel"]
    chosen = [f for f in kernels if wanted is None or is_instance(f.name, wanted) or f.name == wanted]
    if not chosen:
        known = ", ".join(sorted({source_name(f.name) for f in kernels})) or "none"
        what = "a kernel" if wanted is None else f"the kernel {wanted!r}"
        raise NoVerdictError(f"the baseline does not launch {what}", cause=f"kernels seen: {known}")
    targets = [Target(f.name, source_name(f.name), ceiling_gain(f)) for f in chosen]
    return tuple(sorted(targets, key=lambda target: (-target.ceiling_gain, target.recorded)))


def ceiling_gain(forecast: ForecastPart) -> float:
    """Part of the application's time that the kernel can give back at most, 0 to 1."""
    for step in forecast.speedups:
        if step.speedup is None:
            whole = step.application_ns + step.application_gain_ns
            return most_gain_ns(step) / whole if whole > 0 else 0.0
    return 0.0


def worthwhile(targets: Sequence[Target], min_improvement: float) -> tuple[Target, ...]:
    """Those whose ceiling lies above what the user asks for."""
    return tuple(target for target in targets if target.ceiling_gain > min_improvement)


def ceiling_sentence(targets: Sequence[Target], min_improvement: float) -> str:
    """Why no kernel is worth it."""
    best = targets[0]
    return (
        f"even if {best.kernel} cost nothing, the application would gain {best.ceiling_gain:.1%}, "
        f"which is not above the {min_improvement:.1%} asked for"
    )


# Predicted against measured gain of a candidate.


@frozen
class PredictedGain:
    """``gain`` is the part of the makespan that would be saved, below 0 for a loss; ``None`` has a reason."""

    gain: float | None
    reason: str | None = None


def predicted_gain(
    paths: Sequence[Path], readers: Readers, kernel: str, ratio: float, *, include_copies: bool = False
) -> PredictedGain:
    """Solve the graph of the baseline's median run again with ``kernel`` at ``ratio`` times its time.

    ``paths`` is the baseline's recording (its run directory), ``kernel`` an exact displayed name and
    ``ratio`` the measured new / base. Modelled, never measured: durations of other kernels stay, launches
    and waits too.
    """
    if ratio <= 0:
        return PredictedGain(None, f"a ratio of {ratio:g} is none of two times")
    recording = load_recording(tuple(paths), readers)
    chosen = median_run(recording)
    if chosen is None:
        return PredictedGain(None, why_no_graph(recording))
    try:
        run = ReplayedRun(chosen[1], include_copies=include_copies)
        if kernel not in run.names:
            return PredictedGain(None, "the kernel is not in the baseline's graph")
        prediction = run.predict((FasterKernel(kernel, 1 / ratio),))
    except BadDataError as error:
        return PredictedGain(None, error.fact)
    if prediction.recorded_ns <= 0:
        return PredictedGain(None, "the baseline's graph has no length")
    return PredictedGain(prediction.together.gain_ns / prediction.recorded_ns)


@frozen
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
    first, build = evidence.measurement, evidence.build
    code: dict[str, object] = {"code_sha256": None if build is None else build.code_sha256}
    if (modelled := evidence.modelled) is not None:
        told = {"metric": modelled.metric, "modelled_gain": modelled.gain}
        return {**code, **told, "origin": modelled.origin}
    if first is None:
        return code
    last = evidence.remeasurement or first
    return {
        **code,
        "origin": last.origin,
        "pairs": len(last.log_ratios) or None,
        "first_kernel_gain": gains_of(first).kernel,
        "placement_share": placement_share(evidence),
    }


def gains_of_fresh(evidence: EvidencePart) -> Gains:
    """Those of the fresh measurement; without one nothing is reported."""
    fresh = evidence.remeasurement
    return Gains() if fresh is None or fresh.look is None else gains_of(fresh)


def candidate_gains(
    evidence: EvidencePart, baseline: Baseline, target: Target, host: PluginHost
) -> CandidateGains:
    """Gains from the fresh measurement, and what the baseline's recording predicts for them."""
    fresh, gains = evidence.remeasurement, gains_of_fresh(evidence)
    if fresh is None or fresh.look is None:
        return CandidateGains()
    predicted = predicted_gain(
        (baseline.profile_directory,),
        host.catalog.readers().contributions,
        target.recorded,
        fresh.look.ratio,
    )
    return CandidateGains(gains.kernel, gains.kernel_interval, gains.application, predicted.gain)
