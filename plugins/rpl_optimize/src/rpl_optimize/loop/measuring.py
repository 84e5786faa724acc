"""The measurements of one session: rule, time left and device filled in for each candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.ingest.load import load_recording
from rpl_core.pipeline import recorded_device
from rpl_core.run_directory.reader import load_manifest
from rpl_core.values import frozen
from rpl_optimize.contracts.optimize import GuardPart, MeasurementPart, RulePart
from rpl_optimize.measurement.gains import noise_diagnostic
from rpl_optimize.measurement.measure import (
    CandidateMeasurement,
    MeasureTools,
    measure_candidate,
    remeasure,
)
from rpl_optimize.measurement.rule import rule_for
from rpl_optimize.measurement.traffic import TrafficMeasurement, measure_traffic

if TYPE_CHECKING:
    from rpl_compare.statistics.sequential import AcceptRule
    from rpl_core.model.device import DeviceModel
    from rpl_optimize.build.model import BuiltProgram
    from rpl_optimize.loop.baseline import Baseline
    from rpl_optimize.loop.evaluate import Trial
    from rpl_optimize.loop.request import OptimizeRequest, Tools


#: Time limit of one run without --time-limit: times the baseline's longest, and at least so many seconds.
RUN_LIMIT_FACTOR = 10.0
LEAST_RUN_LIMIT_S = 60.0
_OUT_OF_REACH = "no gain of this kernel can be large enough for the application or stand out of its noise"


@frozen(eq=False)
class MeasureStage:
    """``time_left`` gives the rest of the session's time budget in seconds, ``None`` without one."""

    request: OptimizeRequest
    tools: Tools
    root: Path
    time_left: Callable[[], float | None]

    def measure(self, trial: Trial, directory: Path) -> MeasurementPart:
        """Pairs until a look decides."""
        rule = self._rule(trial)
        if rule is None:
            return _unmeasured(trial, _OUT_OF_REACH)
        left_s = self.time_left()
        if left_s is not None and left_s <= 0:
            return _unmeasured(trial, "the time budget was used up before it could be measured")
        part = measure_candidate(self._measurement(trial, directory, rule), self._measure_tools())
        warning = noise_diagnostic(part)
        if warning is not None:
            self.tools.note(f"warning: {warning.fact}")
        return part

    def confirm(self, trial: Trial, directory: Path) -> MeasurementPart:
        """Fresh pairs; the time budget does not cut them, because the gain is proven already."""
        rule = self._rule(trial)
        if rule is None:
            return _unmeasured(trial, _OUT_OF_REACH)
        asked = attrs.evolve(self._measurement(trial, directory, rule), total_time_s=None)
        return remeasure(asked, self._measure_tools())

    def traffic(self, trial: Trial, directory: Path) -> GuardPart:
        """The gate on HBM traffic."""
        request = TrafficMeasurement(
            kernel=trial.target.recorded,
            base=self._command(trial.baseline.build),
            new=self._command(trial.build),
            directory=directory,
            device=self._device(trial),
            time_limit_s=self.request.time_limit_s,
        )
        return measure_traffic(request, self._measure_tools())

    def _command(self, build: BuiltProgram) -> tuple[str, ...]:
        return self.tools.builder.command_for(build)

    def _measure_tools(self) -> MeasureTools:
        tools = self.tools
        return MeasureTools(tools.collector, tools.host, tools.log, tools.run_step)

    def _rule(self, trial: Trial) -> AcceptRule | None:
        limits = self.request.limits
        cv = run_to_run_cv(trial.baseline, trial.target.recorded)
        return rule_for(limits.min_improvement, trial.target.ceiling_gain, limits.candidates, cv)

    def _measurement(self, trial: Trial, directory: Path, rule: AcceptRule) -> CandidateMeasurement:
        return CandidateMeasurement(
            kernel=trial.target.recorded,
            base=self._command(trial.baseline.build),
            new=self._command(trial.build),
            directory=directory,
            rule=rule,
            root=self.root,
            trace_dependencies=self.request.trace_dependencies,
            time_limit_s=self._run_limit_s(trial),
            total_time_s=self.time_left(),
        )

    def _run_limit_s(self, trial: Trial) -> float:
        """What the user said, else so much that only a candidate that hangs needs it."""
        if self.request.time_limit_s is not None:
            return self.request.time_limit_s
        passes = load_manifest(trial.baseline.profile_directory).passes
        longest_s = max((entry.wall_s or 0.0 for entry in passes), default=0.0)
        return max(LEAST_RUN_LIMIT_S, RUN_LIMIT_FACTOR * longest_s)

    def _device(self, trial: Trial) -> DeviceModel | None:
        readers = self.tools.host.catalog.readers().contributions
        agents = load_recording((trial.baseline.profile_directory,), readers).gpu_agents
        return recorded_device(self.request.analysis, agents, self.tools.host).model


def run_to_run_cv(baseline: Baseline, recorded: str) -> float | None:
    """CV of a kernel's time over the baseline's own runs."""
    for kernel in baseline.documents.model("profile").kernels:
        if kernel.name == recorded:
            return kernel.stability.cv if kernel.stability is not None else None
    return None


def _unmeasured(trial: Trial, problem: str) -> MeasurementPart:
    return MeasurementPart(
        kernel=trial.target.recorded,
        rule=RulePart(alpha=0.0, looks=(), least_gain=1.0, futile_gain=1.0, most_guard_loss=0.0),
        problem=problem,
    )
