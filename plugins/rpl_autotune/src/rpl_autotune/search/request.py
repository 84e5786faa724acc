"""What a search needs to know, and who works for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_autotune.interfaces.executor import Workers
from rpl_autotune.interfaces.job import Outcome
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.cache import Cache
    from rpl_autotune.evaluation.templates import Templates
    from rpl_autotune.interfaces.executor import Executor, ExecutorRequest
    from rpl_autotune.interfaces.job import Job, PluginChoice, Timing
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


# The workers of an executor inside the boundary: what they do wrong names their plugin.


class GuardedWorkers(Workers):
    """Passes every call on and looks at the answer."""

    def __init__(self, workers: Workers, plugin: str, what: str) -> None:
        self._workers = workers
        self._plugin = plugin
        self._what = what

    def devices(self) -> tuple[str, ...]:
        with plugin_boundary(self._plugin, self._what):
            return tuple(require_value(device, str) for device in self._workers.devices())

    def submit(self, job: Job) -> None:
        with plugin_boundary(self._plugin, self._what):
            self._workers.submit(job)

    def wait(self, timeout_s: float | None) -> tuple[Outcome, ...]:
        with plugin_boundary(self._plugin, self._what):
            outcomes = tuple(require_value(outcome, Outcome) for outcome in self._workers.wait(timeout_s))
            if not all(outcome.readings for outcome in outcomes):
                raise ValueError("an outcome without a reading")
            return tuple(
                outcome.model_copy(update={"readings": tuple(one.checked() for one in outcome.readings)})
                for outcome in outcomes
            )

    def close(self) -> None:
        with plugin_boundary(self._plugin, self._what):
            self._workers.close()
