"""Running one foreign command so that nothing of it is left behind: not a process, not half a log.

The command gets no shell, its own session, a time limit, and its output goes to a log file and to a line
sink, never to rpl's standard output. What the command means is left to the callers.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import (
    ApplicationError,
    InterruptedRunError,
    MemoryLimitError,
    MissingError,
    TimeLimitError,
    UsageError,
)
from rpl_core.model.diagnostic import Diagnostic, Severity
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
    from rpl_core.errors import RplError

    LineSink = Callable[[str], None]


@frozen
class ProcessRequest:
    """One command for ``run_command``.

    ``environment`` is complete; ``None`` passes rpl's own on. ``working_directory`` is where the command
    starts; ``None``: where rpl is. A program given by a relative path is looked up there. ``what`` names the
    command in messages. With ``stdout_path`` its standard output goes there alone, as bytes and no further
    than a log may grow; the log and the sink get the rest. ``memory_limit_bytes`` holds for the sum over all
    processes that the command starts, whatever session they are in: memory of their own, that is no file's.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] | None = attrs.field(default=None, repr=False)  # may hold secrets
    log_path: Path | None = None
    time_limit_s: float | None = None
    what: str = "the application"
    working_directory: Path | None = None
    stdout_path: Path | None = None
    memory_limit_bytes: int | None = None


@frozen
class ProcessResult:
    """How a command ended by itself. Exactly one of ``exit_status`` and ``signal`` is given.

    ``wall_s`` runs from just before the start to the end of the first process. ``orphans`` counts
    processes that it left running and that were stopped. ``log_problem`` says why the log is incomplete,
    ``stdout_problem`` the same of the file at ``stdout_path``.
    """

    exit_status: int | None
    signal: int | None
    wall_s: float
    orphans: int = 0
    log_problem: str | None = None
    stdout_problem: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.exit_status == 0


_SHELL_SIGNAL_BASE = 128  # a shell reports a child killed by signal n as exit status 128 + n
_MEANINGS = {
    signal.SIGABRT: "it aborted",
    signal.SIGBUS: "bus error",
    signal.SIGFPE: "arithmetic error",
    signal.SIGILL: "illegal instruction",
    signal.SIGKILL: "killed, perhaps because memory ran out",
    signal.SIGSEGV: "segmentation fault",
}


class ApplicationExitError(ApplicationError):
    """The application failed; ``exit_status`` or ``signal`` keeps how, the other one is ``None``."""

    def __init__(
        self,
        result: ProcessResult,
        *,
        what: str = "the application",
        cause: str | None = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(f"{what} {describe_exit(result)}", cause=cause, next_step=next_step)
        self.exit_status = result.exit_status
        self.signal = result.signal


def describe_exit(result: ProcessResult) -> str:
    """For example ``exited with status 3`` or ``was ended by SIGSEGV (segmentation fault)``."""
    if result.signal is not None:
        return f"was ended by {_signal_name(result.signal) or f'signal {result.signal}'}"
    status = result.exit_status or 0
    text = f"exited with status {status}"
    if status > _SHELL_SIGNAL_BASE and (name := _signal_name(status - _SHELL_SIGNAL_BASE)):
        return f"{text} (as after {name})"
    return text


def ended_by(result: ProcessResult, number: signal.Signals) -> bool:
    """Whether ``number`` ended it, directly or below a shell."""
    return result.signal == number or result.exit_status == _SHELL_SIGNAL_BASE + number


def _signal_name(number: int) -> str:
    try:
        known = signal.Signals(number)
    except ValueError:
        return ""
    meaning = _MEANINGS.get(known)
    return f"{known.name} ({meaning})" if meaning else known.name


def process_findings(pass_name: str, result: ProcessResult) -> tuple[Diagnostic, ...]:
    """Diagnostics for any collector to add to the outcome of the pass ``pass_name``."""
    findings = []
    if result.orphans:
        findings.append(
            Diagnostic(
                code="collect.orphans_ended",
                fact="processes that the application left running were ended; what they did may be lost",
                remedy="let the application wait for its children",
                where=pass_name,
                count=result.orphans,
            )
        )
    if result.log_problem is not None:
        findings.append(
            Diagnostic(
                code="collect.log_incomplete",
                fact=f"the log of the pass is incomplete: {result.log_problem}",
                severity=Severity.INFO,
                where=pass_name,
            )
        )
    return tuple(findings)


# Starting a command, and saying clearly why one can't be started.

_STDIN = 0
_CHANGE: ContextVar[Callable[[ProcessRequest], ProcessRequest]] = ContextVar("_CHANGE", default=lambda r: r)


def require_program(command: Sequence[str]) -> None:
    """Raise ``UsageError`` or ``MissingError`` unless the first word is a program on this machine.

    To be asked before anything is created: a profiler would only show a traceback of its own for a misspelt
    application.
    """
    if not command or not command[0]:
        raise UsageError(
            "no application was given", next_step="put it behind `--`: rpl profile -- ./app args"
        )
    program = command[0]
    if shutil.which(program) is not None:
        return
    shown = shlex.quote(program)
    if os.sep in program and os.path.isdir(program):  # noqa: PTH112 a word of the user, not a path of ours
        raise UsageError(f"{shown} is a directory, not a program")
    if os.sep in program and os.path.exists(program):  # noqa: PTH110 as above
        raise UsageError(f"{shown} is not an executable file", next_step=f"run `chmod +x {shown}`")
    where = "there is no such file" if os.sep in program else "it is not on PATH"
    hint = None if os.sep in program else f"for a file in this directory write ./{shown}"
    raise MissingError(f"cannot run {shown}: {where}", next_step=hint)


@contextmanager
def starting_as(change: Callable[[ProcessRequest], ProcessRequest]) -> Iterator[None]:
    """Start commands as ``change`` makes them, within a ``with``: a sandbox around what others run."""
    token = _CHANGE.set(change)
    try:
        yield
    finally:
        _CHANGE.reset(token)


def start(request: ProcessRequest) -> subprocess.Popen[bytes]:
    """Start the command; its stdout and stderr share one pipe, in the order in which it writes.

    With ``stdout_path`` they have a pipe each.

    A session (setsid) rather than only a group: a background group of the terminal's session would be
    stopped by SIGTTIN or SIGTTOU as soon as it touches the terminal.
    """
    request = _CHANGE.get()(request)
    _let_exit_status_arrive()
    stdin = _open_repeatable_stdin()
    try:
        return subprocess.Popen(
            request.command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if request.stdout_path is None else subprocess.PIPE,
            env=None if request.environment is None else dict(request.environment),
            cwd=request.working_directory,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        _refuse_bad_directory(request.working_directory)
        raise _launch_error(request, error) from error
    finally:
        os.close(stdin)


def _let_exit_status_arrive() -> None:
    """A parent that ignores SIGCHLD hands that down, and the kernel then drops all exit statuses."""
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    ):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _refuse_bad_directory(directory: Path | None) -> None:
    """The errors of entering a directory are those of starting a program: ask for the directory itself."""
    if directory is not None and not os.access(directory, os.X_OK):
        reason = "you may not enter it" if directory.is_dir() else "there is no such directory"
        raise UsageError(f"cannot start a command in {directory}: {reason}")
    if directory is not None and not directory.is_dir():
        raise UsageError(f"cannot start a command in {directory}: it is not a directory")


def _launch_error(request: ProcessRequest, error: OSError | ValueError) -> RplError:
    program = shlex.quote(request.command[0])
    if isinstance(error, ValueError):
        return UsageError(f"cannot start {program}: an argument holds a NUL character")
    if error.errno == errno.ENOENT:
        return MissingError(
            f"cannot start {program}: no such program",
            next_step="check the path; for a script also the interpreter in its first line",
        )
    if error.errno in (errno.EACCES, errno.EISDIR):
        return UsageError(
            f"cannot start {program}: it is not an executable file", next_step=f"run `chmod +x {program}`"
        )
    if error.errno == errno.ENOEXEC:
        return UsageError(
            f"cannot start {program}: not a program for this machine",
            cause="a script without a first line such as #!/bin/sh, or a binary of another architecture",
        )
    if error.errno == errno.E2BIG:
        return UsageError(f"cannot start {program}: the arguments are too long")
    return MissingError(f"cannot start {program}: {error.strerror}")


def _open_repeatable_stdin() -> int:
    """A new descriptor for the command's standard input. The caller closes it.

    Several runs of one application each read a file from where rpl's own standard input stands; a pipe or a
    terminal could be read only once, so the command gets none of it.
    """
    try:
        if stat.S_ISREG(os.fstat(_STDIN).st_mode):
            return _reopened()
    except OSError:  # rpl's own standard input is closed, or the file may not be opened again
        pass
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _reopened() -> int:
    # A duplicate would share its position with the other runs; /proc gives an open file of its own.
    descriptor = os.open(f"/proc/self/fd/{_STDIN}", os.O_RDONLY | os.O_CLOEXEC)
    os.lseek(descriptor, os.lseek(_STDIN, 0, os.SEEK_CUR), os.SEEK_SET)
    return descriptor


def application_command(words: Sequence[str]) -> tuple[str, ...]:
    """The argument vector of the application.

    A single word with white space that names no file is split as a shell would split it
    (``"./app 100"``); nothing is expanded and no shell runs.
    """
    if not words:
        raise UsageError(
            "no application given", next_step="put it last: `rpl profile --device NAME -- ./app args`"
        )
    if len(words) > 1 or not any(c.isspace() for c in words[0]) or Path(words[0]).exists():
        return tuple(words)
    try:
        split = tuple(shlex.split(words[0]))
    except ValueError as error:
        raise UsageError(f"the application's command can't be split: {error}") from None
    if not split:
        raise UsageError("the application's command is empty")
    return split


def run_command(request: ProcessRequest, sink: LineSink = lambda _line: None) -> ProcessResult:
    """Run the command and give each line of its stdout and stderr to ``sink``.

    When this returns or raises, no process of the command's session is left, except one that hangs in the
    kernel, which the message then names. Its standard input is rpl's where that is a file, else empty.

    Raises ``TimeLimitError``, ``MemoryLimitError``, ``InterruptedRunError`` (SIGINT, SIGTERM or SIGHUP to
    rpl), ``MissingError`` (no such program, no space for the log) and ``UsageError`` (it can't be started, or
    the log can't be written). A command that fails is no error here: callers raise ``ApplicationExitError``.
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
