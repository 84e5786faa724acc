"""``rpl report``: the documents of a run, rendered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand, option_values
from rpl_core.cli.session import session_of
from rpl_core.text.table import counted

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.contracts.run import RunManifest
    from rpl_core.documents.bundle import Documents
    from rpl_core.ingest.claims import Readers
    from rpl_core.interfaces.renderer import RenderRequest


@click.command("report", cls=PluginOptionsCommand)
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--format", "format_name", default="text", show_default=True, help="Renderer: text, html, json, csv."
)
@click.option("--csv", "format_name", flag_value="csv", help="The table of kernels as CSV.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The recording behind RUN, where RUN holds documents only (for the timeline).",
)
@click.pass_context
def report(
    context: click.Context,
    /,
    run: Path | None,
    format_name: str,
    output: Path | None,
    recordings: tuple[Path, ...],
    **flags: Any,
) -> None:
    """Show the documents of RUN (default: the latest run).

    \b
    rpl report rpl-runs/latest
    rpl report --format html -o report.html rpl-runs/latest
    rpl report --kernel gemm --sort calls --top 50 --names full
    """
    import attrs

    from rpl_analysis.documents.load import load_documents
    from rpl_core.cli.output import emphasised, shows_colours, text_width
    from rpl_core.cli.results import rendered
    from rpl_core.files.atomic import write_atomic

    session = session_of(context)
    renderers = session.host.catalog.renderers()
    renderer = renderers.get(format_name)
    directory = run or session.latest_run
    documents = load_documents(directory, session.host.catalog.documents().contributions)
    request = _request(session, directory, documents, recordings, with_timeline=renderer.wants_timeline)
    request = attrs.evolve(request, options=option_values(session, "report", flags))
    if output is None:
        request = attrs.evolve(request, width=text_width(), terminal=shows_colours())
    text = rendered(renderers, format_name, request)
    if output is None:
        session.output.raw(emphasised(text) if renderer.name == "text" else text)
    else:
        write_atomic(output, text, named=True)
        session.output.note(f"written to {output}")


def _request(
    session: Session,
    directory: Path,
    documents: Documents,
    recordings: tuple[Path, ...],
    *,
    with_timeline: bool,
) -> RenderRequest:
    import attrs

    from rpl_core.errors import UsageError
    from rpl_core.interfaces.renderer import RenderRequest, SectionOf
    from rpl_core.run_directory.layout import is_run_directory
    from rpl_core.run_directory.reader import load_manifest

    catalog = session.host.catalog
    request = RenderRequest(
        documents.by_name(),
        sections=tuple(SectionOf(c.plugin, c.value) for c in catalog.report_sections().contributions),
    )
    if is_run_directory(directory):
        manifest = load_manifest(directory)
        files = _files(manifest)
        recorded = (
            f"analysed {manifest.created_utc} from {files}"
            if files
            else f"recorded {manifest.created_utc} by {manifest.collector}"
        )
        request = attrs.evolve(request, command=manifest.command, recorded=recorded, files=files)
    if with_timeline:
        return _with_timeline(request, directory, recordings, catalog.readers().contributions)
    if recordings:
        raise UsageError(
            "--recording changes nothing in this format", next_step="leave it out, or add --format html"
        )
    return request


def _files(manifest: RunManifest) -> str | None:
    """A name for the recordings of a run that was analysed only, with the folder that they lie in."""
    paths = [Path(entry.path) for entry in manifest.recordings]
    if len(paths) < 2:
        return f"{paths[0].parent.name}/{paths[0].name}" if paths else None
    folders = list(dict.fromkeys(path.parent.name for path in paths))
    more = f" and {len(folders) - 1} more" if folders[1:] else ""
    return f"{counted(len(paths), 'file')} of {folders[0]}{more}"


def _with_timeline(
    request: RenderRequest, directory: Path, recordings: tuple[Path, ...], readers: Readers
) -> RenderRequest:
    import attrs

    from rpl_core.cli.output import shown_while_long
    from rpl_core.process.launch import application_command

    dag: Any = request.documents.get("dag")
    if dag is None:
        return attrs.evolve(request, timeline_reason="there is no dag.json")
    from rpl_report.timeline.build import recorded_timeline

    with shown_while_long("report", recordings or (directory,)):
        timeline = recorded_timeline(directory, recordings, dag, readers)
    request = attrs.evolve(request, timeline=timeline.timeline, timeline_reason=timeline.reason)
    if timeline.hosts:
        known = request.recorded or ""
        before = f"{known}, recorded" if known and not known.startswith("recorded") else known or "recorded"
        request = attrs.evolve(request, recorded=f"{before} on {', '.join(timeline.hosts)}")
    if timeline.command and not request.command:
        request = attrs.evolve(request, command=application_command((timeline.command,)))
    return request
