"""Executors of this machine: a worker process for each device, or a recorded space."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_autotune.interfaces.executor import Executor, Workers
from rpl_autotune.interfaces.job import Outcome, Reading
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError

if TYPE_CHECKING:
    from rpl_autotune.interfaces.executor import ExecutorRequest
    from rpl_autotune.interfaces.job import Job
    from rpl_autotune.recorded_space import RecordedSpace


_KINDS: dict[int, type[RplError]] = {64: UsageError, 65: BadDataError, 69: MissingError}


def worker_error(device: str, fact: str, exit_code: int) -> RplError:
    """The error of a worker with its exit code kept."""
    return _KINDS.get(exit_code, RplError)(f"{device}: {fact}")


# The executor `local`: one worker process for each device of this machine, one job at a time on each.

#: How ROCm is told which GPUs a process may see (ROCm documentation, "GPU isolation techniques").
VISIBLE_DEVICES = "ROCR_VISIBLE_DEVICES"
_WORKER = "rpl_autotune.executors.device_worker"
_STOP_S = 10.0


class LocalExecutor(Executor):
    """Runs on this machine; ``--devices 0,1`` gives one process per GPU, without it there is one."""

    name = "local"
    summary = "one process per device of this machine"

    def open(self, request: ExecutorRequest) -> Workers:
        return _LocalWorkers(request.devices)


@attrs.define
class _Process:
    device: str
    child: subprocess.Popen[str]
    busy: Job | None = None


class _LocalWorkers(Workers):
    def __init__(self, devices: tuple[str, ...]) -> None:
        self._answers: queue.Queue[tuple[str, str | None]] = queue.Queue()
        self._waiting: list[Job] = []
        host = socket.gethostname()
        self._processes: dict[str, _Process] = {}
        try:
            for device in devices or (None,):
                seen = device if device is not None else os.environ.get(VISIBLE_DEVICES, "all")
                self._start(f"{host}:{seen}", device)
        except BaseException:
            self.close()
            raise

    def _start(self, name: str, device: str | None) -> None:
        environment = dict(os.environ) if device is None else {**os.environ, VISIBLE_DEVICES: device}
        child = subprocess.Popen(
            [sys.executable, "-m", _WORKER, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C comes to the search, which ends its workers in order
        )
        self._processes[name] = _Process(name, child)
        threading.Thread(target=self._listen, args=(name, child), daemon=True).start()

    def _listen(self, name: str, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            self._answers.put((name, line))
        self._answers.put((name, None))

    def devices(self) -> tuple[str, ...]:
        return tuple(self._processes)

    def submit(self, job: Job) -> None:
        self._waiting.append(job)
        self._hand_out()

    def _hand_out(self) -> None:
        for process in self._processes.values():
            fits = (job for job in self._waiting if job.device in (None, process.device))
            job = next(fits, None) if process.busy is None else None
            if job is not None:
                self._waiting.remove(job)
                process.busy = job
                self._tell(process, job)

    def _tell(self, process: _Process, job: Job) -> None:
        assert process.child.stdin is not None
        try:
            process.child.stdin.write(job.model_dump_json() + "\n")
            process.child.stdin.flush()
        except BrokenPipeError:
            raise self._died(process) from None

    def wait(self, timeout_s: float | None) -> tuple[Outcome, ...]:
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                left = None if end is None else max(end - time.monotonic(), 0.0)
                name, line = self._answers.get(timeout=left)
            except queue.Empty:
                return ()
            process = self._processes[name]
            if line is None:
                raise self._died(process)
            answer = json.loads(line)
            if "ready" not in answer:
                process.busy = None
                outcome = _outcome(name, answer)
                self._hand_out()
                return (outcome,)

    def _died(self, process: _Process) -> RplError:
        status = process.child.wait()
        return RplError(
            f"the worker of {process.device} ended by itself (status {status})",
            cause="it was killed, perhaps because memory ran out",
            next_step="run the same command again: what was measured is kept",
        )

    def close(self) -> None:
        """Workers get SIGTERM, on which they stop the application that they run; later they are killed."""
        for process in self._processes.values():
            process.child.terminate()
        for process in self._processes.values():
            try:
                process.child.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.child.kill()
                process.child.wait()
            for stream in (process.child.stdin, process.child.stdout):
                _close(stream)


def _close(stream: Any) -> None:
    with suppress(OSError):  # what was written last goes nowhere: the worker is gone
        stream.close()


def _outcome(device: str, answer: dict[str, Any]) -> Outcome:
    if "error" in answer:
        raise worker_error(device, answer["error"], answer["exit_code"])
    return Outcome.model_validate(answer)


# The executor `recorded`: nothing runs, times are those of a recorded space (``--recorded FILE``).


class RecordedExecutor(Executor):
    """Answers from a cache file of Kernel Tuner or a T4 file: to try strategies without a GPU."""

    name = "recorded"
    summary = "answers from a recorded space instead of running anything (--recorded FILE)"

    def open(self, request: ExecutorRequest) -> Workers:
        from rpl_autotune.recorded_space import read_recorded

        if request.recording is None or request.space is None:
            raise UsageError(
                "the executor 'recorded' needs a recorded space", next_step="add --recorded FILE"
            )
        return _RecordedWorkers(read_recorded(Path(request.recording)), request)


class _RecordedWorkers(Workers):
    def __init__(self, recorded: RecordedSpace, request: ExecutorRequest) -> None:
        assert request.space is not None
        self._device = recorded.device or "recorded device"
        self._space = request.space
        self._recorded = recorded
        self._done: deque[Outcome] = deque()

    def devices(self) -> tuple[str, ...]:
        return (self._device,)

    def submit(self, job: Job) -> None:
        readings = tuple(self._reading(variant.index) for variant in job.variants)
        self._done.append(Outcome(number=job.number, device=self._device, readings=readings))

    def _reading(self, index: int) -> Reading:
        result = self._recorded.result(self._space.values(index))
        if result is None:
            return Reading(index=index, state="failed", reason="the recording has no such configuration")
        if result.time_ms is None:
            return Reading(index=index, state="failed", reason=result.reason or "it failed when recorded")
        # The file's own time, whatever it was made from: its smallest one is the best that can be found.
        return Reading(index=index, state="ok", times_ms=(result.time_ms,), origin="measured")

    def wait(self, timeout_s: float | None) -> tuple[Outcome, ...]:
        _ = timeout_s
        done = tuple(self._done)
        self._done.clear()
        return done

    def close(self) -> None:
        self._done.clear()
