"""The end of standard output: what was buffered must reach its place, or the exit code says that it did not.

Kept free of imports, because `rpl --version` goes through here.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from typing_extensions import Buffer

_MISSING = 69  # ExitCode.MISSING, without the import


def print_result(line: str) -> int:
    """Print one line on stdout; the exit code."""
    return _guarded(lambda: print(line), 0)


def close_output(code: int) -> int:
    """Flush stdout and return ``code``, or 69 with a line on stderr when it can't be written.

    A reader that has gone (``| head``) is no failure. Without this the interpreter flushes at its end, prints
    a traceback and exits with 120.
    """
    return _guarded(lambda: None, code)


def _guarded(write: Callable[[], None], code: int) -> int:
    try:
        write()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    except OSError as error:
        discard_output()
        say(f"rpl: the result can't be written: {error.strerror or error}.")
        return code or _MISSING
    return code


def keep_for_results() -> None:
    """Whatever else writes to descriptor 1 (plugins, their children, libraries) writes to stderr from now on.

    Closed descriptors are opened, or the next file that is opened would take what is written to them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    encoding = (sys.stdout or io.TextIOWrapper(io.BytesIO())).encoding
    buffer = io.BufferedWriter(_NeverFails(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=True)
    if sys.stdout is not None:
        results = os.dup(1)
        os.dup2(2, 1)
        terminal = os.isatty(results)
        sys.stdout = os.fdopen(results, "w", 1 if terminal else -1, encoding, sys.stdout.errors)


class _NeverFails(io.FileIO):
    """What is said to nobody is no reason to lose a result."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def settle_exit_code(code: int) -> int:
    """What plugins registered for the end of the process changes neither exit code nor result."""
    end, sys.stdout = os._exit, sys.stderr

    def settled(status: int) -> NoReturn:  # noqa: ARG001 - the name is that of the function it stands for
        end(code)

    os._exit = settled
    return code


def discard_output() -> None:
    """Let what is still buffered for stdout go nowhere."""
    with suppress(OSError, ValueError, AttributeError):  # stdout is closed, or no file at all
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def say(line: str) -> None:
    """One line on stderr; if even that can't be written, nobody is there to read it."""
    with suppress(OSError):
        if sys.stderr is not None:
            if sys.stderr.isatty():
                from rpl_core.cli.output import broken_for

                line = broken_for(sys.stderr, line)
            print(line, file=sys.stderr, flush=True)
