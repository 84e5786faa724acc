"""The search itself: ask the strategy, have it measured, remember, until the budget is used."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import attrs

from rpl_autotune.contracts import DevicePart, EndName, EvaluationPart, PhaseName
from rpl_autotune.interfaces import (
    Evaluated,
    Job,
    Outcome,
    PluginChoice,
    Proposed,
    Reading,
    Search,
    SearchSpace,
    Strategy,
    StrategyRequest,
    Timing,
    Variant,
)
from rpl_autotune.run_job import Cache, CachedReading, CacheKey, answer_job
from rpl_autotune.templates import Templates, command_digest
from rpl_core.errors import ApplicationError, BadDataError, MissingError, PluginError, RplError, UsageError
from rpl_core.interfaces.executor import Answer, Executor, ExecutorRequest, Task, Workers
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen
from rpl_measure.rank_tests import median

if TYPE_CHECKING:
    from typing_extensions import Self

    from rpl_autotune.options import SearchOptions


@frozen(eq=False)
class TuningRequest:
    """One search. ``budget`` counts evaluations, as settled for this space.

    ``scratch`` is where builds and recordings go; ``command_text`` and ``build_text`` are the templates as
    the user wrote them.
    """

    space: SearchSpace
    templates: Templates
    command_text: str
    build_text: str | None
    timing: Timing
    budget: int
    options: SearchOptions
    time_limit_s: float
    build_time_limit_s: float
    scratch: Path
    working_directory: Path
    plugins: PluginChoice


def _say_nothing(_line: str) -> None:
    return None


@frozen(eq=False)
class TuningTools:
    """The plugins and sinks of a search. ``cache`` is ``None`` where nothing is measured."""

    strategy: Strategy
    strategy_plugin: str
    executor: Executor
    executor_plugin: str
    executor_request: ExecutorRequest
    cache: Cache | None
    note: Callable[[str], None] = _say_nothing
    step: Callable[[str], None] = _say_nothing


# Jobs as tasks of an executor, inside the boundary: what its workers do wrong names their plugin.

_KINDS: dict[int, type[RplError]] = {64: UsageError, 65: BadDataError, 69: MissingError}


class JobWorkers:
    """Open places where jobs are measured; a context manager, as ``Workers``."""

    def __init__(self, workers: Workers, plugin: str, what: str) -> None:
        self._workers = workers
        self._plugin = plugin
        self._what = what
        self._jobs: dict[int, Job] = {}

    def places(self) -> tuple[str, ...]:
        """The devices that can take jobs now, by name."""
        with plugin_boundary(self._plugin, self._what):
            return tuple(require_value(place, str) for place in self._workers.places())

    def submit(self, job: Job) -> None:
        """Have ``job`` measured, on ``job.device`` where it names one."""
        self._jobs[job.number] = job
        with plugin_boundary(self._plugin, self._what):
            self._workers.submit(Task(job.number, answer_job, job.model_dump_json(), job.device))

    def wait(self, timeout_s: float | None) -> tuple[Outcome, ...]:
        """Outcomes that have come since. Raises what a worker could not measure at all."""
        with plugin_boundary(self._plugin, self._what):
            answers = tuple(require_value(answer, Answer) for answer in self._workers.wait(timeout_s))
            return tuple(self._outcome(answer) for answer in answers)

    def _outcome(self, answer: Answer) -> Outcome:
        job = self._jobs.pop(answer.number)
        if answer.lost:
            lost = tuple(Reading(index=v.index, state="lost", reason=answer.error) for v in job.variants)
            return Outcome(number=job.number, device=answer.place, readings=lost)
        if answer.error is not None:
            raise _KINDS.get(answer.exit_code, RplError)(f"{answer.place}: {answer.error}")
        outcome = Outcome.model_validate(json.loads(answer.text))
        if not outcome.readings:
            raise ValueError("an outcome without a reading")
        return outcome.model_copy(
            update={"readings": tuple(reading.checked() for reading in outcome.readings)}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with plugin_boundary(self._plugin, self._what):
            self._workers.close()


# Devices of one search: whose times count as they are, and by what those of others are corrected.


@attrs.define
class Devices:
    """References by device. The first device that has one is the standard."""

    _references: dict[str, float | None] = attrs.field(factory=dict)
    _evaluations: dict[str, int] = attrs.field(factory=dict)
    several: bool = False

    def is_known(self, device: str) -> bool:
        """Whether times of ``device`` can be used: it measured the reference, or there is no other device."""
        return device in self._references

    def learn(self, device: str, reference_ms: float | None) -> None:
        """``reference_ms`` is the reference configuration's time there, ``None`` where that failed."""
        self._references[device] = reference_ms

    def without_reference(self) -> str | None:
        """A device on which the reference configuration failed."""
        return next((name for name, reference in self._references.items() if reference is None), None)

    @property
    def standard(self) -> str | None:
        return next(iter(self._references), None)

    def correction(self, device: str) -> float | None:
        """The factor for times of ``device``; ``None``: they are not corrected."""
        own = self._references.get(device)
        first = self._references.get(self.standard or "")
        if not self.several or own is None or first is None:
            return None
        return first / own

    def count(self, device: str) -> None:
        self._evaluations[device] = self._evaluations.get(device, 0) + 1

    def parts(self) -> tuple[DevicePart, ...]:
        return tuple(
            DevicePart(
                name=name,
                evaluations=self._evaluations.get(name, 0),
                reference_ms=reference,
                correction=self.correction(name),
            )
            for name, reference in self._references.items()
        )


def _no_comparison(device: str, reason: str | None) -> ApplicationError:
    return ApplicationError(
        f"the reference configuration fails on {device}: {reason}",
        cause="times of several devices can be compared only by a configuration that runs on each",
        next_step="name one that runs with --default, or use one device",
    )


#: How often a search looks at its time and at new devices while nothing comes, seconds.
_LOOK_S = 2.0


@frozen
class _Asked:
    """A configuration on its way. ``counts`` is false for references that only calibrate a device."""

    index: int
    phase: PhaseName
    predicted_ms: float | None = None
    predicted_interval_ms: tuple[float, float] | None = None
    counts: bool = True


@attrs.define(eq=False)
class Tuning:
    """One search in progress. ``history`` is what strategies see, ``evaluations`` what is reported."""

    request: TuningRequest
    tools: TuningTools
    history: list[Evaluated] = attrs.field(factory=list)
    evaluations: list[EvaluationPart] = attrs.field(factory=list)
    devices: Devices = attrs.field(factory=Devices)
    origin: str | None = None
    began: float = attrs.field(factory=time.monotonic)
    _pending: dict[int, _Asked] = attrs.field(factory=dict)
    _held: list[tuple[_Asked, Outcome]] = attrs.field(factory=list)
    _calibrating: dict[str, int] = attrs.field(factory=dict)
    _jobs: int = 0
    _search: Search | None = None

    def run(self, workers: JobWorkers) -> EndName:
        """Measure until the budget or the time is used, or nothing is left; says which."""
        self._calibrate(workers)
        self._ask(workers, _Asked(self.request.space.default, "reference"))
        while True:
            end = self._fill(workers)
            if end is not None and not self._pending and not self._held:
                return end
            if not self._pending and workers.places():
                continue  # the cache had it; where no worker is left, one is waited for
            for outcome in workers.wait(_LOOK_S):
                self._take(workers, outcome)
            self._calibrate(workers)

    def next_job_number(self) -> int:
        self._jobs += 1
        return self._jobs

    @property
    def used_s(self) -> float:
        return time.monotonic() - self.began

    def _fill(self, workers: JobWorkers) -> EndName | None:
        """Keep every device busy; the reason why nothing more is asked, once that is so."""
        while True:
            end = self._end()
            if end is not None:
                return end
            room = min(len(workers.places()) - self._running(), self._left())
            if room <= 0:
                return None
            proposals = self._proposals(room)
            if not proposals:
                return None if self._pending or self._held else "exhausted"
            for proposed in proposals:
                asked = _Asked(
                    proposed.index,
                    proposed.phase.value,
                    proposed.predicted_ms,
                    proposed.predicted_interval_ms,
                )
                self._ask(workers, asked)

    def _running(self) -> int:
        return len(self._pending) + len(self._held)

    def _left(self) -> int:
        waiting = [*self._pending.values(), *(asked for asked, _ in self._held)]
        return self.request.budget - len(self.evaluations) - sum(asked.counts for asked in waiting)

    def _end(self) -> EndName | None:
        limit = self.request.options.time_budget_s
        if limit is not None and self.used_s > limit:
            return "time_budget"
        if len(self.evaluations) >= len(self.request.space):
            return "exhausted"
        return "budget" if self._left() <= 0 else None

    def _proposals(self, room: int) -> Sequence[Proposed]:
        """What the strategy says, without what is measured already or on its way."""
        waiting = [asked.index for asked in self._pending.values() if asked.counts]
        waiting += [asked.index for asked, _ in self._held if asked.counts]
        busy = {*waiting, *(item.index for item in self.history)}
        if self.request.options.exhaustive:
            return self._all(busy, room)
        name = self.tools.strategy.name
        with plugin_boundary(self.tools.strategy_plugin, f"strategy {name!r}"):
            if self._search is None:
                self._search = self.tools.strategy.start(self._strategy_request())
            answer = tuple(self._search.propose(tuple(self.history), tuple(waiting), room))
            found = [require_value(proposed, Proposed) for proposed in answer]
        new: dict[int, Proposed] = {}
        for proposed in found:
            if not 0 <= proposed.index < len(self.request.space):
                raise PluginError(
                    self.tools.strategy_plugin, f"strategy {name!r}", f"it proposed {proposed!r:.80}"
                )
            if proposed.index not in busy:
                new.setdefault(proposed.index, proposed)
        if found and not new:
            raise PluginError(
                self.tools.strategy_plugin, f"strategy {name!r}", "it proposed only what it had before"
            )
        return tuple(new.values())[:room]

    def _all(self, busy: set[int], room: int) -> Sequence[Proposed]:
        from rpl_autotune.interfaces import Phase

        free = (index for index in range(len(self.request.space)) if index not in busy)
        return [Proposed(index, Phase.EXPLORE) for index, _ in zip(free, range(room), strict=False)]

    def _strategy_request(self) -> StrategyRequest:
        request, options = self.request, self.request.options
        return StrategyRequest(
            request.space, request.budget, options.seed, options.seed_fraction, options.prune_factor
        )

    def _calibrate(self, workers: JobWorkers) -> None:
        """Every device measures the reference before its times count, unless it is the only one ever."""
        present = workers.places()
        self.devices.several = self.devices.several or len({*present, *self._calibrating}) > 1
        if not self.devices.several:
            return
        if (failed := self.devices.without_reference()) is not None:  # which was alone then
            raise _no_comparison(failed, f"now {present[-1]} joins it")
        for device in present:
            if not self.devices.is_known(device) and device not in self._calibrating:
                self._calibrating[device] = 0
                self._ask(workers, _Asked(self.request.space.default, "reference", counts=False), device)

    def _ask(self, workers: JobWorkers, asked: _Asked, device: str | None = None) -> None:
        variant = self.request.templates.variant(self.request.space, asked.index)
        for known in (device,) if device is not None else workers.places():
            reading = self._remembered(variant, asked.index, known)
            if reading is not None:
                self._accept(asked, reading, known, from_cache=True)
                return
        job = self.job((variant,), device)
        self._pending[job.number] = asked
        workers.submit(job)

    def job(
        self, variants: tuple[Variant, ...], device: str | None, rounds: int = 1, keep: str | None = None
    ) -> Job:
        """A job for the workers."""
        request = self.request
        return Job(
            number=self.next_job_number(),
            variants=variants,
            timing=request.timing,
            in_turns=keep is not None,
            rounds=rounds,
            device=device,
            working_directory=str(request.working_directory),
            scratch=str(request.scratch),
            time_limit_s=request.time_limit_s,
            build_time_limit_s=request.build_time_limit_s,
            plugins=request.plugins,
            keep=keep,
        )

    def _remembered(self, variant: Variant, index: int, device: str) -> Reading | None:
        cache = self.tools.cache
        if cache is None:
            return None
        failure = cache.build_failure(variant.build_key)
        if failure is not None and self.request.templates.sources is not None:
            return Reading(index=index, state="build_failed", reason=failure)
        binary = self._binary(variant)
        if binary is None:
            return None
        kept = cache.find(self._key(variant, binary, device), self.request.time_limit_s)
        return None if kept is None else kept.checked().model_copy(update={"index": index})

    def _binary(self, variant: Variant) -> str | None:
        assert self.tools.cache is not None
        if variant.build:
            known = self.request.templates.sources is not None
            return self.tools.cache.binary_of(variant.build_key) if known else None
        return command_digest(variant.command, self.request.working_directory)

    def _key(self, variant: Variant, binary: str, device: str) -> CacheKey:
        values = self.request.space.values(variant.index)
        return CacheKey(values, variant, self.request.timing, binary, device)

    def _take(self, workers: JobWorkers, outcome: Outcome) -> None:
        asked = self._pending.pop(outcome.number, None)
        if asked is None:
            return
        reading = outcome.readings[0]
        if reading.state == "lost":
            self._after_loss(workers, asked, outcome)
            return
        self._remember(reading, outcome.device)
        self._accept(asked, reading, outcome.device, from_cache=False)

    def _after_loss(self, workers: JobWorkers, asked: _Asked, outcome: Outcome) -> None:
        """What was meant for a lost device calibrates nothing; what it had measured is measured again."""
        if asked.counts:
            self._record(asked, outcome.readings[0], None, from_cache=False)
            return
        self._calibrating.pop(outcome.device, None)
        again = [held for held, late in self._held if late.device == outcome.device]
        self._held = [(held, late) for held, late in self._held if late.device != outcome.device]
        for held in again:
            self._ask(workers, held)

    def _remember(self, reading: Reading, device: str) -> None:
        cache = self.tools.cache
        if cache is None:
            return
        variant = self.request.templates.variant(self.request.space, reading.index)
        entry = CachedReading(reading, self.request.time_limit_s)
        key = None if reading.binary is None else self._key(variant, reading.binary, device)
        if key is not None or reading.state == "build_failed":
            cache.add(key, entry, variant.build_key, device)

    def _accept(self, asked: _Asked, reading: Reading, device: str, *, from_cache: bool) -> None:
        """Count a reading once its device can be compared with the others."""
        if not asked.counts or (not self.devices.several and not self.devices.is_known(device)):
            self._learn(asked, reading, device)
        if asked.counts and not self.devices.is_known(device):
            self._held.append((asked, Outcome(number=0, device=device, readings=(reading,))))
        elif asked.counts:
            self._record(asked, reading, device, from_cache=from_cache)
        self._release(device)

    def _learn(self, asked: _Asked, reading: Reading, device: str) -> None:
        ok = reading.state == "ok" and asked.index == self.request.space.default
        if self.devices.several and not ok:
            raise _no_comparison(device, reading.reason)
        self.devices.learn(device, median(reading.times_ms) if ok else None)

    def _release(self, device: str) -> None:
        """Count what has waited for the reference of ``device``."""
        if not self.devices.is_known(device):
            return
        ready = [(asked, late) for asked, late in self._held if late.device == device]
        self._held = [(asked, late) for asked, late in self._held if late.device != device]
        for asked, late in ready:
            self._record(asked, late.readings[0], device, from_cache=False)

    def _record(self, asked: _Asked, reading: Reading, device: str | None, *, from_cache: bool) -> None:
        correction = None if device is None else self.devices.correction(device)
        runtime = median(reading.times_ms) * (correction or 1.0) if reading.state == "ok" else None
        self._require_one_origin(reading)
        if device is not None:
            self.devices.count(device)
        self.history.append(Evaluated(asked.index, runtime))
        exhaustive = self.request.options.exhaustive
        self.evaluations.append(
            EvaluationPart(
                number=len(self.evaluations) + 1,
                parameters=self.request.space.values(asked.index),
                phase="all" if exhaustive and asked.phase != "reference" else asked.phase,
                state=reading.state,
                runtime_ms=runtime,
                times_ms=reading.times_ms,
                device=device,
                correction=correction,
                predicted_ms=asked.predicted_ms,
                predicted_interval_ms=asked.predicted_interval_ms,
                from_cache=from_cache,
                reason=reading.reason,
            )
        )
        self.tools.step(self._progress())

    def _require_one_origin(self, reading: Reading) -> None:
        if reading.origin is None:
            return
        if self.origin is None:
            self.origin = reading.origin
        if self.origin != reading.origin:
            raise BadDataError(
                f"one time is {self.origin} and another one {reading.origin}: they can't be compared",
                cause="the program or the profiler changed during the search",
            )

    def _progress(self) -> str:
        last = self.evaluations[-1]
        times = [item.runtime_ms for item in self.history if item.runtime_ms is not None]
        best = f"best {min(times):.6g} ms" if times else "none has run yet"
        said = f"{last.runtime_ms:.6g} ms" if last.runtime_ms is not None else last.state
        return f"{len(self.evaluations)}/{self.request.budget} {last.phase}: {said}; {best}"
