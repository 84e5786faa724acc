"""``rpl export``: a recording or its documents in the formats of other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand
from rpl_core.cli.session import session_of
from rpl_report.hookspecs import EXPORTERS

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_report.interfaces import Exporter, ExportRequest

    _Name = click.ParamType[str]
else:  # older versions of click have no types for parameters
    _Name = click.ParamType


class FormatName(_Name):
    """One of the installed formats; plugins are asked for them when somebody wants to know."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        refused = session_of(ctx or click.get_current_context()).host.catalog.of(EXPORTERS).refused
        try:
            return _choice(ctx).convert(value, param, ctx)
        except click.BadParameter as error:
            if refused is None:
                raise
            raise click.BadParameter(f"{error.message} Likely cause: {refused}", ctx, param) from None

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return _choice(ctx).get_metavar(param, ctx)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:
        return _choice(ctx).get_missing_message(param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        return _choice(ctx).shell_complete(ctx, param, incomplete)


def _choice(context: click.Context | None) -> click.Choice[str]:
    known = context or click.get_current_context()
    return click.Choice(session_of(known).host.catalog.of(EXPORTERS).names)


@click.command("export", cls=PluginOptionsCommand)
@click.argument("recordings", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "format_name", type=FormatName(), required=True, help="What to write.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.pass_context
def export(
    context: click.Context,
    /,
    recordings: tuple[Path, ...],
    format_name: str,
    output: Path | None,
    **flags: Any,
) -> None:
    """Write a run (default: the latest) or recorded files for other programs.

    perfetto, csv, parquet and speedscope hold every dispatch and copy of the timing run with the median
    runtime, and the critical path; graphml and dot hold the kernels and the dependencies between them.

    \b
    rpl export --format perfetto -o run.pftrace rpl-runs/latest
    rpl export --format csv recording_results.db | head
    """
    from rpl_core.cli.output import shown_while_long

    session = session_of(context)
    paths = recordings or (session.latest_run,)
    to_terminal = output is None and sys.stdout.isatty()
    with shown_while_long("export", paths):
        content = _content(session, paths, format_name, flags.get("range"), to_terminal=to_terminal)
    if output is None:
        click.echo(content, nl=False)
        return
    from rpl_core.files.atomic import write_atomic

    write_atomic(output, content, named=True)
    session.output.note(f"written to {output}")


def _content(
    session: Session, paths: tuple[Path, ...], name: str, asked: str | None, *, to_terminal: bool
) -> bytes:
    from rpl_core.errors import UsageError
    from rpl_core.plugins.boundary import plugin_boundary

    exporters = session.host.catalog.of(EXPORTERS)
    exporter = exporters.get(name)
    if exporter.binary and to_terminal:
        raise UsageError(f"the format {name} is binary and stdout is a terminal", next_step="add -o FILE")
    request = _request(session, paths, exporter, asked)
    with plugin_boundary(exporters.plugin_of(name), f"the export format {name!r}"):
        content = exporter.export(request)
        if not isinstance(content, bytes):
            raise TypeError(f"bytes were expected, not {type(content).__name__}")
    return content


def _request(
    session: Session, paths: tuple[Path, ...], exporter: Exporter, asked: str | None
) -> ExportRequest:
    """``asked`` is the range to export; without, what the runs were analysed for."""
    from rpl_core.ingest.load import load_recording
    from rpl_report.interfaces import ExportInput, ExportRequest

    catalog, name = session.host.catalog, _range(paths, asked)
    if exporter.needs is not ExportInput.DOCUMENTS:
        from rpl_core.pipeline import architectures

        recording = load_recording(paths, catalog.readers().contributions)
        if name is not None:
            from rpl_analysis.phases import restricted

            recording = restricted(recording, name)
        return ExportRequest(recording=recording, architecture=architectures(None, session.host))
    from rpl_report.documents import LazyDocuments, stored_documents

    kept = stored_documents(paths[0], catalog.documents().contributions) if len(paths) == 1 else None
    if kept and (asked is None or _range(paths, None) == name):
        return ExportRequest(documents=kept)
    from rpl_core.interfaces.options import Options
    from rpl_core.pipeline import AnalysisRequest, analyse, run_directory_of

    # What was asked for is written elsewhere, so these documents are not kept; no device was named.
    recording = load_recording(paths, catalog.readers().contributions)
    request = AnalysisRequest(options=Options({"range": name}), root=run_directory_of(paths))
    documents = analyse(recording, request, session.host)
    return ExportRequest(documents=LazyDocuments(documents.names, documents.model))


def _range(paths: tuple[Path, ...], asked: str | None) -> str | None:
    """The range to export, ``None`` for all work: also without the distribution that can restrict to one."""
    try:
        from rpl_analysis.documents.load import chosen_range
    except ModuleNotFoundError:
        return None
    return chosen_range(paths, asked)
