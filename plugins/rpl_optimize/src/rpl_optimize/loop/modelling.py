"""Candidates by a figure of a model, on devices that measure nothing (``--metric``)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import ApplicationError, BadDataError, TimeLimitError
from rpl_core.files.atomic import write_atomic
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen
from rpl_optimize.contracts.optimize import ModelledPart
from rpl_optimize.interfaces.metric import MetricRequest, MetricValue
from rpl_optimize.session_layout import fresh

if TYPE_CHECKING:
    from rpl_core.plugins.relay import Contribution
    from rpl_optimize.build.model import BuiltProgram
    from rpl_optimize.contracts.optimize import CandidatePart
    from rpl_optimize.interfaces.metric import Metric
    from rpl_optimize.loop.evaluate import Trial
    from rpl_optimize.loop.request import OptimizeRequest, Tools

_CANDIDATE_FAILED = (ApplicationError, TimeLimitError, BadDataError)


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
            self._bases[key] = self._value(trial, trial.baseline.build, fresh(directory, "base"))
        base = self._bases[key]
        told = told.model_copy(update={"base": base.value, "base_launches": base.launches})
        try:
            new = self._value(trial, trial.build, fresh(directory, "new"))
        except _CANDIDATE_FAILED as error:
            problem = f"the candidate failed: {error.fact}"
            return told.model_copy(update={"problem": problem, "candidate_failed": True})
        costless = None if base.value > 0 else f"the unchanged kernel costs nothing by {metric.name}"
        return told.model_copy(update={"new": new.value, "new_launches": new.launches, "problem": costless})

    def _value(self, trial: Trial, build: BuiltProgram, directory: Path) -> MetricValue:
        directory.mkdir(parents=True)
        asked = MetricRequest(
            self.tools.builder.command_for(build),
            trial.target.recorded,
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
        one for one in candidates if one.judgement.stage == "model" and one.judgement.verdict != "rejected"
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
