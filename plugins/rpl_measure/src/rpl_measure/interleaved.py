"""Measure two commands in pairs, in an order drawn at random, after one discarded run of each.

Slow drift of clock and temperature hits both sides of a pair alike, and no disturbance can keep time with
the order. Each observation is one process run
through the collector, kept in the run directory of its side; looks at fixed numbers of pairs may end it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import attrs

from rpl_core.errors import (
    ApplicationError,
    BadDataError,
    InterruptedRunError,
    NoVerdictError,
    RplError,
    UsageError,
)
from rpl_core.interfaces.collector import CollectionPlan, Collector, CollectRequest, LineSink
from rpl_core.profiling import ProfileSession, StepSink
from rpl_core.run_directory import RunDirectory, is_run_directory, load_manifest, make_empty
from rpl_core.values import frozen
from rpl_measure.manifest import (
    FOLDERS,
    WARM_UP,
    WARM_UP_FOLDERS,
    ComparisonLog,
    Observation,
    complete_pairs,
    repeated_pairs,
)
from rpl_measure.samples import RunObservation, Statistic
from rpl_measure.sequential import LOOKS, new_first
from rpl_measure.side import RunFacts, Side, observe_pass

if TYPE_CHECKING:
    from typing_extensions import Self

    from rpl_core.plugins.host import PluginHost


# One side of an interleaved measurement: its run directory and the runs taken so far.


_DEVICE_SOURCE = "not looked up before the runs"


@frozen(eq=False)
class ArmSettings:
    """What all arms of a measurement share."""

    collector: Collector
    host: PluginHost
    statistic: Statistic
    trace_dependencies: bool
    time_limit_s: float | None
    log: LineSink
    step: StepSink


class Arm:
    """Context manager around one run directory; leaving it closes the directory truthfully.

    ``label`` is "base" or "new". Nothing is planned in the manifest before its turn comes. A directory that
    holds runs of this side already is gone on with; ``counted`` are the runs of complete pairs in it.
    """

    def __init__(
        self,
        label: str,
        command: tuple[str, ...],
        directory: Path,
        most_runs: int,
        settings: ArmSettings,
        counted: tuple[str, ...] = (),
    ) -> None:
        self.label = label
        self._command = command
        self._settings = settings
        request = CollectRequest(
            command=command,
            runs=most_runs,
            trace_dependencies=settings.trace_dependencies,
            time_limit_s=settings.time_limit_s,
        )
        self._plan = settings.collector.plan(request)
        self._run = RunDirectory.reopen(directory) if is_run_directory(directory) else self._create(directory)
        self._session = ProfileSession(
            self._run, settings.collector, settings.host.relay, settings.log, self._say
        )
        self._taken = len(self._run.manifest.passes)
        self._counted = list(counted)
        self._observed: list[tuple[RunObservation, RunFacts]] = []

    def _create(self, directory: Path) -> RunDirectory:
        records = self._settings.host.records
        return RunDirectory.create(
            directory,
            command=self._command,
            collector=self._settings.collector.name,
            device=None,
            device_source=_DEVICE_SOURCE,
            options={
                "focus_critical": self._settings.trace_dependencies,
                "time_limit_s": self._settings.time_limit_s,
            },
            plan=(),
            plugins=tuple(f"{r.name} {r.version or '?'}" for r in records if r.status == "loaded"),
        )

    def _say(self, name: str) -> None:
        self._settings.step(f"{self._run.path.name} {name}")

    def __enter__(self) -> Self:
        self._session.diagnostics += self._plan.diagnostics
        self._session.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is None:
            self._session.finish(None)
        elif isinstance(error, (InterruptedRunError, KeyboardInterrupt)):
            self._session.finish("interrupted")
        else:
            self._session.finish(error.fact if isinstance(error, RplError) else "internal error")

    @property
    def last_name(self) -> str:
        """The run that was started last."""
        return self._plan.passes[max(self._taken - 1, 0)].name

    def run_next(self) -> str:
        """Execute the next run and return its name. Raises what made it fail."""
        planned = self._plan.passes[self._taken]
        self._taken += 1
        self._run.add_passes((planned,), None, _DEVICE_SOURCE)
        self._session.execute(CollectionPlan((planned,)))
        if self._session.failure is not None:
            raise self._session.failure
        return planned.name

    def count(self, name: str) -> None:
        """The run ``name`` is one of a complete pair."""
        self._counted.append(name)

    def side(self) -> Side:
        """All runs that count so far. Each is read once, when it is first asked for."""
        readers = self._settings.host.catalog.readers().contributions
        entries = {entry.name: entry for entry in self._run.manifest.passes}
        for name in self._counted[len(self._observed) :]:
            self._observed.append(
                observe_pass(
                    self._run.path,
                    entries[name],
                    readers,
                    self._settings.statistic,
                    include_copies=self._settings.trace_dependencies,
                )
            )
        return Side(
            label=self.label,
            runs=tuple(run for run, _ in self._observed),
            facts=tuple(facts for _, facts in self._observed),
            manifests=(self._run.manifest,),
            command=self._run.manifest.command,
        )


#: Asked at each look with the pairs so far; true ends the measurement.
Decided = Callable[["Side", "Side"], bool]
_SIDES: tuple[Literal["base", "new"], ...] = ("base", "new")
#: Of one measurement: pairs that interruptions hit and that are measured again. Who kills whatever looks bad
#: chooses among so many (docs/reference/statistics.md, rule 3, says what that is worth); complete pairs stay.
MOST_REPEATED_PAIRS = 1


@frozen
class MeasureRequest:
    """What to measure. ``directory`` must not hold anything yet, unless it is ``opened``; times are seconds.

    ``seed`` is what the order of the pairs is drawn from. ``own_looks`` take the place of the usual ones; the
    last one is at ``most_pairs``.
    """

    base: tuple[str, ...]
    new: tuple[str, ...]
    directory: Path
    most_pairs: int = LOOKS[-1]
    trace_dependencies: bool = False
    time_limit_s: float | None = None  # of one process run
    total_time_s: float | None = None  # no pair starts later
    statistic: Statistic = Statistic.SUM
    seed: int = attrs.field(factory=lambda: secrets.randbits(32))
    own_looks: tuple[int, ...] = ()
    warm_up: bool = True  # not where both programs have just run
    opened: bool = False  # by ``open_pairs``: ``directory`` holds this very measurement, as far as it came

    @property
    def looks(self) -> tuple[int, ...]:
        """The usual looks below ``most_pairs``, and one at the end."""
        if self.own_looks:
            return self.own_looks
        return (*(look for look in LOOKS if look < self.most_pairs), self.most_pairs)


@frozen(eq=False)
class MeasuredPairs:
    """Both sides with their runs in pair order, and how the measurement ended."""

    base: Side
    new: Side
    looks: tuple[int, ...]
    out_of_time: bool

    @property
    def pairs(self) -> int:
        return len(self.base.runs)


def open_pairs(request: MeasureRequest) -> None:
    """Write the measurement down before anything of it runs, so that it can go on whenever it was begun."""
    make_empty(request.directory)
    ComparisonLog.create(request.directory, request.base, request.new, request.looks, seed=request.seed)


def measure_pairs(
    request: MeasureRequest,
    *,
    collector: Collector,
    host: PluginHost,
    decided: Decided,
    log: LineSink,
    step: StepSink,
) -> MeasuredPairs:
    """Run pairs until ``decided``, the last look, or the end of the total time.

    A failing run ends it with that run's error; Ctrl-C raises ``InterruptedRunError``. The comparison
    directory then says so and keeps what finished: complete pairs can be judged later.

    A measurement that was ``opened`` goes on where it stopped: complete pairs count, whatever they say, and
    the one that was under way is measured again, ``MOST_REPEATED_PAIRS`` times at most. Both programs are
    warmed up again. Raises ``BadDataError`` where its directory is not as it was left.
    """
    if request.most_pairs < 1:
        raise UsageError(f"at least one pair is needed, not {request.most_pairs}")
    if not request.opened:
        open_pairs(request)
    record = ComparisonLog.reopen(request.directory)
    if (record.manifest.seed, record.manifest.looks) != (request.seed, request.looks):
        raise BadDataError(
            f"{request.directory} holds another measurement", next_step="measure into a new directory"
        )
    settings = ArmSettings(
        collector=collector,
        host=host,
        statistic=request.statistic,
        trace_dependencies=request.trace_dependencies,
        time_limit_s=request.time_limit_s,
        log=log,
        step=step,
    )
    try:
        measured = _Measurement(request, record, settings, decided).run()
    except (InterruptedRunError, KeyboardInterrupt):
        record.finish("interrupted")
        raise InterruptedRunError(
            f"interrupted; complete pairs are kept in {request.directory}",
            next_step=f"judge them with `rpl compare {request.directory}`",
        ) from None
    except RplError as error:
        record.finish(error.one_line())
        raise
    record.finish(None)
    return measured


class _Measurement:
    """One measurement in progress."""

    def __init__(
        self, request: MeasureRequest, record: ComparisonLog, settings: ArmSettings, decided: Decided
    ) -> None:
        self._request = request
        self._record = record
        self._settings = settings
        self._decided = decided
        self._started = time.monotonic()

    def run(self) -> MeasuredPairs:
        commands = {"base": self._request.base, "new": self._request.new}
        goes_on = bool(self._record.manifest.observations)
        self._note_what_was_struck()
        done = len(complete_pairs(self._record.manifest))
        if self._request.warm_up or goes_on:
            for label, command in commands.items():
                self._warm_up(label, command)
        with (
            self._arm("base", commands["base"]) as base,
            self._arm("new", commands["new"]) as new,
        ):
            out_of_time = self._take_pairs(base, new, done)
            return MeasuredPairs(base.side(), new.side(), self._request.looks, out_of_time)

    def _arm(self, label: str, command: tuple[str, ...]) -> Arm:
        directory = self._request.directory / FOLDERS[label]
        counted = tuple(pair[label] for pair in complete_pairs(self._record.manifest))
        most = self._request.most_pairs + MOST_REPEATED_PAIRS
        return Arm(label, command, directory, most, self._settings, counted)

    def _note_what_was_struck(self) -> None:
        """Runs that began and are not written down belong to the pair that was under way.

        A candidate that failed by itself has failed; only what an interruption hit is measured again.
        """
        pair = len(complete_pairs(self._record.manifest))
        told = {
            (observation.side, observation.run)
            for observation in self._record.manifest.observations
            if observation.pair >= 0
        }
        for label in _SIDES:
            directory = self._request.directory / FOLDERS[label]
            for entry in load_manifest(directory).passes if is_run_directory(directory) else ():
                if (label, entry.name) not in told:
                    complete = entry.state == "complete"
                    self._record.add(Observation(pair=pair, side=label, run=entry.name, complete=complete))
                if label == "new" and entry.state == "failed" and entry.exit_status:
                    raise ApplicationError(f"it failed before the interruption: {entry.error}")
        manifest = self._record.manifest
        under_way = any(
            observation.pair == len(complete_pairs(manifest)) for observation in manifest.observations
        )
        if repeated_pairs(manifest) + under_way > MOST_REPEATED_PAIRS:
            raise NoVerdictError(
                "another interruption hit a pair under way, and who repeats each one chooses among them",
                next_step="start a new session",
            )

    def _warm_up(self, label: str, command: tuple[str, ...]) -> None:
        """One run whose times are thrown away: caches, clocks and code objects are cold in it."""
        directory, again = self._request.directory / WARM_UP_FOLDERS[label], 2
        while directory.exists():
            directory = self._request.directory / f"{WARM_UP_FOLDERS[label]}-again{again}"
            again += 1
        with Arm(label, command, directory, 1, self._settings) as arm:
            self._observe(arm, WARM_UP)

    def _take_pairs(self, base: Arm, new: Arm, done: int) -> bool:
        """Those behind the first ``done``; true when the total time ended it."""
        if done in self._request.looks and self._decided(base.side(), new.side()):
            return False
        for pair, swapped in enumerate(new_first(self._request.seed, self._request.most_pairs)):
            if pair < done:
                continue
            if self._is_out_of_time():
                if pair == 0:
                    raise NoVerdictError(
                        f"the warm-up took all of the {self._request.total_time_s:g} s",
                        next_step="raise --total-time",
                    )
                return True
            arms = (new, base) if swapped else (base, new)
            names = [self._observe(arm, pair) for arm in arms]
            for arm, name in zip(arms, names, strict=True):
                arm.count(name)
            if pair + 1 in self._request.looks and self._decided(base.side(), new.side()):
                break
        return False

    def _observe(self, arm: Arm, pair: int) -> str:
        name = None
        try:
            name = arm.run_next()
            return name
        finally:
            observation = Observation(
                pair=pair, side=arm.label, run=name or arm.last_name, complete=name is not None
            )
            self._record.add(observation)

    def _is_out_of_time(self) -> bool:
        total = self._request.total_time_s
        return total is not None and time.monotonic() - self._started > total
