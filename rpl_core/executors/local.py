"""The executor `local`: processes of this machine, one for each device or as many as asked, one task each."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.interfaces.executor import Answer, Executor, Workers

if TYPE_CHECKING:
    from rpl_core.interfaces.executor import ExecutorRequest, Task

__all__ = ["MOST_LOSSES", "LocalExecutor"]

_WORKER = "rpl_core.executors.worker"
_STOP_S = 10.0
#: A task whose workers died so often kills them, and is given up (chosen).
MOST_LOSSES = 3


class LocalExecutor(Executor):
    """Runs on this machine; with devices there is one process for each."""

    name = "local"
    summary = "processes of this machine, one per device"

    def open(self, request: ExecutorRequest) -> Workers:
        return _LocalWorkers(request)


@attrs.define
class _Sent:
    task: Task
    losses: int = 0


@attrs.define
class _Process:
    environment: dict[str, str]
    child: subprocess.Popen[str]
    busy: _Sent | None = None


class _LocalWorkers(Workers):
    def __init__(self, request: ExecutorRequest) -> None:
        self._answers: queue.Queue[tuple[str, str | None]] = queue.Queue()
        self._waiting: list[_Sent] = []
        self._processes: dict[str, _Process] = {}
        host, variable = socket.gethostname(), next(iter(request.device_variables), None)
        try:
            for device in request.devices:
                told = {variable: device} if variable is not None else {}
                self._start(f"{host}:{device}", {**os.environ, **told})
            for number in range(0 if request.devices else request.jobs):
                # Work that one process does alone is where its device is, whoever chose that.
                seen = os.environ.get(variable, "all") if variable is not None else str(number)
                self._start(f"{host}:{seen}", dict(os.environ))
        except BaseException:
            self.close()
            raise

    def _start(self, place: str, environment: dict[str, str]) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", _WORKER, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C comes to who asks, who ends these in order
        )
        self._processes[place] = _Process(environment, child)
        threading.Thread(target=self._listen, args=(place, child), daemon=True).start()

    def _listen(self, place: str, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            self._answers.put((place, line))
        self._answers.put((place, None))

    def places(self) -> tuple[str, ...]:
        return tuple(self._processes)

    def submit(self, task: Task) -> None:
        self._waiting.append(_Sent(task))
        self._hand_out()

    def _hand_out(self) -> None:
        for place, process in self._processes.items():
            if process.busy is None:
                sent = next((s for s in self._waiting if s.task.place in (None, place)), None)
                if sent is not None:
                    self._waiting.remove(sent)
                    process.busy = sent
                    _tell(process.child, sent.task)

    def wait(self, timeout_s: float | None) -> tuple[Answer, ...]:
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                left = None if end is None else max(end - time.monotonic(), 0.0)
                place, line = self._answers.get(timeout=left)
            except queue.Empty:
                return ()
            process = self._processes[place]
            sent, process.busy = process.busy, None
            if line is None:
                lost = self._replaced(place, process, sent)
                self._hand_out()
                if lost is not None:
                    return (lost,)
            elif sent is not None:
                self._hand_out()
                return (Answer(number=sent.task.number, **json.loads(line)),)

    def _replaced(self, place: str, process: _Process, sent: _Sent | None) -> Answer | None:
        """A new process for a dead one, which does the task again unless that killed too many."""
        status = process.child.wait()
        _close(process.child.stdin)
        _close(process.child.stdout)
        self._start(place, process.environment)
        if sent is None:
            return None
        if sent.losses + 1 < MOST_LOSSES:
            self._waiting.insert(0, attrs.evolve(sent, losses=sent.losses + 1))
            return None
        fact = f"{MOST_LOSSES} workers died of it (status {status}), perhaps because memory ran out"
        return Answer(sent.task.number, place, error=fact, exit_code=70, lost=True)

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


def _tell(child: subprocess.Popen[str], task: Task) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError):  # its end is seen by who listens
        words = (task.function.__module__, task.function.__qualname__, task.argument)
        child.stdin.write(json.dumps(words) + "\n")
        child.stdin.flush()


def _close(stream: Any) -> None:
    with suppress(OSError):  # what was written last goes nowhere: the worker is gone
        stream.close()
