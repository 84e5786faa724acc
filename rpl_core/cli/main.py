"""The command ``rpl``: global options and the table of sub-commands, each loaded when it is used.

Every outcome becomes one line and a documented exit code.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from rpl_core.cli.session import Session
from rpl_core.cli.standard_output import close_output, discard_output, say
from rpl_core.errors import ExitCode, MissingError, RplError
from rpl_core.text import printable

if TYPE_CHECKING:
    from rpl_core.plugins.entry_points import InstalledEntry


def run(arguments: list[str]) -> int:
    """Execute ``rpl`` with ``arguments`` (without the program name) and return the exit code."""
    return close_output(_execute(arguments))


def _execute(arguments: list[str]) -> int:
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


# A click group whose commands are imported only when they are called.
#
# ``--help`` shows short texts without importing a command, and finds commands of plugins (entry-point group
# ``rpl.commands``) by their metadata alone. A command that can't be imported costs only itself.

#: Entry-point group of sub-commands; each entry names a ``click.Command``.
COMMANDS_GROUP = "rpl.commands"
#: Lines of a module in which the summaries of its commands are looked for.
_SUMMARY_LINES = 8


class LazyCommand(NamedTuple):
    """Where a command lives ("module:attribute") and what help says about it."""

    target: str
    summary: str
    owner: str = "rpl-core"
    problem: str | None = None  # why it can't work, known without importing it
    version: str | None = None  # of the owner


class LazyGroup(click.Group):
    """``lazy_commands`` maps a name to ("module:attribute", one line of help).

    Plugins may add names, never replace one.
    """

    def __init__(
        self, *args: Any, lazy_commands: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._own = {name: LazyCommand(*place) for name, place in (lazy_commands or {}).items()}
        self._from_plugins: dict[str | None, dict[str, LazyCommand]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._own, *self._plugin_commands()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        eager = super().get_command(ctx, cmd_name)
        if eager is not None:
            return eager
        place = self._own.get(cmd_name) or self._plugin_commands().get(cmd_name)
        return _missing_command(cmd_name) if place is None else _import_command(cmd_name, place)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from difflib import get_close_matches

            if not (alike := get_close_matches(args[0], self.list_commands(ctx), 1)):
                raise
            raise click.UsageError(f"No such command {args[0]!r}; did you mean {alike[0]!r}?", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what nobody expects names the distribution that a plugin's command is from."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, click.ClickException, OSError, RplError):
            raise
        except Exception as error:
            from rpl_core.plugins.boundary import one_line, show_traceback

            place = self._plugin_commands().get(ctx.invoked_subcommand or "")
            if place is None or ctx.invoked_subcommand in self._own:
                raise
            show_traceback(error)
            raise RplError(
                f"command {ctx.invoked_subcommand!r} of {place.owner} failed: {one_line(error)}",
                next_step=f"run again with RPL_TRACEBACK=1 and report the traceback to {place.owner}",
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from rpl_core.plugins.entry_points import command_groups

        left = {name: self._short_help(ctx, name) for name in self.list_commands(ctx)}
        for title, names in {**command_groups(), "Commands": list(left)}.items():
            rows = [(name, left.pop(name)) for name in names if name in left]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        eager = super().get_command(ctx, name)
        if eager is not None:
            return eager.get_short_help_str(limit=100)
        place = self._own.get(name) or self._plugin_commands()[name]
        if place.problem:
            return f"(broken: {place.problem})"
        return place.summary or _summary_of(name, place) or f"(from {place.owner})"

    def _plugin_commands(self) -> Mapping[str, LazyCommand]:
        chosen = os.environ.get("RPL_LOAD_PLUGINS")  # tests run several commands in one process
        if chosen not in self._from_plugins:
            self._from_plugins[chosen] = _installed_commands()
        return self._from_plugins[chosen]


def _installed_commands() -> dict[str, LazyCommand]:
    from rpl_core.plugins.entry_points import installed_entries, normalized, only_distributions

    allowed = only_distributions(os.environ)
    claims: dict[str, list[InstalledEntry]] = {}
    for entry in installed_entries(COMMANDS_GROUP)[0]:
        if allowed is None or normalized(entry.distribution) in allowed:
            claims.setdefault(entry.name, []).append(entry)
    return {name: _command_of(entries) for name, entries in claims.items()}


def _command_of(entries: list[InstalledEntry]) -> LazyCommand:
    first = entries[0]
    owners = ", ".join(entry.distribution for entry in entries)
    problem = None
    if len(entries) > 1:
        problem = f"claimed by {owners}"
    elif _folders(_package(first.value)) is None:
        problem = f"no module named {_package(first.value)!r}"
    return LazyCommand(first.value, "", owners, problem, first.version)


def _package(target: str) -> str:
    return target.partition(":")[0].partition(".")[0]


@cache
def _folders(package: str) -> list[str] | None:
    """Where the package lies; ``None`` if there is none. A search of all of ``sys.path``."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    return None if spec is None else list(spec.submodule_search_locations or ())


def _summary_of(name: str, place: LazyCommand) -> str:
    """What the docstring of the command's module says that it does, read without importing anything.

    A module with several commands has a line for each, which begins with the command.
    """
    module = place.target.partition(":")[0]
    inner = module.split(".")[1:]
    for folder in _folders(_package(module)) or ():
        base = os.path.join(folder, *inner)  # noqa: PTH118 - pathlib would cost `rpl --help` more than all of this
        for file in (f"{base}.py", os.path.join(base, "__init__.py")):  # noqa: PTH118
            try:
                with open(file, encoding="utf-8") as text:  # noqa: PTH123
                    lines = [line.strip() for line in islice(text, _SUMMARY_LINES)]
            except (OSError, UnicodeDecodeError):
                continue
            if lines and lines[0].startswith('"""'):
                mark = f"``rpl {name}``: "
                line = next((line for line in lines if line.strip('"').startswith(mark)), lines[0])
                says = line.strip('"').rpartition("``: ")[2].rstrip(".")
                return f"{says[:1].upper()}{says[1:]}."
    return ""


def _missing_command(name: str) -> click.Command | None:
    """A command that says what to install, where it is known who brings ``name``."""
    from rpl_core.plugins.entry_points import provider_of

    provider = provider_of("commands", name)
    if provider is None:
        return None

    def report(**_: Any) -> None:
        raise MissingError(
            f"the command {name!r} comes from {provider}, which is not installed or not loaded",
            next_step=f"pip install {provider}",
        )

    return _reporting(name, report, f"(from {provider}, which is not installed)")


def _import_command(name: str, place: LazyCommand) -> click.Command:
    """The command, or one that reports why it can't be had: listing and completion must survive it."""
    if place.problem is not None:
        return _broken(name, place, place.problem)
    from rpl_core.plugins.trial import why_unusable

    module, _, attribute = place.target.partition(":")
    held = why_unusable(place.owner, place.version, module)
    if held is not None:
        return _broken(name, place, held)
    try:
        command: object = import_module(module)
        for part in attribute.split("."):
            command = getattr(command, part)
    except BaseException as error:
        from rpl_core.plugins.boundary import one_line
        from rpl_core.process_start import is_ctrl_c

        if is_ctrl_c(error):
            raise

        return _broken(name, place, one_line(error))
    if isinstance(command, click.Command):
        return command
    return _broken(name, place, f"{place.target} is not a click command")


def _broken(name: str, place: LazyCommand, problem: str) -> click.Command:
    def report(**_: Any) -> None:
        raise MissingError(
            f"command {name!r} of {place.owner} can't be loaded: {problem}",
            next_step=f"reinstall or uninstall {place.owner}",
        )

    return _reporting(name, report, f"(broken: {problem})")


def _reporting(name: str, report: Callable[..., None], summary: str) -> click.Command:
    """A command that takes anything and only reports."""
    return click.Command(
        name,
        callback=report,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
        short_help=summary,
    )


#: Sub-command -> (module:attribute, one line for `rpl --help`). Nothing here is imported for the help.
COMMANDS = {
    "profile": ("rpl_core.cli.profile:profile", "Record an application and analyse it."),
    "analyze": ("rpl_core.cli.profile:analyze", "Analyse recordings; nothing is executed."),
    "plugins": ("rpl_core.cli.installation:plugins_group", "List plugins and what they contribute."),
    "doctor": ("rpl_core.cli.installation:doctor", "Tell what is installed, what is missing, what to do."),
    "schema": ("rpl_core.cli.installation:schema", "Print the JSON schema of a document."),
    "completion": ("rpl_core.cli.command_options:completion", "Completion of values for bash, zsh and fish."),
    "config": ("rpl_core.cli.installation:config_group", "Show settings and where they come from."),
}


@click.command(
    cls=LazyGroup,
    lazy_commands=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-p", "--plugin", "modules", multiple=True, metavar="MODULE", help="Load a plugin module by name."
)
@click.option("--disable-plugin", "disabled", multiple=True, metavar="NAME", help="Do not load this plugin.")
@click.option("--trace-plugins", is_flag=True, help="Print every hook call to stderr.")
@click.option("-q", "silent", is_flag=True, help="No notes: warnings and errors only.")
@click.option("--config", "config_file", metavar="FILE", help="Configuration file instead of the nearest.")
@click.option(
    "--version", "-V", is_flag=True, help="Print the version; with --json also those of the plugins."
)
@click.option("--json", "as_json", is_flag=True, hidden=True)
@click.pass_context
def rpl(
    context: click.Context,
    modules: tuple[str, ...],
    disabled: tuple[str, ...],
    trace_plugins: bool,
    silent: bool,
    config_file: str | None,
    version: bool,
    as_json: bool,
) -> None:
    """ROCm Perf Lab: profile AMD GPU programs, explain what limits them, prove every gain.

    \b
    rpl profile --device NAME -- ./app args      record and analyse an application
    rpl profile --device NAME --from FILE        analyse a recording
    rpl doctor                                   what works on this machine

    Exit codes: 0 ok, 1 negative finding, 64 usage, 65 bad data, 69 something is missing, 70 internal,
    75 no verdict, 76 the application failed, 124 time limit, 130 interrupted.
    """
    session = Session(
        plugin_modules=modules,
        disabled_plugins=disabled,
        trace_plugins=trace_plugins,
        config_file=config_file,
    )
    context.obj = session
    if silent:
        session.output.silent = True
    if version:
        _print_version(session, as_json=as_json)
        context.exit(0)
    if as_json:
        raise click.UsageError("--json belongs behind the command: `rpl COMMAND --json`", context)
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _print_version(session: Session, *, as_json: bool) -> None:
    from rpl_core import RPL_API, __version__

    if not as_json:
        click.echo(f"rpl (ROCm Perf Lab) {__version__}")
        return
    plugins = {record.name: record.version for record in session.host.records}
    session.output.json({"rpl": __version__, "api": RPL_API, "plugins": plugins})
