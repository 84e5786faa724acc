"""Run the command line and turn every outcome into one line and a documented exit code."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING

import click

from rpl_core.cli.standard_output import close_output, discard_output, say
from rpl_core.errors import ExitCode, RplError
from rpl_core.text import printable

if TYPE_CHECKING:
    from typing import TextIO


def run(arguments: list[str]) -> int:
    """Execute ``rpl`` with ``arguments`` (without the program name) and return the exit code."""
    return close_output(_execute(arguments))


def _execute(arguments: list[str]) -> int:
    from rpl_core.cli.main import rpl

    streams = sys.stdout, sys.stderr
    try:
        outcome = rpl.main(args=arguments, prog_name="rpl", standalone_mode=False)
    except RplError as error:
        return _fail(error.one_line(), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:  # a group without its sub-command, `rpl plugins`
        click.echo(error.format_message())
        return int(ExitCode.OK)
    except click.ClickException as error:
        missing = _missing_package(error)
        if missing is not None:
            return _fail(missing, ExitCode.MISSING)
        return _fail(_usage_line(error), ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except SystemExit as stop:
        return _exit_of_click(stop, streams)
    except OSError as error:
        if _is_of_stdout(error):
            discard_output()
        return _fail(
            _os_error_line(error), ExitCode.USAGE if error.errno in _WRONG_PLACE else ExitCode.MISSING
        )
    except BaseException as error:  # noqa: BLE001 - the last line of defence; the traceback is one switch away
        return _internal(error)
    return int(outcome) if isinstance(outcome, int) else int(ExitCode.OK)


def _exit_of_click(stop: SystemExit, streams: tuple[TextIO, TextIO]) -> int:
    """Click exits at the end of shell completion; on a broken pipe it exits after it replaced the streams."""
    if sys.stdout is streams[0]:
        raise stop
    # The reader of our output (`| head`) is gone: not a failure, but nothing more can be written.
    sys.stdout, sys.stderr = streams
    discard_output()
    return int(ExitCode.OK)


def _fail(line: str, code: ExitCode) -> int:
    say(f"rpl: {line}")
    return int(code)


def _usage_line(error: click.ClickException) -> str:
    message = " ".join(printable(error.format_message()).split())
    context = getattr(error, "ctx", None)
    remedy = "" if context is None else f" Next: see `{context.command_path} --help`."
    names = [] if context is None else [param.name for param in context.command.params]
    if isinstance(error, click.NoSuchOption) and "application" in names:
        remedy = " If it belongs to the application, put `--` before the application's command."
    return f"{message if message.endswith(('.', '?')) else f'{message}.'}{remedy}"


def _missing_package(error: click.ClickException) -> str | None:
    """What to install for an option that a plugin brings, if that is not there."""
    from rpl_core.cli.session import Session
    from rpl_core.plugins.entry_points import provider_of

    context = getattr(error, "ctx", None)
    if not isinstance(error, click.NoSuchOption) or context is None:
        return None
    provider, session = provider_of("options", error.option_name), context.find_object(Session)
    if provider is None or session is None:
        return None
    if any(r.distribution == provider and r.status == "loaded" for r in session.plugin_overview.records):
        return None  # the option belongs to other commands
    return (
        f"the option {error.option_name} comes from {provider}, which is not installed or not loaded."
        f" Next: pip install {provider}."
    )


#: The place that was named can't be used; other failures of the system are something missing.
_WRONG_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)
_REMEDIES = {
    errno.ENOSPC: "free some disk space, or choose another place with -o",
    errno.EDQUOT: "free some of your quota, or choose another place with -o",
    errno.EFBIG: "raise the limit for file sizes (ulimit -f), or choose another place with -o",
    errno.EACCES: "check the permissions, or choose another place with -o",
    errno.EROFS: "choose a writable place with -o",
}


def _is_of_stdout(error: OSError) -> bool:
    """A full disk without a file name is the one behind stdout: every other write names its file."""
    return error.filename is None and error.errno == errno.ENOSPC


def _os_error_line(error: OSError) -> str:
    if _is_of_stdout(error):
        return "the disk is full. Next: free some space, or send the output elsewhere."
    place = f" at {printable(str(error.filename))}" if error.filename else ""
    reason = error.strerror or str(error)
    return f"{reason}{place}. Next: {_REMEDIES.get(error.errno or 0, 'check the path')}."


def _internal(error: BaseException) -> int:
    from rpl_core.plugins.boundary import show_traceback

    show_traceback(error)
    message = " ".join(printable(str(error)).split())
    return _fail(
        f"internal error: {type(error).__name__}: {message}. "
        "Next: run again with RPL_TRACEBACK=1 and report the traceback.",
        ExitCode.INTERNAL,
    )
