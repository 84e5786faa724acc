"""The executor `dask`: configurations are measured by the workers of a Dask cluster.

Workers declare ``--resources GPU=1``, and each job needs one, so that no worker ever measures two at once.
Dask itself gives the jobs of a lost worker to others; what was meant for the lost device comes back lost.
"""

from __future__ import annotations

import queue
import time
from typing import TYPE_CHECKING, Any

import attrs

from rpl_autotune.executors.local import VISIBLE_DEVICES, worker_error
from rpl_autotune.interfaces.executor import Executor, Workers
from rpl_autotune.interfaces.job import Job, Outcome, Reading
from rpl_core.errors import MissingError, UsageError

if TYPE_CHECKING:
    from rpl_autotune.interfaces.executor import ExecutorRequest

__all__ = ["DaskExecutor", "measure_remotely"]

_RESOURCE = "GPU"
_CONNECT_S = 30
#: How often the list of workers is looked at while nothing comes, seconds.
_LOOK_S = 1.0
#: A job whose workers died so often kills them, and is given up (chosen).
_MOST_LOSSES = 3


class DaskExecutor(Executor):
    """Sends jobs to the scheduler at ``--cluster``."""

    name = "dask"
    summary = "workers of a Dask cluster, each with the resource GPU=1 (--cluster ADDRESS)"

    def open(self, request: ExecutorRequest) -> Workers:
        if request.address is None:
            raise UsageError("the executor 'dask' needs a cluster", next_step="add --cluster tcp://HOST:PORT")
        try:
            from distributed import Client
        except ImportError:
            raise MissingError(
                "--cluster needs Dask, which is not installed", next_step="pip install 'rpl-autotune[dask]'"
            ) from None
        try:
            client = Client(request.address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise MissingError(
                f"no Dask scheduler answers at {request.address}: {error}",
                next_step="start one with `dask scheduler`, and check the address",
            ) from None
        workers = _DaskWorkers(client)
        try:
            workers.require_any()
        except BaseException:
            workers.close()
            raise
        return workers


@attrs.define
class _Sent:
    job: Job
    address: str | None
    losses: int = 0


class _DaskWorkers(Workers):
    def __init__(self, client: Any) -> None:
        self._client = client
        self._done: queue.Queue[Any] = queue.Queue()
        self._sent: dict[Any, _Sent] = {}
        self._addresses: dict[str, str] = {}

    def require_any(self) -> None:
        if not self.devices():
            raise MissingError(
                f"the cluster has no worker with the resource {_RESOURCE}",
                next_step=f"start workers with `dask worker ADDRESS --nthreads 1 --resources {_RESOURCE}=1`",
            )

    def devices(self) -> tuple[str, ...]:
        """One device per worker, by host and the GPU that it sees, or its name where all are seen."""
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        gpus = {address: info for address, info in found.items() if info["resources"].get(_RESOURCE)}
        several = [address for address, info in gpus.items() if info["resources"][_RESOURCE] != 1]
        if several:
            raise UsageError(
                f"the worker {several[0]} offers several GPUs, and jobs would run beside each other",
                next_step=f"start one `dask worker` per GPU, each with --resources {_RESOURCE}=1",
            )
        for address in gpus.keys() - set(self._addresses.values()):
            self._addresses[self._name(address, gpus[address])] = address
        return tuple(name for name, address in self._addresses.items() if address in gpus)

    def _name(self, address: str, info: Any) -> str:
        seen = self._client.run(_visible_devices, workers=[address], on_error="ignore").get(address)
        return f"{info['host']}:{seen or info['name']}"

    def submit(self, job: Job) -> None:
        self._send(_Sent(job, None if job.device is None else self._addresses[job.device]))

    def _send(self, sent: _Sent) -> None:
        names = {address: name for name, address in self._addresses.items()}
        future = self._client.submit(
            measure_remotely,
            sent.job.model_dump_json(),
            names,
            workers=None if sent.address is None else [sent.address],
            resources={_RESOURCE: 1},
            pure=False,
            key=f"rpl-autotune-{sent.job.number}-{sent.losses}-{time.monotonic_ns()}",
        )
        self._sent[future] = sent
        future.add_done_callback(self._done.put)

    def wait(self, timeout_s: float | None) -> tuple[Outcome, ...]:
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while end is None or time.monotonic() < end:
            try:
                future = self._done.get(timeout=_LOOK_S)
            except queue.Empty:
                lost = self._lost()
                if lost:
                    return lost
                continue
            outcome = self._outcome(future)
            if outcome is not None:
                return (outcome,)
        return ()

    def _outcome(self, future: Any) -> Outcome | None:
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        sent = self._sent.pop(future, None)
        if sent is None:
            return None
        try:
            answer = future.result()
        except (KilledWorker, CancelledError) as error:
            return self._after_loss(sent, str(error))
        if "error" in answer:
            raise worker_error(answer["device"], answer["error"], answer["exit_code"])
        return Outcome.model_validate(answer)

    def _after_loss(self, sent: _Sent, problem: str) -> Outcome | None:
        if sent.address is not None or sent.losses + 1 >= _MOST_LOSSES:
            return _lost_outcome(sent.job, problem)
        self._send(attrs.evolve(sent, losses=sent.losses + 1))
        return None

    def _lost(self) -> tuple[Outcome, ...]:
        """Jobs for devices that are gone: Dask would wait for them for ever."""
        present = set(self.devices())
        gone = {address for name, address in self._addresses.items() if name not in present}
        outcomes = []
        for future, sent in list(self._sent.items()):
            if sent.address in gone:
                del self._sent[future]
                future.cancel()
                outcomes.append(_lost_outcome(sent.job, "its worker is gone"))
        return tuple(outcomes)

    def close(self) -> None:
        for future in self._sent:
            future.cancel()
        self._client.close()


def _lost_outcome(job: Job, problem: str) -> Outcome:
    readings = tuple(Reading(index=v.index, state="lost", reason=problem) for v in job.variants)
    return Outcome(number=job.number, device=job.device or "lost", readings=readings)


def _visible_devices() -> str | None:
    """On a worker: the GPU that it was started for."""
    import os

    return os.environ.get(VISIBLE_DEVICES) or os.environ.get("HIP_VISIBLE_DEVICES")


def measure_remotely(job: str, names: dict[str, str]) -> dict[str, Any]:
    """On a worker: measure one job. ``names`` are the devices by the address of their worker."""
    from distributed import get_worker

    from rpl_autotune.evaluation.run_job import run_job
    from rpl_core.errors import RplError

    device = names.get(get_worker().address, get_worker().address)
    try:
        answer: dict[str, Any] = run_job(Job.model_validate_json(job), device).model_dump(mode="json")
    except RplError as error:
        return {"device": device, "error": error.one_line(), "exit_code": int(error.exit_code)}
    return answer
