"""``rpl what-if``: what faster kernels would bring the application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand
from rpl_core.cli.session import session_of


@click.command("what-if", cls=PluginOptionsCommand)
@click.argument("changes", nargs=-1, required=True, metavar="KERNEL=FACTOR...")
@click.option(
    "--run",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Run directory or recording (default: the latest run).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def what_if(
    context: click.Context,
    /,
    changes: tuple[str, ...],
    recordings: tuple[Path, ...],
    as_json: bool,
    **flags: Any,
) -> None:
    """Predict the time of the application if each KERNEL (a name or a part of one) were FACTOR times as fast.

    FACTOR is 1.5, 2x or free. The graph of the run is solved again, for every kernel alone and for all of
    them at once. Nothing is executed.

    \b
    rpl what-if gemm=1.5x
    rpl what-if gemm=2 softmax=free --run rpl-runs/latest
    """
    from rpl_analysis.cli import what_if_command
    from rpl_core.cli.output import shown_while_long

    session = session_of(context)
    paths = recordings or (session.latest_run,)
    with shown_while_long("what-if", paths):
        document, names = what_if_command.answer(session, changes, paths, flags)
    if as_json:
        session.output.json(document.model_dump(mode="json"))
    else:
        what_if_command.show(session.output, document, names)
