"""Running the worker with limits, and saying in one line how it ended if it did not end well."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

from rpl_att.decoding.job import ANSWER, Answer, Job
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

_USE_ANOTHER = "use the decoder of the ROCm that recorded the trace, or read a folder that it decoded"


@frozen
class Limits:
    """Seconds and bytes of address space for decoding one dispatch."""

    seconds: float = 600.0
    memory_bytes: int = 8 << 30


def run_worker(job: Job, limits: Limits) -> Answer:
    """The worker's answer. Raises ``BadDataError`` if it crashed, hung or could not decode."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rpl_att.decoding.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=job.out,  # -m looks for modules here first: never in a folder of someone else
        start_new_session=True,
    )
    try:
        process.communicate(job.to_json().encode(), timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        raise BadDataError(
            f"the trace decoder did not end within {limits.seconds:g} s and was stopped",
            next_step=_USE_ANOTHER,
        ) from None
    finally:
        _end(process)
    return _answer(job, process.returncode)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the worker and its disassembler, if they still run."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _answer(job: Job, status: int) -> Answer:
    if status != 0 or not (job.out / ANSWER).is_file():
        how = _signal_name(-status) if status < 0 else f"exit status {status}"
        raise BadDataError(f"the trace decoder crashed ({how})", next_step=_USE_ANOTHER)
    answer = Answer.from_json((job.out / ANSWER).read_text(encoding="utf-8"))
    if answer.error is not None:
        raise BadDataError(answer.error)
    return answer


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
