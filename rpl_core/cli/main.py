"""The command ``rpl``: global options and the table of sub-commands, each loaded when it is used."""

from __future__ import annotations

import click

from rpl_core.cli.lazy_group import LazyGroup
from rpl_core.cli.session import Session

#: Sub-command -> (module:attribute, one line for `rpl --help`). Nothing here is imported for the help.
COMMANDS = {
    "profile": ("rpl_core.cli.profile:profile", "Record an application and analyse it."),
    "analyze": ("rpl_core.cli.analyze:analyze", "Analyse recordings; nothing is executed."),
    "plugins": ("rpl_core.cli.plugins:plugins_group", "List plugins and what they contribute."),
    "doctor": ("rpl_core.cli.doctor:doctor", "Tell what is installed, what is missing, what to do."),
    "schema": ("rpl_core.cli.schema:schema", "Print the JSON schema of a document."),
    "completion": ("rpl_core.cli.completion:completion", "Completion of values for bash, zsh and fish."),
    "config": ("rpl_core.cli.config:config_group", "Show settings and where they come from."),
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
