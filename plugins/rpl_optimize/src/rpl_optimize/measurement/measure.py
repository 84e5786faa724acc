"""Measure a candidate against its baseline, and an accepted one again with fresh pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
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
from rpl_core.profiling import StepSink
from rpl_core.text import counted
from rpl_core.values import frozen
from rpl_measure.interleaved import MeasureRequest, measure_pairs
from rpl_measure.manifest import is_comparison_directory, read_manifest
from rpl_measure.sequential import AcceptRule, Decision, decide, new_first
from rpl_measure.side import Side
from rpl_optimize.contracts.optimize import MeasurementPart
from rpl_optimize.measurement.times import DecidedOnTimes, PairSource, PairTimes, measurement_part, times_of

if TYPE_CHECKING:
    from rpl_core.plugins.host import PluginHost
    from rpl_optimize.interfaces.equivalence import KernelPairs

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
