"""Starting a command in a session of its own, and saying clearly why one can't be started.

An application is run several times and must see the same input each time. A regular file
(``rpl profile ./app < points.txt``) is opened anew for each run, at the position where rpl got it.
A pipe or a terminal can't be read twice, so the command gets an empty input instead.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError, UsageError

if TYPE_CHECKING:
    from rpl_core.errors import RplError
    from rpl_core.process.outcome import ProcessRequest

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
    """A new descriptor for the command's standard input. The caller closes it."""
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
