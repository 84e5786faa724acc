"""Executors of tasks: `local`, processes of this machine, and `dask`, the workers of a Dask cluster.

Dask itself gives the tasks of a lost worker to others; what was meant for the lost place comes back lost.
Where tasks need a resource, workers declare one of it (``--resources NAME=1``): none does two at once.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs

from rpl_core.errors import MissingError, UsageError
from rpl_core.executor_worker import done
from rpl_core.interfaces.executor import Answer, Executor, ExecutorRequest, Task, Workers

# Processes of this machine, one for each device or as many as asked, one task each.

_WORKER = "rpl_core.executor_worker"
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


# The workers of a Dask cluster.

_CONNECT_S = 30
#: How often the list of workers is looked at while nothing comes, seconds.
_LOOK_S = 1.0


class DaskExecutor(Executor):
    """Sends tasks to the scheduler at ``--cluster``."""

    name = "dask"
    summary = "workers of a Dask cluster (--cluster ADDRESS)"

    def open(self, request: ExecutorRequest) -> Workers:
        if request.address is None:
            raise UsageError("the executor 'dask' needs a cluster", next_step="add --cluster tcp://HOST:PORT")
        try:
            from distributed import Client
        except ImportError:
            raise MissingError(
                "--cluster needs Dask, which is not installed", next_step="pip install 'rpl-core[dask]'"
            ) from None
        try:
            client = Client(request.address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MissingError(
                f"no Dask scheduler answers at {request.address}: {error}",
                next_step="start one with `dask scheduler`, and check the address",
            ) from None
        workers = _DaskWorkers(client, request)
        try:
            workers.require_any()
        except BaseException:
            workers.close()
            raise
        return workers


@attrs.define
class _SentToCluster:
    task: Task
    address: str | None
    losses: int = 0


class _DaskWorkers(Workers):
    def __init__(self, client: Any, request: ExecutorRequest) -> None:
        self._client = client
        self._resource = request.resource
        self._variables = request.device_variables
        self._done: queue.Queue[Any] = queue.Queue()
        self._sent: dict[Any, _SentToCluster] = {}
        self._addresses: dict[str, str] = {}

    def require_any(self) -> None:
        if not self.places():
            declared = f" --resources {self._resource}=1" if self._resource else ""
            raise MissingError(
                f"the cluster has no worker{f' with the resource {self._resource}' if declared else ''}",
                next_step=f"start workers with `dask worker ADDRESS --nthreads 1{declared}`",
            )

    def places(self) -> tuple[str, ...]:
        """One per worker, by host and the device that it sees, or its name where all are seen."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if self._resource is not None:
            workers = {
                address: info for address, info in workers.items() if info["resources"].get(self._resource)
            }
            several = [a for a, info in workers.items() if info["resources"][self._resource] != 1]
            if several:
                raise UsageError(
                    f"the worker {several[0]} offers several {self._resource}s, and tasks would run beside "
                    "each other",
                    next_step=f"start one `dask worker` per {self._resource}, each with --resources "
                    f"{self._resource}=1",
                )
        for address in workers.keys() - set(self._addresses.values()):
            self._addresses[self._name(address, workers[address])] = address
        return tuple(name for name, address in self._addresses.items() if address in workers)

    def _name(self, address: str, info: Any) -> str:
        seen = None
        if self._variables:
            asked = self._client.run(_seen, self._variables, workers=[address], on_error="ignore")
            seen = asked.get(address)
        return f"{info['host']}:{seen or info['name']}"

    def submit(self, task: Task) -> None:
        self._send(_SentToCluster(task, None if task.place is None else self._addresses[task.place]))

    def _send(self, sent: _SentToCluster) -> None:
        names = {address: name for name, address in self._addresses.items()} if self._resource else {}
        future = self._client.submit(
            done_remotely,
            sent.task.function,
            sent.task.argument,
            names,
            workers=None if sent.address is None else [sent.address],
            resources=None if self._resource is None else {self._resource: 1},
            pure=False,
            key=f"rpl-{sent.task.number}-{sent.losses}-{time.monotonic_ns()}",
        )
        self._sent[future] = sent
        future.add_done_callback(self._done.put)

    def wait(self, timeout_s: float | None) -> tuple[Answer, ...]:
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while end is None or time.monotonic() < end:
            try:
                future = self._done.get(timeout=_LOOK_S)
            except queue.Empty:
                lost = self._lost()
                if lost:
                    return lost
                continue
            answer = self._answer(future)
            if answer is not None:
                return (answer,)
        return ()

    def _answer(self, future: Any) -> Answer | None:
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        sent = self._sent.pop(future, None)
        if sent is None:
            return None
        try:
            return Answer(number=sent.task.number, **future.result())
        except (KilledWorker, CancelledError) as error:
            return self._after_loss(sent, str(error))
        except Exception as error:  # noqa: BLE001 - a worker without this version of rpl can't take tasks
            problem = f"the worker can't do it: {type(error).__name__}: {error}"
            return Answer(sent.task.number, sent.task.place or "lost", error=problem, exit_code=70)

    def _after_loss(self, sent: _SentToCluster, problem: str) -> Answer | None:
        if sent.address is not None or sent.losses + 1 >= MOST_LOSSES:
            return _lost_answer(sent.task, problem)
        self._send(attrs.evolve(sent, losses=sent.losses + 1))
        return None

    def _lost(self) -> tuple[Answer, ...]:
        """Tasks for places that are gone: Dask would wait for them for ever."""
        if all(sent.address is None for sent in self._sent.values()):
            return ()
        present = set(self.places())
        gone = {address for name, address in self._addresses.items() if name not in present}
        answers = []
        for future, sent in list(self._sent.items()):
            if sent.address in gone:
                del self._sent[future]
                future.cancel()
                answers.append(_lost_answer(sent.task, "its worker is gone"))
        return tuple(answers)

    def close(self) -> None:
        """Tasks that nobody began are taken back; those that run end by themselves, unheard."""
        if self._sent:
            self._client.cancel(list(self._sent))
        self._client.close()


def _lost_answer(task: Task, problem: str) -> Answer:
    return Answer(task.number, task.place or "lost", error=problem, exit_code=70, lost=True)


def _seen(variables: tuple[str, ...]) -> str | None:
    """On a worker: the device that it was started for."""
    return next((value for name in variables if (value := os.environ.get(name))), None)


def done_remotely(
    function: Callable[[str, str], str], argument: str, names: dict[str, str]
) -> dict[str, Any]:
    """On a worker: the fields of an answer. ``names`` are places by the address of their worker."""
    from distributed import get_worker

    address = get_worker().address
    return done(function, argument, names.get(address, address))
