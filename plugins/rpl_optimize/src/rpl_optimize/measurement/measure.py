"""Measure a candidate against its baseline: times in pairs, again with fresh ones, and memory traffic."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.formulas import counters_of
from rpl_analysis.counters.join import JoinRules, join_counters
from rpl_analysis.counters.quantities import derive_quantities
from rpl_core.errors import (
    ApplicationError,
    BadDataError,
    InterruptedRunError,
    NoVerdictError,
    RplError,
    TimeLimitError,
)
from rpl_core.ingest import load_recording
from rpl_core.interfaces.collector import Collector, CollectRequest, LineSink
from rpl_core.model.device import DeviceModel
from rpl_core.model.metric import Origin
from rpl_core.profiling import ProfileSession, StepSink
from rpl_core.run_directory import RunDirectory
from rpl_core.text import counted, shorten
from rpl_core.values import frozen
from rpl_measure.interleaved import MeasureRequest, measure_pairs
from rpl_measure.manifest import is_comparison_directory, read_manifest
from rpl_measure.rank_tests import median, robust_cv
from rpl_measure.samples import ItemKey, Kind, Sample, samples_of
from rpl_measure.sequential import AcceptRule, Decision, Look, decide, last_look, new_first
from rpl_measure.series import find_drift, find_modes
from rpl_measure.side import Side, check_comparable
from rpl_optimize.contracts import GuardPart, LookPart, MeasurementPart, ModesPart, RulePart

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
    # Whether synthetic times count is the verdict's question; here it is whether the sides belong together.
    try:
        blocking = check_comparable(base, new, allow_synthetic=True, forced=False).blocking
        problem = "; ".join(blocking) or None
    except BadDataError as error:
        problem = error.fact
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


# The gate on memory traffic: a candidate must not move over 5 % more bytes to and from HBM.

_TRAFFIC = "hbm-traffic"
#: Most that the traffic of a kernel may grow, as a fraction (the architectural regression gate).
_MOST_TRAFFIC_GROWTH = 0.05
#: Other kernels count from this part of the application's traffic on (chosen: below, page walks and other
#: passengers outweigh them).
_LEAST_TRAFFIC_PART = 0.05
_TRAFFIC_QUANTITIES = ("hbm_read_bytes", "hbm_write_bytes")
_DEVICE_SOURCE = "the baseline's recording"


@frozen
class TrafficMeasurement:
    """``kernel`` is the exact displayed name; ``directory`` gets one run directory per side."""

    kernel: str
    base: tuple[str, ...]
    new: tuple[str, ...]
    directory: Path
    device: DeviceModel | None
    time_limit_s: float | None = None


@frozen
class _Traffic:
    """Bytes of one kernel in a whole run, and how they were found out."""

    bytes: float
    how: tuple[str, ...]


class _UnknownTrafficError(Exception):
    """Why there is nothing to compare."""


def measure_traffic(request: TrafficMeasurement, tools: MeasureTools) -> GuardPart:
    """Run both commands once per counter pass and compare the bytes of each kernel, summed over its launches.

    The kernel itself always counts, others from 5 % of the baseline's traffic on. ``passed`` is ``None`` with
    a reason where the counters can't be had. Counters are read under a profiler that serialises dispatches:
    they give bytes here and never times. Raises ``InterruptedRunError``.
    """
    try:
        before = _count_traffic("base", request.base, request, tools)
        after = _count_traffic("new", request.new, request, tools)
        return _compare_traffic(request.kernel, before, after)
    except InterruptedRunError:
        raise
    except _UnknownTrafficError as unknown:
        return GuardPart(guard=_TRAFFIC, passed=None, reason=str(unknown))
    except RplError as error:
        return GuardPart(guard=_TRAFFIC, passed=None, reason=f"the traffic can't be counted: {error.fact}")


def _count_traffic(
    label: str, command: tuple[str, ...], request: TrafficMeasurement, tools: MeasureTools
) -> Mapping[str, _Traffic]:
    device = request.device
    if device is None:
        raise _UnknownTrafficError("no installed plugin knows the counters of this device")
    counters = _traffic_counters(device)
    if not counters:
        raise _UnknownTrafficError(f"no counters for HBM traffic are known of {device.name}")
    asked = CollectRequest(
        command=command, runs=0, device=device, counters=counters, time_limit_s=request.time_limit_s
    )
    directory = _count(label, asked, request.directory / label, tools)
    recording = load_recording((directory,), tools.host.catalog.readers().contributions)
    joined = join_counters(recording, JoinRules.of(device, device.architecture_facts))
    if not joined.kernels:
        raise _UnknownTrafficError(f"the counter passes of {label} hold no usable dispatch")
    origin = Origin.weakest([trace.origin for trace in recording.counter_passes])
    by_kernel = {}
    for name, kernel in joined.kernels.items():
        quantities, _ = derive_quantities(kernel, device, origin)
        metrics = [quantities.per_launch(quantity) for quantity in _TRAFFIC_QUANTITIES]
        known = [(m.value, m.formula or "") for m in metrics if m is not None and m.value is not None]
        # Reads alone would call a kernel that writes more no worse.
        if len(known) == len(_TRAFFIC_QUANTITIES):
            each_launch = sum(value for value, _ in known)
            by_kernel[name] = _Traffic(each_launch * kernel.launches, tuple(formula for _, formula in known))
    return by_kernel


def _traffic_counters(device: DeviceModel) -> tuple[str, ...]:
    """What the preferred formulas need, named as the device's plugin recommends to collect it."""
    quantities = [q for q in device.counter_map.quantities if q.name in _TRAFFIC_QUANTITIES and q.formulas]
    if len(quantities) < len(_TRAFFIC_QUANTITIES):
        return ()
    needed = dict.fromkeys(name for q in quantities for name in counters_of(q.formulas[0]))
    recommended = {name.removesuffix("_sum"): name for name in device.counter_map.recommended}
    return tuple(recommended.get(name, name) for name in needed)


def _count(label: str, asked: CollectRequest, directory: Path, tools: MeasureTools) -> Path:
    plan = tools.collector.plan(asked)
    if not plan.passes:
        facts = "; ".join(d.fact for d in plan.diagnostics)
        raise _UnknownTrafficError(f"no counter pass was planned{': ' + facts if facts else ''}")
    run = RunDirectory.create(
        directory,
        command=asked.command,
        collector=tools.collector.name,
        device=asked.device.name if asked.device else None,
        device_source=_DEVICE_SOURCE,
        options={"time_limit_s": asked.time_limit_s},
        plan=plan.passes,
        plugins=(),
    )

    def step(name: str) -> None:
        tools.step(f"{label} {name}")

    session = ProfileSession(run, tools.collector, tools.host.relay, tools.log, step)
    session.start()
    try:
        session.execute(plan)
    except (InterruptedRunError, KeyboardInterrupt):
        raise session.interrupted() from None
    session.finish(None)
    failed = [entry for entry in run.manifest.passes if entry.state == "failed"]
    if failed:
        raise _UnknownTrafficError(f"counter pass {failed[0].name} of {label} failed: {failed[0].error}")
    return run.path


def _compare_traffic(kernel: str, before: Mapping[str, _Traffic], after: Mapping[str, _Traffic]) -> GuardPart:
    for side, traffic in (("baseline", before), ("candidate", after)):
        if kernel not in traffic:
            raise _UnknownTrafficError(f"the HBM traffic of the kernel is unknown in the {side}")
    if before[kernel].how != after[kernel].how:
        raise _UnknownTrafficError("the traffic of both sides was found by different formulas")
    grown = []
    whole = sum(traffic.bytes for traffic in before.values())
    for name, old in before.items():
        new = after.get(name)
        counts = name == kernel or old.bytes >= _LEAST_TRAFFIC_PART * whole
        if counts and new is not None and new.bytes > (1 + _MOST_TRAFFIC_GROWTH) * old.bytes:
            grown.append(f"{shorten(name, 60)} moves {_change(old.bytes, new.bytes)}")
    reason = "; ".join(grown) or f"the kernel moves {_change(before[kernel].bytes, after[kernel].bytes)}"
    return GuardPart(guard=_TRAFFIC, passed=not grown, reason=reason)


def _change(old: float, new: float) -> str:
    change = f"{new / old - 1:+.1%}" if old > 0 else ("+0.0%" if new == 0 else "from nothing")
    return f"{new:.4g} bytes to and from HBM instead of {old:.4g} ({change})"
