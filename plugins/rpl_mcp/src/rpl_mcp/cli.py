"""``rpl mcp``: the tools for an agent, over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import session_of


@click.command("mcp")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    metavar="DIR",
    help="Everything is read and written below this folder.",
)
@click.option(
    "--allow-command",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="A command that may be run, word for word: an application, a build, a check. Repeatable.",
)
@click.option("--allow-accept", is_flag=True, help="Accepted sources may be written, beside the original.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    default=3600.0,
    show_default=True,
    help="Seconds for one call of a tool.",
)
@click.pass_context
def mcp(
    context: click.Context,
    /,
    root: Path,
    commands: tuple[str, ...],
    allow_accept: bool,
    time_limit: float,
) -> int:
    """Serve tools for agents over stdin and stdout, by the Model Context Protocol.

    They profile, explain, predict, compare, capture and replay, and walk through an optimization step by
    step. Nothing runs but rpl itself and the commands that are allowed.

    \b
    rpl mcp --root . --allow-command "./app 100"
    rpl mcp --root . --allow-command "./app 100" \\
        --allow-command "hipcc -O3 {source} -o {output}" --allow-accept

    Exit code 0: the client closed the input; 130: a signal ended it, with everything that it had started.
    """
    from rpl_mcp.running import Allowed
    from rpl_mcp.server import serve

    allowed = Allowed.of(root, commands, accept=allow_accept)
    return serve(allowed, _of_all_commands(context), time_limit)


def _of_all_commands(context: click.Context) -> tuple[str, ...]:
    """What was said before `mcp` holds for each command that a tool runs."""
    session, file = session_of(context), context.find_root().params.get("config_file")
    options = [word for module in session.plugin_modules for word in ("-p", module)]
    options += [word for name in session.disabled_plugins for word in ("--disable-plugin", name)]
    return (*options, *(() if file is None else ("--config", str(Path(file).absolute()))))
