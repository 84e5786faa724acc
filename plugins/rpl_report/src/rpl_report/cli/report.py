"""``rpl report``: the documents of a run, rendered.

``rpl export``: a recording or its documents in the formats of other programs.
``rpl docs``: the pages of the documentation that were installed with the program.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rpl_core.cli.command_options import PluginOptionsCommand, option_values
from rpl_core.cli.session import session_of
from rpl_core.errors import UsageError
from rpl_core.text import counted, did_you_mean
from rpl_report.hookspecs import EXPORTERS

if TYPE_CHECKING:
    from rpl_core.cli.session import Session
    from rpl_core.contracts.common import RunManifest
    from rpl_core.documents import Documents
    from rpl_core.ingest.claims import Readers
    from rpl_core.interfaces.section import RenderRequest
    from rpl_report.interfaces import Exporter, ExportRequest


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
    from rpl_core.cli.session import rendered
    from rpl_core.files import write_atomic

    session = session_of(context)
    renderers = session.host.catalog.renderers()
    renderer = renderers.get(format_name)
    directory = run or session.latest_run
    documents = load_documents(directory, session.host.catalog.documents().contributions)
    request = _report_request(
        session, directory, documents, recordings, with_timeline=renderer.wants_timeline
    )
    request = attrs.evolve(request, options=option_values(session, "report", flags))
    if output is None:
        request = attrs.evolve(request, width=text_width(), terminal=shows_colours())
    text = rendered(renderers, format_name, request)
    if output is None:
        session.output.raw(emphasised(text) if renderer.name == "text" else text)
    else:
        write_atomic(output, text, named=True)
        session.output.note(f"written to {output}")


def _report_request(
    session: Session,
    directory: Path,
    documents: Documents,
    recordings: tuple[Path, ...],
    *,
    with_timeline: bool,
) -> RenderRequest:
    import attrs

    from rpl_core.errors import UsageError
    from rpl_core.interfaces.section import RenderRequest, SectionOf
    from rpl_core.run_directory import is_run_directory, load_manifest

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
    from rpl_core.process import application_command

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


# ``rpl export``: a recording or its documents in the formats of other programs.


if TYPE_CHECKING:
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
    from rpl_core.files import write_atomic

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
    request = _export_request(session, paths, exporter, asked)
    with plugin_boundary(exporters.plugin_of(name), f"the export format {name!r}"):
        content = exporter.export(request)
        if not isinstance(content, bytes):
            raise TypeError(f"bytes were expected, not {type(content).__name__}")
    return content


def _export_request(
    session: Session, paths: tuple[Path, ...], exporter: Exporter, asked: str | None
) -> ExportRequest:
    """``asked`` is the range to export; without, what the runs were analysed for."""
    from rpl_core.ingest import load_recording
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

    stored = stored_documents(paths[0], catalog.documents().contributions) if len(paths) == 1 else None
    if stored and (asked is None or _range(paths, None) == name):
        return ExportRequest(documents=stored)
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


# ``rpl docs``: the pages of the documentation that were installed with the program.


@click.command("docs")
@click.argument("page", required=False)
@click.option("--path", "only_path", is_flag=True, help="Print where the page lies instead of its text.")
@click.pass_context
def docs(context: click.Context, page: str | None, only_path: bool) -> None:
    """Print PAGE (Markdown), through a pager on a terminal; without a page, list what there is.

    docs/plugins/tutorial.md, plugins/tutorial and tutorial are the same page.

    \b
    rpl docs
    rpl docs tutorial
    """
    pages, output = installed_pages(), session_of(context).output
    if page is None:
        output.table(("PAGE", "TITLE"), [(name, _title(path)) for name, path in pages.items()])
        return
    page_path = pages[_page_named(page, tuple(pages))]
    if only_path:
        output.line(str(page_path))
    else:
        click.echo_via_pager(page_path.read_text(encoding="utf-8"))


def installed_pages() -> dict[str, Path]:
    """Name -> file: those of the wheel, or of the checkout that the core runs from."""
    import rpl_core

    package = Path(rpl_core.__file__).resolve().parent
    root = package / "pages" if (package / "pages").is_dir() else package.parent
    top = {path.stem: path for path in sorted(root.glob("[A-Z]*.md")) if path.stem != "AGENTS"}
    pages = sorted((root / "docs").rglob("*.md"), key=lambda path: path.relative_to(root).as_posix())
    return top | {_short(path.relative_to(root / "docs").as_posix()): path for path in pages}


def _page_named(asked: str, names: tuple[str, ...]) -> str:
    wanted = "/" + _lower_dashed(_short(asked.partition("#")[0].removeprefix("docs/")))
    same = [name for name in names if f"/{_lower_dashed(name)}" == wanted]
    matching = same or [name for name in names if _lower_dashed(name).endswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    raise UsageError(
        f"no page is called {asked!r}{did_you_mean(asked, names)}", next_step="`rpl docs` lists the pages"
    )


def _short(name: str) -> str:
    return name.removesuffix(".md").removesuffix("/index")


def _lower_dashed(name: str) -> str:
    return name.lower().replace("_", "-")


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line[2:] for line in lines if line.startswith("# ")), "")
