"""The executor `recorded`: nothing runs, times are those of a recorded space (``--recorded FILE``)."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_autotune.interfaces.job import Job, Outcome, Reading
from rpl_core.errors import UsageError
from rpl_core.interfaces.executor import Answer, Executor, ExecutorRequest, Task, Workers
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces.space import SearchSpace
    from rpl_autotune.recorded_space import RecordedSpace

__all__ = ["RecordedExecutor", "RecordedRequest"]


@frozen
class RecordedRequest(ExecutorRequest):
    """``recording`` is a recorded space, and ``space`` what is searched."""

    recording: str | None = None
    space: SearchSpace | None = attrs.field(default=None, repr=False)


class RecordedExecutor(Executor):
    """Answers from a cache file of Kernel Tuner or a T4 file: to try strategies without a GPU."""

    name = "recorded"
    summary = "answers from a recorded space instead of running anything (--recorded FILE)"

    def open(self, request: ExecutorRequest) -> Workers:
        from rpl_autotune.recorded_space import read_recorded

        if not isinstance(request, RecordedRequest) or not request.recording or not request.space:
            raise UsageError(
                "the executor 'recorded' needs a recorded space", next_step="add --recorded FILE"
            )
        return _RecordedWorkers(read_recorded(Path(request.recording)), request)


class _RecordedWorkers(Workers):
    def __init__(self, recorded: RecordedSpace, request: RecordedRequest) -> None:
        assert request.space is not None
        self._device = recorded.device or "recorded device"
        self._space = request.space
        self._recorded = recorded
        self._done: deque[Answer] = deque()

    def places(self) -> tuple[str, ...]:
        return (self._device,)

    def submit(self, task: Task) -> None:
        job = Job.model_validate_json(task.argument)
        readings = tuple(self._reading(variant.index) for variant in job.variants)
        outcome = Outcome(number=job.number, device=self._device, readings=readings)
        self._done.append(Answer(task.number, self._device, outcome.model_dump_json()))

    def _reading(self, index: int) -> Reading:
        result = self._recorded.result(self._space.values(index))
        if result is None:
            return Reading(index=index, state="failed", reason="the recording has no such configuration")
        if result.time_ms is None:
            return Reading(index=index, state="failed", reason=result.reason or "it failed when recorded")
        # The file's own time, whatever it was made from: its smallest one is the best that can be found.
        return Reading(index=index, state="ok", times_ms=(result.time_ms,), origin="measured")

    def wait(self, timeout_s: float | None) -> tuple[Answer, ...]:
        _ = timeout_s
        done = tuple(self._done)
        self._done.clear()
        return done

    def close(self) -> None:
        self._done.clear()
