"""Run one command from start to end: the function that the rest of rpl calls."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import InterruptedRunError, TimeLimitError
from rpl_core.process.interrupts import InterruptWatch
from rpl_core.process.launch import start
from rpl_core.process.log_file import LogFile
from rpl_core.process.output_stream import OutputStream
from rpl_core.process.request import ProcessRequest, ProcessResult
from rpl_core.process.session_members import signal_members
from rpl_core.process.supervision import Supervision
from rpl_core.process.wake_pipe import WakePipe

if TYPE_CHECKING:
    LineSink = Callable[[str], None]


def run_command(request: ProcessRequest, sink: LineSink = lambda _line: None) -> ProcessResult:
    """Run the command and give each line of its stdout and stderr to ``sink``.

    When this returns or raises, no process of the command's session is left, except one that hangs in the
    kernel, which the message then names. For standard input see ``standard_input``.

    Raises ``TimeLimitError``, ``InterruptedRunError`` (SIGINT, SIGTERM or SIGHUP to rpl), ``MissingError``
    (no such program, no space for the log) and ``UsageError`` (it can't be started, or the log can't be
    written). A command that fails is no error here: see ``exit_failure``.
    """
    log = None if request.log_path is None else LogFile(request.log_path)
    wake = WakePipe()
    interrupts = InterruptWatch(wake.notify)
    try:
        with interrupts:
            ending = _run_watched(request, log, sink, wake, interrupts)
    finally:
        wake.close()
        if log is not None:
            log.close()
    # Asked after the handlers are back, so that a signal in the last moment does not get lost.
    if interrupts.first is not None:
        raise InterruptedRunError(
            f"interrupted by {interrupts.first.name}; {request.what} was stopped", cause=_stuck(ending)
        )
    if not ending.in_time:
        raise TimeLimitError(
            f"{request.what} did not end within {request.time_limit_s:g} s and was stopped",
            cause=_stuck(ending),
            next_step="raise the time limit, or give the application less work",
        )
    return _result(ending, None if log is None else log.problem)


@attrs.frozen
class _Ending:
    return_code: int
    wall_s: float
    in_time: bool
    orphans: int
    survivors: tuple[int, ...]


def _run_watched(
    request: ProcessRequest, log: LogFile | None, sink: LineSink, wake: WakePipe, interrupts: InterruptWatch
) -> _Ending:
    started_at = time.perf_counter()
    child = start(request)
    assert child.stdout is not None
    stream = OutputStream(child.stdout, log, sink)
    watched = _watch(child, stream, wake, interrupts)
    orphans = 0
    try:
        in_time = watched.wait(request.time_limit_s)
        if in_time and interrupts.count == 0:
            orphans = watched.clear_orphans()
    except BaseException:
        stream.mute()
        raise
    finally:
        survivors = watched.stop()
        return_code = watched.reap()
        watched.finish_output()
    return _Ending(
        return_code=return_code,
        wall_s=(watched.ended_at or time.perf_counter()) - started_at,
        in_time=in_time,
        orphans=orphans,
        survivors=survivors,
    )


def _watch(
    child: subprocess.Popen[bytes], stream: OutputStream, wake: WakePipe, interrupts: InterruptWatch
) -> Supervision:
    try:
        return Supervision(child, stream, wake, interrupts)
    except BaseException:  # no thread to be had: nothing may stay behind all the same
        signal_members(child.pid, signal.SIGKILL)
        child.wait()
        raise


def _stuck(ending: _Ending) -> str | None:
    if not ending.survivors:
        return None
    pids = ", ".join(map(str, ending.survivors))
    return f"process {pids} hangs in the kernel and can't be killed; look at dmesg for a GPU reset"


def _result(ending: _Ending, log_problem: str | None) -> ProcessResult:
    code = ending.return_code
    return ProcessResult(
        exit_status=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        wall_s=ending.wall_s,
        orphans=ending.orphans,
        log_problem=log_problem,
    )
