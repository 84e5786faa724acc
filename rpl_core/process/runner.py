"""Run one command from start to end: the function that the rest of rpl calls."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import InterruptedRunError, MemoryLimitError, TimeLimitError
from rpl_core.process.launch import start
from rpl_core.process.outcome import ProcessRequest, ProcessResult
from rpl_core.process.output import Cover, LogFile, OutputStream
from rpl_core.process.supervision import (
    InterruptWatch,
    MemoryGroup,
    Supervision,
    WakePipe,
    memory_group,
    signal_members,
)
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

    LineSink = Callable[[str], None]


def run_command(request: ProcessRequest, sink: LineSink = lambda _line: None) -> ProcessResult:
    """Run the command and give each line of its stdout and stderr to ``sink``.

    When this returns or raises, no process of the command's session is left, except one that hangs in the
    kernel, which the message then names. For standard input see ``standard_input``.

    Raises ``TimeLimitError``, ``MemoryLimitError``, ``InterruptedRunError`` (SIGINT, SIGTERM or SIGHUP to
    rpl), ``MissingError`` (no such program, no space for the log) and ``UsageError`` (it can't be started, or
    the log can't be written). A command that fails is no error here: see ``exit_failure``.
    """
    with ExitStack() as files:
        log = _opened(request.log_path, files)
        stdout = _opened(request.stdout_path, files)
        wake = WakePipe()
        files.callback(wake.close)
        interrupts = InterruptWatch(wake.notify)
        with interrupts, memory_group(request.memory_limit_bytes) as group:
            ending = _run_watched(request, _Sinks(log, stdout, sink), wake, interrupts, group)
    # Asked after the handlers are back, so that a signal in the last moment does not get lost.
    if interrupts.first is not None:
        raise InterruptedRunError(
            f"interrupted by {interrupts.first.name}; {request.what} was stopped", cause=_stuck(ending)
        )
    if ending.too_large:
        limit_gib = (request.memory_limit_bytes or 0) / (1 << 30)
        raise MemoryLimitError(
            f"{request.what} and its processes held more than {limit_gib:.3g} GiB of memory and were stopped",
            cause=_stuck(ending),
            next_step="run fewer of them at once, or make what it compiles smaller",
        )
    if not ending.in_time:
        raise TimeLimitError(
            f"{request.what} did not end within {request.time_limit_s:g} s and was stopped",
            cause=_stuck(ending),
            next_step="raise the time limit, or give the application less work",
        )
    return _result(ending, _problem(log), _problem(stdout))


@frozen
class _Sinks:
    """Where output goes: ``stdout`` is a file for it alone."""

    log: LogFile | None
    stdout: LogFile | None
    lines: LineSink


@frozen
class _Ending:
    return_code: int
    wall_s: float
    in_time: bool
    orphans: int
    survivors: tuple[int, ...]
    too_large: bool = False


def _run_watched(
    request: ProcessRequest,
    sinks: _Sinks,
    wake: WakePipe,
    interrupts: InterruptWatch,
    group: MemoryGroup | None,
) -> _Ending:
    started_at = time.perf_counter()
    if group is not None:
        request = attrs.evolve(request, command=group.entered(request.command))
    child = start(request)
    streams = _streams(child, sinks, Cover(request.command))
    watched = _watch(child, streams, wake, interrupts)
    orphans = 0
    try:
        in_time = watched.wait(request.time_limit_s, request.memory_limit_bytes)
        if watched.too_large:
            watched.kill()
        elif in_time and interrupts.count == 0:
            orphans = watched.clear_orphans()
    except BaseException:
        for stream in streams:
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
        too_large=watched.too_large or (group is not None and group.exceeded()),
    )


def _opened(path: Path | None, files: ExitStack) -> LogFile | None:
    if path is None:
        return None
    log = LogFile(path)
    files.callback(log.close)
    return log


def _problem(log: LogFile | None) -> str | None:
    return None if log is None else log.problem


def _streams(child: subprocess.Popen[bytes], sinks: _Sinks, cover: Cover) -> tuple[OutputStream, ...]:
    assert child.stdout is not None
    if child.stderr is None:
        return (OutputStream(child.stdout, sinks.log, sinks.lines, cover),)
    alone = OutputStream(child.stdout, sinks.stdout, lambda _line: None)
    return (alone, OutputStream(child.stderr, sinks.log, sinks.lines, cover))


def _watch(
    child: subprocess.Popen[bytes],
    streams: tuple[OutputStream, ...],
    wake: WakePipe,
    interrupts: InterruptWatch,
) -> Supervision:
    try:
        return Supervision(child, streams, wake, interrupts)
    except BaseException:  # no thread to be had: nothing may stay behind all the same
        signal_members(child.pid, signal.SIGKILL)
        child.wait()
        raise


def _stuck(ending: _Ending) -> str | None:
    if not ending.survivors:
        return None
    pids = ", ".join(map(str, ending.survivors))
    return f"process {pids} hangs in the kernel and can't be killed; look at dmesg for a GPU reset"


def _result(ending: _Ending, log_problem: str | None, stdout_problem: str | None) -> ProcessResult:
    code = ending.return_code
    return ProcessResult(
        exit_status=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        wall_s=ending.wall_s,
        orphans=ending.orphans,
        log_problem=log_problem,
        stdout_problem=stdout_problem,
    )
