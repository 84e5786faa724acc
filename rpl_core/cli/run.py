"""Run the command line and turn every outcome into one line and a documented exit code."""

from __future__ import annotations

import os
import sys

import click

from rpl_core.errors import RplError
from rpl_core.exit_codes import ExitCode


def run(arguments: list[str]) -> int:
    """Execute ``rpl`` with ``arguments`` (without the program name) and return the exit code."""
    from rpl_core.cli.main import rpl

    _treat_termination_as_interrupt()
    try:
        outcome = rpl.main(args=arguments, prog_name="rpl", standalone_mode=False)
        sys.stdout.flush()
    except RplError as error:
        return _fail(error.one_line(), error.exit_code)
    except click.ClickException as error:
        return _fail(_usage_line(error), ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output (`| head`) is gone: not a failure, but nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except OSError as error:
        return _fail(_os_error_line(error), ExitCode.MISSING)
    except Exception as error:  # noqa: BLE001 - the last line of defence; the traceback is one switch away
        return _internal(error)
    return int(outcome) if isinstance(outcome, int) else int(ExitCode.OK)


def _treat_termination_as_interrupt() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that run directories are closed whoever stops us."""
    import signal
    import threading

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)
        signal.signal(signal.SIGHUP, _interrupt)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _fail(line: str, code: ExitCode) -> int:
    click.echo(f"rpl: {line}", err=True)
    return int(code)


def _usage_line(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        return f"{message}. If it belongs to the application, put `--` before the application's command."
    context = getattr(error, "ctx", None)
    if context is not None:
        return f"{message}. Next: see `{context.command_path} --help`."
    return f"{message}."


def _os_error_line(error: OSError) -> str:
    import errno

    place = f" at {error.filename}" if error.filename else ""
    reason = error.strerror or str(error)
    remedy = {
        errno.ENOSPC: "free some disk space, or choose another place with -o",
        errno.EACCES: "check the permissions, or choose another place with -o",
        errno.EROFS: "choose a writable place with -o",
    }.get(error.errno or 0, "check the path")
    return f"{reason}{place}. Next: {remedy}."


def _internal(error: Exception) -> int:
    if os.environ.get("RPL_TRACEBACK") == "1":
        import traceback

        traceback.print_exc()
    return _fail(
        f"internal error: {type(error).__name__}: {error}. "
        "Next: run again with RPL_TRACEBACK=1 and report the traceback.",
        ExitCode.INTERNAL,
    )
