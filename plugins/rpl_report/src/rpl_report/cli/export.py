"""``rpl export``: a recording or its kernel graph in the formats of other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rpl_core.cli.session import session_of

if TYPE_CHECKING:
    from rpl_analysis.contracts.dag import DagDocument
    from rpl_core.cli.session import Session

FORMATS = ("perfetto", "csv", "speedscope", "graphml", "dot")


@click.command("export")
@click.argument("recordings", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "format_name", type=click.Choice(FORMATS), required=True, help="What to write.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.pass_context
def export(
    context: click.Context, recordings: tuple[Path, ...], format_name: str, output: Path | None
) -> None:
    """Write a run (default: the latest) or recorded files for other programs.

    perfetto, csv and speedscope hold every dispatch and copy of the timing run with the median runtime, and
    the critical path; graphml and dot hold the kernels and the dependences between them.

    \b
    rpl export --format perfetto -o run.pftrace rpl-runs/latest
    rpl export --format csv recording_results.db | head
    """
    from rpl_core.cli.long_work import shown_while_long

    session = session_of(context)
    paths = recordings or (session.latest_run,)
    with shown_while_long("export", paths):
        content = _content(session, paths, format_name, to_terminal=output is None and sys.stdout.isatty())
    if output is None:
        click.echo(content, nl=False)
        return
    from rpl_core.files.atomic import write_atomic

    write_atomic(output, content)
    session.output.note(f"written to {output}")


def _content(session: Session, paths: tuple[Path, ...], name: str, *, to_terminal: bool) -> bytes:
    from rpl_core.errors import UsageError
    from rpl_report.export.formats import DAG_FORMATS, WORK_FORMATS

    if name in DAG_FORMATS:
        return DAG_FORMATS[name].write(_graph(session, paths))
    chosen = WORK_FORMATS[name]
    if chosen.binary and to_terminal:
        raise UsageError(f"the format {name} is binary and stdout is a terminal", next_step="add -o FILE")
    from rpl_report.export.source import load_run

    return chosen.write(load_run(paths, session.host.catalog.readers().contributions))


def _graph(session: Session, paths: tuple[Path, ...]) -> DagDocument:
    """That of the documents where there are some, else of an analysis that is not kept."""
    from rpl_core.documents.load import load_document
    from rpl_core.errors import BadDataError
    from rpl_core.pipeline.analyse import AnalysisRequest
    from rpl_core.pipeline.offline import analyse_paths

    dag: DagDocument
    if len(paths) == 1 and (paths[0] / "dag.json").is_file():
        dag = load_document(paths[0], "dag")  # type: ignore[assignment]
    else:
        # The device has no part in the graph.
        documents, _ = analyse_paths(paths, AnalysisRequest(), session.host)
        dag = documents.dag
    if dag.status != "available":
        raise BadDataError(f"there is no graph to export: {dag.reason}")
    return dag
