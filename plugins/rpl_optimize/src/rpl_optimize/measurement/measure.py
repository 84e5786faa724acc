"""Measure a candidate against its baseline, and an accepted one again with fresh pairs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import (
    ApplicationError,
    BadDataError,
    InterruptedRunError,
    NoVerdictError,
    RplError,
    TimeLimitError,
)
from rpl_core.interfaces.collector import Collector, LineSink
from rpl_core.model.metric import Origin
from rpl_core.profiling import StepSink
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_measure.comparable import check_comparable
from rpl_measure.estimates import median, robust_cv
from rpl_measure.interleaved import MeasureRequest, measure_pairs
from rpl_measure.manifest import is_comparison_directory, read_manifest
from rpl_measure.samples import ItemKey, Kind, Sample, samples_of
from rpl_measure.sequential import AcceptRule, Decision, Look, decide, last_look, new_first
from rpl_measure.series import find_drift, find_modes
from rpl_measure.side import Side
from rpl_optimize.contracts.optimize import LookPart, MeasurementPart, ModesPart, RulePart

if TYPE_CHECKING:
    from rpl_core.plugins.host import PluginHost
    from rpl_optimize.interfaces.equivalence import KernelPairs

# Times of baseline and candidate in pairs, whoever measured them, and what the evidence keeps of them.

#: Times of the application that an accepted candidate must not lose (docs/reference/statistics.md, rule 3).
GUARDS = (Kind.MAKESPAN, Kind.CRITICAL_PATH)
#: (base, new) per pair, ns.
Pairs = tuple[tuple[float, float], ...]


@frozen
class PairTimes:
    """Complete pairs so far, in order. ``guards`` are times of the application, by name.

    ``problem`` says why they can't be judged; ``candidate_failed``: because the candidate crashed or hung.
    """

    kernel: Pairs = ()
    guards: Mapping[str, Pairs] = attrs.field(factory=dict)
    origin: Origin | None = None
    problem: str | None = None
    candidate_failed: bool = False

    @property
    def log_ratios(self) -> tuple[float, ...]:
        """ln(base / new) of the kernel."""
        return _log_ratios(self.kernel)

    @property
    def guard_log_ratios(self) -> dict[str, tuple[float, ...]]:
        return {name: _log_ratios(pairs) for name, pairs in self.guards.items()}


#: Asked at each look with the pairs so far; true ends the measurement.
DecidedOnTimes = Callable[[PairTimes], bool]


class PairSource(ABC):
    """Where pairs come from."""

    @abstractmethod
    def take(self, looks: tuple[int, ...], decided: DecidedOnTimes, seed: int) -> PairTimes:
        """Measure up to the last look, asking ``decided`` at each one, and return all complete pairs.

        ``seed`` gives the order within the pairs (``rpl_measure.sequential``).

        What the candidate does wrong is a ``problem``; what is wrong with the baseline is raised.
        """


def times_of(base: Side, new: Side, kernel: str) -> PairTimes:
    """The pairs of two measured sides; ``kernel`` is an exact name.

    Sides that may not be compared (other GPU, lost process, modelled times) leave a problem. A guard that one
    side does not know is left out: the verdict notices.
    """
    origin = Origin.weakest([base.origin, new.origin])
    problem = _why_not_comparable(base, new)
    left, right = samples_of(base.runs), samples_of(new.runs)
    key = ItemKey(Kind.KERNEL, kernel)
    if problem is None and not _usable(key, left, right):
        problem = f"the kernel {key.short_name!r} has no usable time in every run of both sides"
    if problem is not None:
        return PairTimes(origin=origin, problem=problem)
    guards = {
        kind.value: _paired(ItemKey(kind, kind.value), left, right)
        for kind in GUARDS
        if _usable(ItemKey(kind, kind.value), left, right)
    }
    return PairTimes(_paired(key, left, right), guards, origin)


def _why_not_comparable(base: Side, new: Side) -> str | None:
    # Whether synthetic times count is the verdict's question; here it is whether the sides belong together.
    try:
        blocking = check_comparable(base, new, allow_synthetic=True, forced=False).blocking
    except BadDataError as error:
        return error.fact
    return "; ".join(blocking) or None


def _usable(key: ItemKey, left: Mapping[ItemKey, Sample], right: Mapping[ItemKey, Sample]) -> bool:
    return all(key in side and side[key].problem is None for side in (left, right))


def _paired(key: ItemKey, left: Mapping[ItemKey, Sample], right: Mapping[ItemKey, Sample]) -> Pairs:
    return tuple(zip(left[key].values_ns, right[key].values_ns, strict=True))


def _log_ratios(pairs: Pairs) -> tuple[float, ...]:
    return tuple(math.log(base / new) for base, new in pairs)


def measurement_part(
    kernel: str,
    times: PairTimes,
    rule: AcceptRule,
    directory: str | None = None,
    *,
    seed: int | None = None,
) -> MeasurementPart:
    """All that the verdict needs, with the look that ended the measurement."""
    base, new = [pair[0] for pair in times.kernel], [pair[1] for pair in times.kernel]
    log_ratios, guards = times.log_ratios, times.guard_log_ratios
    look = None if times.problem is not None else last_look(log_ratios, guards, rule)
    problem = times.problem
    if look is None and problem is None:
        few = counted(len(log_ratios), "pair is", "pairs are")
        problem = f"{few} too few: the first look needs {rule.all_looks[0]}"
    drift, modes = find_drift(base), find_modes(base)
    return MeasurementPart(
        kernel=kernel,
        directory=directory,
        origin=None if times.origin is None else times.origin.value,
        rule=rule_part(rule),
        seed=seed,
        log_ratios=log_ratios,
        base_ns=tuple(base),
        new_ns=tuple(new),
        guards=guards,
        base_cv=robust_cv(base),
        base_median_ns=median(base) if base else None,
        new_median_ns=median(new) if new else None,
        drift=None if drift is None else drift.flagged,
        modes=None if modes is None else ModesPart(**attrs.asdict(modes)),
        look=None if look is None else look_part(look),
        problem=problem,
        candidate_failed=times.candidate_failed,
    )


def rule_part(rule: AcceptRule) -> RulePart:
    return RulePart(**attrs.asdict(rule))


def rule_of(part: RulePart) -> AcceptRule:
    return AcceptRule(**part.model_dump())


def look_part(look: Look) -> LookPart:
    return LookPart(**{**attrs.asdict(look), "decision": look.decision.value})


#: What the candidate itself did wrong.
_CANDIDATE_FAILED = (ApplicationError, TimeLimitError)


@frozen
class CandidateMeasurement:
    """``kernel`` is its exact displayed name; ``base`` and ``new`` are complete command lines.

    ``directory`` must not hold anything yet, or is ``opened`` and goes on as far as it came; the evidence
    names it relative to ``root``, the session's directory. ``time_limit_s`` is that of one process run, no
    pair starts after ``total_time_s``.
    """

    kernel: str
    base: tuple[str, ...]
    new: tuple[str, ...]
    directory: Path
    rule: AcceptRule
    seed: int
    root: Path | None = None
    trace_dependencies: bool = False
    time_limit_s: float | None = None
    total_time_s: float | None = None
    warm_up: bool = True
    opened: bool = False

    def pairs(self, looks: tuple[int, ...], seed: int) -> MeasureRequest:
        """The pairs that are measured for it."""
        return MeasureRequest(
            base=self.base,
            new=self.new,
            directory=self.directory,
            most_pairs=looks[-1],
            trace_dependencies=self.trace_dependencies,
            time_limit_s=self.time_limit_s,
            total_time_s=self.total_time_s,
            seed=seed,
            own_looks=looks,
            warm_up=self.warm_up,
            opened=self.opened,
        )

    @property
    def place(self) -> str:
        """``directory`` as the evidence names it."""
        root = self.root
        inside = root is not None and self.directory.is_relative_to(root)
        return (self.directory.relative_to(root) if root and inside else self.directory).as_posix()


@frozen(eq=False)
class MeasureTools:
    """What runs the commands: the collector records each run.

    ``step`` gets the name of each run, ``progress`` a line at each look.
    """

    collector: Collector
    host: PluginHost
    log: LineSink
    step: StepSink
    progress: StepSink


def measure_candidate(request: CandidateMeasurement, tools: MeasureTools) -> MeasurementPart:
    """Interleaved pairs until a look decides.

    A candidate that crashes, hangs or lacks the kernel is a ``problem`` of the result. Raises what a run of
    the baseline raises, and ``InterruptedRunError``; complete pairs stay in the directory.
    """
    source = CollectedPairs(request, tools)
    return measure_from(source, request.kernel, request.rule, request.place, seed=request.seed)


def remeasure(request: CandidateMeasurement, tools: MeasureTools, pairs: int) -> MeasurementPart:
    """Exactly ``pairs`` fresh pairs in a directory of their own, for the gain that is reported.

    What was accepted looks better than it is, because luck helped to choose it; new runs know nothing of that
    luck. They don't end early, so that no look chooses them either. Errors are those of
    ``measure_candidate``.
    """
    source = CollectedPairs(request, tools)
    return remeasure_from(source, request.kernel, request.rule, request.place, seed=request.seed, pairs=pairs)


def measure_from(
    source: PairSource, kernel: str, rule: AcceptRule, place: str | None = None, *, seed: int
) -> MeasurementPart:
    """``measure_candidate`` for pairs from anywhere."""

    def decided(times: PairTimes) -> bool:
        if times.problem is not None:
            return True
        return decide(times.log_ratios, times.guard_log_ratios, rule) is not Decision.CONTINUE

    return measurement_part(kernel, source.take(rule.all_looks, decided, seed), rule, place, seed=seed)


def remeasure_from(
    source: PairSource,
    kernel: str,
    rule: AcceptRule,
    place: str | None = None,
    *,
    seed: int,
    pairs: int,
) -> MeasurementPart:
    """``remeasure`` for pairs from anywhere."""
    once = attrs.evolve(rule, looks=(pairs,), screening=())
    times = source.take(once.looks, _to_the_end, seed)
    return measurement_part(kernel, times, once, place, seed=seed)


def _to_the_end(times: PairTimes) -> bool:
    return times.problem is not None


@frozen(eq=False)
class CollectedPairs(PairSource):
    """Pairs from process runs through the collector."""

    request: CandidateMeasurement
    tools: MeasureTools

    def take(self, looks: tuple[int, ...], decided: DecidedOnTimes, seed: int) -> PairTimes:
        request, tools = self.request, self.tools
        try:
            measured = measure_pairs(
                request.pairs(looks, seed),
                collector=tools.collector,
                host=tools.host,
                decided=lambda base, new: self._ask(base, new, looks[-1], decided),
                log=tools.log,
                step=tools.step,
            )
        except InterruptedRunError:
            raise
        except RplError as error:
            return self._problem(error)
        return times_of(measured.base, measured.new, request.kernel)

    def _ask(self, base: Side, new: Side, most: int, decided: DecidedOnTimes) -> bool:
        times = times_of(base, new, self.request.kernel)
        ratios = times.log_ratios
        gain = f", gain so far {-math.expm1(-self.request.rule.middle(ratios)):.1%}" if ratios else ""
        self.tools.progress(f"{len(ratios)} of at most {most} pairs{gain}")
        return decided(times)

    def _problem(self, error: RplError) -> PairTimes:
        """What the candidate did wrong; anything else goes on up."""
        if isinstance(error, NoVerdictError):
            return PairTimes(problem=error.fact)
        if self._failed_side() != "new" or not isinstance(error, (*_CANDIDATE_FAILED, BadDataError)):
            raise error
        failed = isinstance(error, _CANDIDATE_FAILED)
        return PairTimes(problem=f"the candidate failed: {error.fact}", candidate_failed=failed)

    def _failed_side(self) -> str | None:
        """The side of the run that did not finish."""
        if not is_comparison_directory(self.request.directory):
            return None
        observations = read_manifest(self.request.directory).observations
        last = observations[-1] if observations else None
        return last.side if last is not None and not last.complete else None


@frozen(eq=False)
class PairsAlone(PairSource):
    """Pairs of the kernel alone. ``run`` is given who is first in each of the next pairs."""

    run: Callable[[tuple[bool, ...]], KernelPairs]

    def take(self, looks: tuple[int, ...], decided: DecidedOnTimes, seed: int) -> PairTimes:
        times = PairTimes()
        for look in looks:
            done = times.kernel
            new = self.run(new_first(seed, look)[len(done) :])
            problem = new.problem or _why_no_pairs(new, look - len(done))
            if new.different:
                problem = f"the candidate computes something else: {problem}"
            pairs = done if problem is not None else (*done, *new.pairs)
            times = PairTimes(pairs, origin=new.origin, problem=problem, candidate_failed=new.different)
            if problem is not None or decided(times):
                break
        return times


def _why_no_pairs(pairs: KernelPairs, wanted: int) -> str | None:
    if len(pairs.pairs) != wanted:
        return f"{counted(len(pairs.pairs), 'pair')} came instead of {wanted}"
    if not all(0 < time < math.inf for pair in pairs.pairs for time in pair):
        return "some of the kernel's times are none"
    return None
