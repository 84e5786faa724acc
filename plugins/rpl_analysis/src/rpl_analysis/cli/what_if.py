"""``rpl what-if``: what faster kernels would bring the application."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import session_of


@click.command("what-if")
@click.argument("changes", nargs=-1, required=True, metavar="KERNEL=FACTOR...")
@click.option(
    "--run",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Run directory or recording (default: the latest run).",
)
@click.option(
    "--copies/--no-copies",
    default=None,
    help="Whether copies are work (default: as the run was analysed) or time between kernels.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def what_if(
    context: click.Context,
    changes: tuple[str, ...],
    recordings: tuple[Path, ...],
    copies: bool | None,
    as_json: bool,
) -> None:
    """Predict the time of the application if each KERNEL (a name or a part of one) were FACTOR times as fast.

    FACTOR is 1.5, 2x or free. The graph of the run is solved again, for every kernel alone and for all of
    them at once. Nothing is executed.

    \b
    rpl what-if gemm=1.5x
    rpl what-if gemm=2 softmax=free --run rpl-runs/latest
    """
    from rpl_analysis.cli import what_if_command
    from rpl_core.cli.long_work import shown_while_long

    session = session_of(context)
    paths = recordings or (session.latest_run,)
    with shown_while_long("what-if", paths):
        document = what_if_command.answer(session, changes, paths, copies)
    if as_json:
        session.output.json(document.model_dump(mode="json"))
    else:
        what_if_command.show(session.output, document)
