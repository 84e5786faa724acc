"""``rpl analyze``: documents from recordings, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_core.cli.command_options import (
    KEEP,
    PluginOptionsCommand,
    analysis_options,
    analysis_request,
    require_one_result_form,
)
from rpl_core.cli.session import session_of


@click.command("analyze", cls=PluginOptionsCommand)
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the four documents and run.json here."
)
@KEEP
@click.option("--ranks", is_flag=True, help="All recordings are processes of one run.")
@click.option("--each-is-a-run", is_flag=True, help="Every argument is a repeated run, not another process.")
@analysis_options
@click.pass_context
def analyze(
    context: click.Context,
    /,
    recordings: tuple[Path, ...],
    output: Path | None,
    ranks: bool,
    each_is_a_run: bool,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Analyse run directories, files or folders; nothing is executed.

    Recordings that were made at the same time (ranks) are one run, others are repeated runs, and what was
    assumed is said. --ranks makes all of them processes of one run, --each-is-a-run every argument a run.

    A run directory is analysed as it was recorded (device, ceilings) unless an option says otherwise, and
    gets its documents renewed; of other recordings -o makes a run, which names where they lie.

    \b
    rpl analyze rpl-runs/latest
    rpl analyze --device NAME RECORDING ... -o out
    """
    from rpl_core.cli.process_start import import_numpy_alone

    import_numpy_alone()
    from rpl_core.cli.output import shown_while_long
    from rpl_core.cli.results import show
    from rpl_core.pipeline import analyse_paths, run_directory_of

    require_one_result_form(as_json=as_json, quiet=quiet)
    if flags["keep"] and output is None:
        raise click.UsageError("--keep needs a place: add -o DIR", context)
    if ranks and each_is_a_run:
        raise click.UsageError("--ranks and --each-is-a-run contradict each other", context)
    session = session_of(context)
    request = analysis_request(session, flags, run_directory_of(recordings))
    with shown_while_long("analyze", recordings, quiet=quiet):
        documents, directory = analyse_paths(
            recordings,
            request,
            session.host,
            output=(lambda: output) if output is not None else None,
            keep=flags["keep"],
            each_is_a_run=each_is_a_run,
            ranks=ranks,
        )
    options = request.options
    show(session, documents, as_json=as_json, quiet=quiet, directory=directory, options=options)
