"""What a search needs to know, and who works for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rpl_autotune.evaluation.run_job import answer_job
from rpl_autotune.evaluation.templates import Templates
from rpl_autotune.interfaces.job import Job, Outcome, PluginChoice, Reading, Timing
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.interfaces.executor import Answer, Executor, ExecutorRequest, Task, Workers
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self

    from rpl_autotune.cache import Cache
    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.interfaces.strategy import Strategy


@frozen(eq=False)
class TuningRequest:
    """One search. ``budget`` counts evaluations; ``final_rounds`` 0 leaves the final measurement out.

    ``scratch`` is where builds and recordings go; ``command_text`` and ``build_text`` are the templates as
    the user wrote them.
    """

    space: SearchSpace
    templates: Templates
    command_text: str
    build_text: str | None
    timing: Timing
    budget: int
    time_budget_s: float | None
    seed: int
    seed_fraction: float
    prune_factor: float
    exhaustive: bool
    time_limit_s: float
    build_time_limit_s: float
    final_rounds: int
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
        return outcome.model_copy(update={"readings": tuple(one.checked() for one in outcome.readings)})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with plugin_boundary(self._plugin, self._what):
            self._workers.close()
