"""Pairs from a declared model instead of a GPU: what the optimizer's statistics are proven on.

An application is one kernel and a rest that run one after the other. Each process run multiplies both by
normal noise of their own and by a clock that walks by a normal step of CV / 4 before every run, whichever
command runs (docs/reference/statistics.md, 3.4: the model behind the table of ``accept_v1``). The order of
runs is that of ``rpl_compare.comparison.interleaved``: one discarded warm-up each, then base new, new base,
...
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs

from rpl_compare.statistics.robust import robust_cv
from rpl_core.model.origin import Origin
from rpl_core.values import frozen
from rpl_optimize.contracts.optimize import (
    BuildPart,
    CheckPart,
    ControlPart,
    EvidencePart,
    GuardPart,
    PolicyPart,
)
from rpl_optimize.measurement.measure import measure_from, remeasure_from
from rpl_optimize.measurement.rule import rule_for
from rpl_optimize.measurement.times import PairSource, PairTimes
from rpl_optimize.measurement.verdict import judge

if TYPE_CHECKING:
    import numpy as np

    from rpl_optimize.contracts.optimize import JudgementPart
    from rpl_optimize.measurement.times import DecidedOnTimes

_KERNEL = "kernel"
_APPLICATION_NS = 1e6
#: No time of a run is shorter than this part of the true one: a normal distribution has no lower end.
_SHORTEST = 0.01


@frozen
class TimingModel:
    """``gain`` is a fraction of the kernel's time, ``share`` is the kernel's of the baseline."""

    cv: float
    gain: float = 0.0
    share: float = 0.8
    baseline_runs: int = 3  # A/A runs that the noise floor is estimated from


@attrs.define(eq=False)
class ModelledPairs(PairSource):
    """Pairs of one measurement. The clock goes on walking over all measurements of ``generator``."""

    model: TimingModel
    generator: np.random.Generator
    _log_clock: float = 0.0

    def take(self, looks: tuple[int, ...], decided: DecidedOnTimes) -> PairTimes:
        self._run(self.model.gain)
        self._run(0.0)
        times = PairTimes(origin=Origin.MEASURED)
        for number in range(looks[-1]):
            times = self._with_pair(times, number)
            if len(times.kernel) in looks and decided(times):
                break
        return times

    def baseline_cv(self) -> float | None:
        """Spread of the kernel over the runs of a baseline profile."""
        return robust_cv([self._run(0.0)[0] for _ in range(self.model.baseline_runs)])

    def _with_pair(self, times: PairTimes, number: int) -> PairTimes:
        gains = (0.0, self.model.gain)
        order = gains if number % 2 == 0 else gains[::-1]
        runs = [self._run(gain) for gain in order]
        base, new = runs if number % 2 == 0 else runs[::-1]
        whole = (sum(base), sum(new))
        guards = {name: (*times.guards.get(name, ()), whole) for name in ("makespan", "critical_path")}
        return attrs.evolve(times, kernel=(*times.kernel, (base[0], new[0])), guards=guards)

    def _run(self, gain: float) -> tuple[float, float]:
        """Kernel and rest in ns."""
        model = self.model
        walk, kernel, rest = self.generator.standard_normal(3).tolist()
        self._log_clock += model.cv / 4 * walk
        clock = _APPLICATION_NS * math.exp(self._log_clock)
        return (
            clock * model.share * (1 - gain) * max(1 + model.cv * kernel, _SHORTEST),
            clock * (1 - model.share) * max(1 + model.cv * rest, _SHORTEST),
        )


def judge_modelled(
    model: TimingModel,
    generator: np.random.Generator,
    *,
    min_improvement: float = 0.02,
    candidates: int = 3,
    policy: PolicyPart | None = None,
) -> JudgementPart:
    """One candidate through the optimizer's own rule, looks, guards, fresh measurement and verdict.

    Everything but its time is in order: it is as if source, binary and results had passed.
    """
    source = ModelledPairs(model, generator)
    rule = rule_for(min_improvement, model.share, candidates, source.baseline_cv())
    if rule is None:
        raise ValueError("no gain of the kernel can be enough")
    first = measure_from(source, _KERNEL, rule, "measure")
    fresh = None
    if first.look is not None and first.look.decision == "accepted":
        fresh = remeasure_from(source, _KERNEL, rule, "remeasure")
    evidence = flawless_evidence().model_copy(update={"measurement": first, "remeasurement": fresh})
    return judge(evidence, policy or PolicyPart())


def flawless_evidence() -> EvidencePart:
    """A candidate that passed every gate up to its measurement, and the one on memory traffic."""
    control = ControlPart(control="empty", verdict="different", evidence="the output differs")
    return EvidencePart(
        source_guards=(GuardPart(guard="same-signature", passed=True, reason="as before"),),
        build=BuildPart(commands=(("cc", "app.c"),), reproducible=True, code_sha256="0" * 64),
        binary_guards=(GuardPart(guard="binary-abi", passed=True, reason="as before"),),
        checks=(CheckPart(check="outputs", verdict="equal", evidence="same bytes", controls=(control,)),),
        architecture_guards=(GuardPart(guard="hbm-traffic", passed=True, reason="+0.1 %"),),
    )
