"""Pairs from a declared model instead of a GPU: what the optimizer's statistics are proven on.

An application is one kernel and a rest that run one after the other. Each process run multiplies both by
normal noise of their own and by a clock that walks by a normal step of CV / 4 before every run, whichever
command runs (docs/reference/statistics.md, 3.4: the model behind the table of ``accept_v1``); a ``shape``
takes the place of that noise. The order of runs is that of ``rpl_measure.interleaved``: one
discarded warm-up each, then pairs whose order is drawn from a seed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from rpl_core.model.metric import Origin
from rpl_core.values import frozen
from rpl_measure.rank_tests import robust_cv
from rpl_measure.sequential import new_first
from rpl_optimize.contracts import (
    BuildPart,
    CheckPart,
    ControlPart,
    EvidencePart,
    GuardPart,
    JudgementPart,
    PlacementPart,
    PolicyPart,
    ShiftPart,
)
from rpl_optimize.measurement.gains import PADDINGS, PLACEMENT_PAIRS, fresh_pairs, is_wanted, rule_for
from rpl_optimize.measurement.measure import (
    DecidedOnTimes,
    PairSource,
    PairTimes,
    measure_from,
    remeasure_from,
)
from rpl_optimize.measurement.verdict import judge

if TYPE_CHECKING:
    import numpy as np

    #: (generator, runs) -> times of kernel and rest as multiples of the true ones, one row per run in order.
    Shape = Callable[[np.random.Generator, int], np.ndarray]

_KERNEL = "kernel"
#: Runs that a shape is drawn for at once: all of one candidate.
MOST_RUNS = 140
_APPLICATION_NS = 1e6
#: No time of a run is shorter than this part of the true one: a normal distribution has no lower end.
_SHORTEST = 0.01


@frozen
class TimingModel:
    """``gain`` is a fraction of the kernel's time, ``share`` is the kernel's of the baseline.

    ``of_the_place`` is the part of ``gain`` that is gone where the code lies elsewhere.
    """

    cv: float
    gain: float = 0.0
    share: float | None = 0.8
    baseline_runs: int = 3  # A/A runs that the noise floor is estimated from
    shape: Shape | None = None
    of_the_place: float = 0.0

    @property
    def share_of_times(self) -> float:
        return 0.8 if self.share is None else self.share


@attrs.define(eq=False)
class ModelledPairs(PairSource):
    """Pairs of one measurement. The clock goes on walking over all measurements of ``generator``."""

    model: TimingModel
    generator: np.random.Generator
    runs: int = 0  # so far, those of the baseline's profile left out
    _log_clock: float = 0.0
    _factors: deque[tuple[float, float]] = attrs.field(factory=deque)

    def warm_up(self) -> None:
        """The discarded run of each side."""
        self._run(0.0)
        self._run(self.model.gain)

    def take(self, looks: tuple[int, ...], decided: DecidedOnTimes, seed: int) -> PairTimes:
        times = PairTimes(origin=Origin.MEASURED)
        for swapped in new_first(seed, looks[-1]):
            times = self._with_pair(times, swapped=swapped)
            if len(times.kernel) in looks and decided(times):
                break
        return times

    def baseline_cv(self) -> float | None:
        """Spread of the kernel over the runs of a baseline profile."""
        cv = robust_cv([self._run(0.0)[0] for _ in range(self.model.baseline_runs)])
        self.runs = 0
        return cv

    def _with_pair(self, times: PairTimes, *, swapped: bool) -> PairTimes:
        gains = (0.0, self.model.gain)
        runs = [self._run(gain) for gain in (gains[::-1] if swapped else gains)]
        base, new = runs[::-1] if swapped else runs
        whole = (sum(base), sum(new))
        guards = {name: (*times.guards.get(name, ()), whole) for name in ("makespan", "critical_path")}
        return attrs.evolve(times, kernel=(*times.kernel, (base[0], new[0])), guards=guards)

    def _run(self, gain: float) -> tuple[float, float]:
        """Kernel and rest in ns."""
        self.runs += 1
        share = self.model.share_of_times
        kernel, rest = self._shaped() if self.model.shape is not None else self._normal()
        return (_APPLICATION_NS * share * (1 - gain) * kernel, _APPLICATION_NS * (1 - share) * rest)

    def _normal(self) -> tuple[float, float]:
        cv = self.model.cv
        walk, kernel, rest = self.generator.standard_normal(3).tolist()
        self._log_clock += cv / 4 * walk
        clock = math.exp(self._log_clock)
        return clock * max(1 + cv * kernel, _SHORTEST), clock * max(1 + cv * rest, _SHORTEST)

    def _shaped(self) -> tuple[float, float]:
        if not self._factors:
            assert self.model.shape is not None
            drawn = self.model.shape(self.generator, MOST_RUNS)
            self._factors.extend(map(tuple, drawn.tolist()))
        return self._factors.popleft()


def judge_modelled(
    model: TimingModel,
    generator: np.random.Generator,
    *,
    min_improvement: float = 0.02,
    candidates: int = 3,
    policy: PolicyPart | None = None,
) -> JudgementPart:
    """The verdict of ``try_modelled``."""
    source = ModelledPairs(model, generator)
    trial = try_modelled(source, min_improvement=min_improvement, candidates=candidates, policy=policy)
    return trial.judgement


@frozen
class ModelledTrial:
    """``runs`` are those of the application with warm-ups, without the baseline's profile and placement."""

    judgement: JudgementPart
    runs: int


def try_modelled(
    source: ModelledPairs,
    *,
    min_improvement: float = 0.02,
    candidates: int = 3,
    policy: PolicyPart | None = None,
) -> ModelledTrial:
    """One candidate through the optimizer's own rule, looks, guards, fresh measurement and verdict.

    Everything but its time is in order: it is as if source, binary and results had passed.
    """
    rule = rule_for(min_improvement, source.model.share, candidates, source.baseline_cv())
    if rule is None:
        raise ValueError("no gain of the kernel can be enough")
    seeds = source.generator.integers(0, 2**32, 2).tolist()
    source.warm_up()
    first = measure_from(source, _KERNEL, rule, "measure", seed=seeds[0])
    fresh = None
    if first.look is not None and first.look.decision == "accepted":
        pairs = fresh_pairs(rule, first.log_ratios)
        fresh = remeasure_from(source, _KERNEL, rule, "remeasure", seed=seeds[1], pairs=pairs)
    evidence = flawless_evidence().model_copy(update={"measurement": first, "remeasurement": fresh})
    policy, runs = policy or PolicyPart(), source.runs
    if fresh is not None and is_wanted(evidence, policy):
        model, shifts = source.model, []
        source.model = attrs.evolve(model, gain=model.gain - model.of_the_place)
        for padding in PADDINGS:
            seed = int(source.generator.integers(0, 2**32))
            part = remeasure_from(
                source, _KERNEL, rule, f"shifted-{padding}", seed=seed, pairs=PLACEMENT_PAIRS
            )
            shifts.append(ShiftPart(padding_bytes=padding, measurement=part))
        source.model = model
        evidence = evidence.model_copy(update={"placement": PlacementPart(shifts=tuple(shifts))})
    return ModelledTrial(judge(evidence, policy), runs)


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
