"""The workers of an executor inside the boundary: what they do wrong names their plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_autotune.interfaces.executor import Workers
from rpl_autotune.interfaces.job import Outcome
from rpl_core.model.value_checks import require_value
from rpl_core.plugins.boundary import plugin_boundary

if TYPE_CHECKING:
    from rpl_autotune.interfaces.job import Job

__all__ = ["GuardedWorkers"]


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
