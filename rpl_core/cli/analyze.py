"""``rpl analyze``: documents from recordings, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rpl_core.cli.command_options import (
    AnalysisOptions,
    PluginOptionsCommand,
    analysis_request,
    keep_option,
)
from rpl_core.cli.declared_options import option, settled, takes
from rpl_core.cli.session import session_of
from rpl_core.values import frozen


@frozen
class AnalyzeOptions:
    """What ``rpl analyze`` alone takes."""

    output: Path | None = option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="Write the four documents and run.json here.",
    )
    keep: bool = keep_option()
    ranks: bool = option("--ranks", is_flag=True, help="All recordings are processes of one run.")
    each_is_a_run: bool = option(
        "--each-is-a-run", is_flag=True, help="Every argument is a repeated run, not another process."
    )


@click.command("analyze", cls=PluginOptionsCommand)
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@takes(AnalyzeOptions, AnalysisOptions)
@click.pass_context
def analyze(
    context: click.Context,
    /,
    recordings: tuple[Path, ...],
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

    session = session_of(context)
    given, common = settled(AnalyzeOptions, session, flags), settled(AnalysisOptions, session, flags)
    common.require_one_form()
    if given.keep and given.output is None:
        raise click.UsageError("--keep needs a place: add -o DIR", context)
    if given.ranks and given.each_is_a_run:
        raise click.UsageError("--ranks and --each-is-a-run contradict each other", context)
    request = analysis_request(session, flags, run_directory_of(recordings))
    output = given.output
    with shown_while_long("analyze", recordings, quiet=common.quiet):
        documents, directory = analyse_paths(
            recordings,
            request,
            session.host,
            output=(lambda: output) if output is not None else None,
            keep=given.keep,
            each_is_a_run=given.each_is_a_run,
            ranks=given.ranks,
        )
    show(
        session,
        documents,
        as_json=common.as_json,
        quiet=common.quiet,
        directory=directory,
        options=request.options,
    )
