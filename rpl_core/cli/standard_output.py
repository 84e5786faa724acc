"""The end of standard output: what was buffered must reach its place, or the exit code says that it did not.

Kept free of imports, because `rpl --version` goes through here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


def discard_output() -> None:
    """Let what is still buffered for stdout go nowhere."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
    except (OSError, ValueError, AttributeError):
        return  # stdout is closed, or no file at all


def say(line: str) -> None:
    """One line on stderr; if even that can't be written, nobody is there to read it."""
    if sys.stderr is None:
        return
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        return
