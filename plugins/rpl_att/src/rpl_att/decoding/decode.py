"""Raw traces of one dispatch, decoded by a worker with limits and read like any decoded folder.

How the worker ended is said in one line if it did not end well.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from rpl_att.decoding.code_sources import code_sources, read_loads
from rpl_att.decoding.job import ANSWER, Answer, Job
from rpl_att.decoding.library import require_any
from rpl_att.join_dispatch import find_kernel
from rpl_att.model import Level, ThreadTrace
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.raw_files import raw_identity, shader_engine
from rpl_att.reduction.decoded_trace import read_decoded_trace
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

_NO_CODE = (
    "no code object (<prefix>_code_object_id_<id>.out) and no table of instructions lies beside the trace"
)
_USE_ANOTHER = "use the decoder of the ROCm that recorded the trace, or read a folder that it decoded"


def decode_raw(library: Path, paths: Sequence[Path], limits: Limits | None = None) -> ThreadTrace:
    """Decode ``paths`` (all of one dispatch) with the decoder at ``library``; the level stays ``raw``.

    Raises ``BadDataError`` or ``MissingError`` in one line if no shader engine could be decoded.
    """
    chosen = limits or Limits()
    identity = raw_identity(paths[0].name)
    assert identity is not None
    agent, dispatch = identity
    name = f"ui_output_agent_{agent}_dispatch_{dispatch}"
    code = code_sources(paths[0].parent, os.environ)
    if not code:
        raise BadDataError(_NO_CODE, next_step="keep the files of the recording together")
    traces = tuple((shader_engine(path.name), path.absolute()) for path in paths)
    with tempfile.TemporaryDirectory(prefix="rpl-att-") as scratch:
        out = Path(scratch, name)
        out.mkdir()
        job = Job(library, traces, code, read_loads(paths[0]), out, chosen.memory_bytes)
        answer = run_worker(job, chosen)
        refused = require_any(answer.statuses)
        trace = read_decoded_trace(out)
    place = TraceFolder(paths[0].parent / name, agent, dispatch)
    symbols = trace.occupancy.kernel_symbols if trace.occupancy else {}
    return attrs.evolve(
        trace,
        folder=paths[0].parent.name,
        level=Level.RAW,
        raw_files=len(paths),
        kernel=find_kernel(place, trace.code, symbols),
        problems=(*refused, *answer.notes, *trace.problems),
    )


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
