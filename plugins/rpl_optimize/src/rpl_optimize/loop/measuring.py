"""The measurements of one session: rule, time left and device filled in for each candidate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import ApplicationError, BadDataError, MissingError, TimeLimitError
from rpl_core.files import write_atomic
from rpl_core.ingest import load_recording
from rpl_core.model.device import DeviceModel
from rpl_core.model.value_checks import require_value
from rpl_core.pipeline import recorded_device
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.run_directory import load_manifest
from rpl_core.values import frozen
from rpl_measure.interleaved import open_pairs
from rpl_measure.manifest import complete_pairs, read_manifest, repeated_pairs
from rpl_measure.rank_tests import median
from rpl_optimize.contracts import (
    CandidatePart,
    ContinuedData,
    GuardPart,
    MeasurementPart,
    ModelledPart,
    PlannedData,
    PlannedStage,
    RulePart,
)
from rpl_optimize.interfaces.metric import Metric, MetricRequest, MetricValue
from rpl_optimize.measurement.gains import (
    PLACEMENT_PAIRS,
    WARM_UPS,
    fresh_pairs,
    measurement_runs,
    modes_diagnostic,
    noise_diagnostic,
    rule_for,
)
from rpl_optimize.measurement.measure import (
    CandidateMeasurement,
    MeasureTools,
    TrafficMeasurement,
    measure_candidate,
    measure_traffic,
    remeasure,
    rule_of,
    rule_part,
)
from rpl_optimize.session_layout import fresh

if TYPE_CHECKING:
    from rpl_core.plugins.host import Contribution
    from rpl_optimize.build.builders import BuiltProgram
    from rpl_optimize.ledger.session_files import Begun
    from rpl_optimize.loop.baseline import Baseline
    from rpl_optimize.loop.evaluate import Trial
    from rpl_optimize.loop.session import OptimizeRequest, Tools
    from rpl_optimize.loop.state import LoopState

    _TwoBuilds = tuple[BuiltProgram, BuiltProgram]


#: Time limit of one run without --time-limit: times the baseline's longest, and at least so many seconds.
RUN_LIMIT_FACTOR = 10.0
LEAST_RUN_LIMIT_S = 60.0
_NO_ERROR_LEFT = (
    "the error that {} candidates (--max-iters) share is used up: measurements were interrupted, "
    "and each one that was begun took its part"
)
_OUT_OF_REACH = "no gain of this kernel can be large enough for the application or stand out of its noise"


@frozen(eq=False)
class MeasureStage:
    """``time_left`` gives the rest of the session's time budget in seconds, ``None`` without one.

    ``around`` a directory is the sandbox of what is run and writes there.
    """

    request: OptimizeRequest
    tools: Tools
    root: Path
    time_left: Callable[[], float | None]
    around: Callable[[Path], AbstractContextManager[None]] = lambda _: nullcontext()
    state: LoopState | None = None

    def plan(self, trial: Trial, seed: int) -> PlannedData | MeasurementPart:
        """What the measurement that decides will be, or why there will be none."""
        limits = self.request.limits
        cv = run_to_run_cv(trial.baseline, trial.target.recorded)
        rule = rule_for(limits.min_improvement, trial.target.ceiling_gain, limits.candidates, cv)
        if rule is None:
            return _unmeasured(trial, _OUT_OF_REACH)
        left_s = self.time_left()
        if left_s is not None and left_s <= 0:
            return _unmeasured(trial, "the time budget was used up before it could be measured")
        if self.state is not None and self.state.begun >= limits.candidates:
            return _unmeasured(trial, _NO_ERROR_LEFT.format(limits.candidates))
        fewest, most = measurement_runs(rule)
        return PlannedData(
            candidate=trial.number,
            stage="measurement",
            rule=rule_part(rule),
            seed=seed,
            fewest_runs=fewest,
            most_runs=most,
            run_s=usual_run_s(trial.baseline),
        )

    def plan_alone(self, trial: Trial, seed: int) -> PlannedData | None:
        """The same rule for the kernel alone; ``None`` where no gain would be enough."""
        plan = self.plan(trial, seed)
        if not isinstance(plan, PlannedData):
            return None
        return plan.model_copy(update={"stage": "kernel_alone", "run_s": None})

    def begin(self) -> None:
        """Charge a measurement when it is planned: one that is interrupted has used its part of the error."""
        if self.state is not None:
            self.state.begun += 1

    def opened(
        self, trial: Trial, plan: PlannedData, directory: Path, builds: _TwoBuilds | None = None
    ) -> PlannedData:
        """The plan with the directory in which it is written down before the ledger tells of it.

        So one that was begun can be gone on with, whenever the session was struck.
        """
        asked = self._measurement(trial, plan, directory, builds)
        open_pairs(asked.pairs(asked.rule.all_looks, plan.seed))
        return plan.model_copy(update={"directory": asked.place})

    def continued(self, candidate: int, begun: Begun) -> tuple[ContinuedData | None, tuple[PlannedData, ...]]:
        """What the ledger says of going on with ``begun``, and the plans that are gone on with.

        A measurement whose directory is gone or is another one begins anew, and is charged again.
        """
        plans: list[PlannedData] = []
        pairs = repeated = 0
        for plan in begun.under_way:
            try:
                manifest = read_manifest(self._place_of(plan))
            except (MissingError, BadDataError) as error:
                self.tools.note(f"warning: the {plan.stage} that was under way begins anew: {error}")
                continue
            if manifest.seed == plan.seed:
                plans.append(plan)
                pairs, repeated = len(complete_pairs(manifest)), repeated_pairs(manifest)
        if not plans and not begun.finished:
            return None, ()
        last = plans[-1] if plans else None
        told = ContinuedData(
            candidate=candidate,
            finished=begun.finished,
            under_way=None if last is None else last.stage,
            padding_bytes=None if last is None else last.padding_bytes,
            directory=None if last is None else last.directory,
            pairs=pairs,
            repeated_pairs=repeated,
        )
        return told, tuple(plans)

    def _place_of(self, plan: PlannedData) -> Path:
        """Where the pairs of an opened plan are. The ledger may come from elsewhere."""
        path = (self.root / (plan.directory or "")).resolve()
        if not path.is_relative_to(self.root.resolve()):
            raise BadDataError(f"the ledger names a folder outside of the session: {plan.directory!r}")
        return self.root / (plan.directory or "")

    def measure(self, trial: Trial, plan: PlannedData) -> MeasurementPart:
        """Pairs until a look decides, in the directory that was opened for them."""
        directory = self._place_of(plan)
        with self.around(directory):
            part = measure_candidate(
                attrs.evolve(self._measurement(trial, plan, directory), opened=True),
                self._measure_tools(trial, plan.stage),
            )
        for warning in (noise_diagnostic(part), modes_diagnostic(part)):
            if warning is not None:
                self.tools.note(f"warning: {warning.fact}")
        return part

    def plan_again(self, trial: Trial, first: MeasurementPart, seed: int) -> PlannedData:
        """The fresh measurement of a candidate that ``first`` proves; its size follows from ``first``."""
        pairs = fresh_pairs(rule_of(first.rule), first.log_ratios)
        return self._fixed_plan(trial, "remeasurement", first, seed, pairs)

    def plan_shifted(self, trial: Trial, first: MeasurementPart, seed: int, padding: int) -> PlannedData:
        """The measurement of base and candidate with shifted code."""
        plan = self._fixed_plan(trial, "placement", first, seed, PLACEMENT_PAIRS)
        runs = plan.most_runs + WARM_UPS
        return plan.model_copy(update={"padding_bytes": padding, "fewest_runs": runs, "most_runs": runs})

    def again(
        self,
        trial: Trial,
        plan: PlannedData,
        builds: _TwoBuilds | None = None,
    ) -> MeasurementPart:
        """As many pairs as planned; the time budget does not cut them, because the gain is proven already.

        ``builds`` take the place of base and candidate, and are warmed up first.
        """
        directory = self._place_of(plan)
        asked = attrs.evolve(
            self._measurement(trial, plan, directory, builds),
            total_time_s=None,
            warm_up=builds is not None,
            opened=True,
        )
        with self.around(directory):
            return remeasure(asked, self._measure_tools(trial, plan.stage), plan.rule.looks[-1])

    def _fixed_plan(
        self, trial: Trial, stage: PlannedStage, first: MeasurementPart, seed: int, pairs: int
    ) -> PlannedData:
        rule = first.rule.model_copy(update={"looks": (pairs,), "screening": ()})
        return PlannedData(
            candidate=trial.number,
            stage=stage,
            rule=rule,
            seed=seed,
            fewest_runs=2 * pairs,
            most_runs=2 * pairs,
            run_s=usual_run_s(trial.baseline),
        )

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
        with self.around(directory):
            return measure_traffic(request, self._measure_tools(trial, "traffic"))

    def _command(self, build: BuiltProgram) -> tuple[str, ...]:
        return self.tools.builder.command_for(build)

    def _measure_tools(self, trial: Trial, stage: str) -> MeasureTools:
        tools = self.tools

        def progress(text: str) -> None:
            tools.step(f"candidate {trial.number}: {stage}: {text}")

        return MeasureTools(tools.collector, tools.host, tools.log, tools.run_step, progress)

    def _measurement(
        self, trial: Trial, plan: PlannedData, directory: Path, builds: _TwoBuilds | None = None
    ) -> CandidateMeasurement:
        base, new = builds or (trial.baseline.build, trial.build)
        return CandidateMeasurement(
            kernel=trial.target.recorded,
            base=self._command(base),
            new=self._command(new),
            directory=directory,
            rule=rule_of(plan.rule),
            seed=plan.seed,
            root=self.root,
            trace_dependencies=self.request.trace_dependencies,
            time_limit_s=self._run_limit_s(trial),
            total_time_s=self.time_left(),
        )

    def _run_limit_s(self, trial: Trial) -> float:
        """What the user said, else so much that only a candidate that hangs needs it."""
        if self.request.time_limit_s is not None:
            return self.request.time_limit_s
        return max(LEAST_RUN_LIMIT_S, RUN_LIMIT_FACTOR * max(_run_times(trial.baseline), default=0.0))

    def _device(self, trial: Trial) -> DeviceModel | None:
        readers = self.tools.host.catalog.readers().contributions
        agents = load_recording((trial.baseline.profile_directory,), readers).gpu_agents
        return recorded_device(self.request.analysis, agents, self.tools.host).model


def usual_run_s(baseline: Baseline) -> float | None:
    """The median run of the baseline's profile."""
    times = _run_times(baseline)
    return median(times) if times else None


def _run_times(baseline: Baseline) -> list[float]:
    passes = load_manifest(baseline.profile_directory).passes
    return [entry.wall_s for entry in passes if entry.wall_s is not None]


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


# Candidates by a figure of a model, on devices that measure nothing (``--metric``).

#: What a candidate can do wrong; what else goes wrong ends the session.
CANDIDATE_FAILED = (ApplicationError, TimeLimitError, BadDataError)


@frozen(eq=False)
class ModelStage:
    """One run of base and of candidate each: a model gives the same each time."""

    request: OptimizeRequest
    tools: Tools
    metric: Contribution[Metric]
    root: Path
    around: Callable[[Path], AbstractContextManager[None]]
    #: Of versions to beat, by number and kernel.
    _bases: dict[tuple[int, str], MetricValue] = attrs.field(factory=dict)

    def compare(self, trial: Trial, directory: Path) -> ModelledPart:
        """Raises what a run of the baseline raises; what the candidate does wrong is a ``problem``."""
        metric, kernel = self.metric.value, trial.target.recorded
        told = ModelledPart(
            metric=metric.name,
            unit=metric.unit,
            formula=metric.formula,
            kernel=kernel,
            least_gain=self.request.limits.min_improvement,
            directory=str(directory.relative_to(self.root)),
        )
        key = trial.baseline.number, kernel
        if key not in self._bases:
            self._bases[key] = self.value(kernel, trial.baseline.build, fresh(directory, "base"))
        base = self._bases[key]
        told = told.model_copy(update={"base": base.value, "base_launches": base.launches})
        try:
            new = self.value(kernel, trial.build, fresh(directory, "new"))
        except CANDIDATE_FAILED as error:
            problem = f"the candidate failed: {error.fact}"
            return told.model_copy(update={"problem": problem, "candidate_failed": True})
        costless = None if base.value > 0 else f"the unchanged kernel costs nothing by {metric.name}"
        return told.model_copy(update={"new": new.value, "new_launches": new.launches, "problem": costless})

    def value(self, kernel: str, build: BuiltProgram, directory: Path) -> MetricValue:
        """One run of a build. Raises as ``Metric.value`` does."""
        directory.mkdir(parents=True)
        asked = MetricRequest(
            self.tools.builder.command_for(build),
            kernel,
            directory,
            self.tools.log,
            self.request.time_limit_s,
        )
        what = f"metric {self.metric.value.name!r}"
        with self.around(directory), plugin_boundary(self.metric.plugin, what):
            return require_value(self.metric.value.value(asked), MetricValue)


def best_by_model(candidates: tuple[CandidatePart, ...]) -> CandidatePart | None:
    """Of those whose results are right and whose figure is better, the one with the most gain."""
    found = [
        candidate
        for candidate in candidates
        if candidate.judgement.stage == "model" and candidate.judgement.verdict != "rejected"
    ]
    gaining = [one for one in found if one.source is not None and one.modelled_gain is not None]
    return max(gaining, key=lambda one: one.modelled_gain or 0.0, default=None)


def keep_best(root: Path, source: Path, suffix: str, candidates: tuple[CandidatePart, ...]) -> str | None:
    """A copy of the best candidate in the session's directory and nowhere else; its name there."""
    best = best_by_model(candidates)
    if best is None or best.source is None:
        return None
    name = f"{source.stem}{suffix}{source.suffix}"
    write_atomic(root / name, (root / best.source).read_bytes())
    return name
