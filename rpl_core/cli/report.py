"""``rpl report``: the documents of a run, rendered."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import session_of


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--format", "format_name", default="text", show_default=True, help="Renderer to use.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.pass_context
def report(context: click.Context, run: Path | None, format_name: str, output: Path | None) -> None:
    """Show the documents of RUN (default: the latest run).

    Example: rpl report rpl-runs/latest
    """
    from rpl_core.documents.load import load_documents
    from rpl_core.files.atomic import write_atomic
    from rpl_core.interfaces.renderer import RenderRequest
    from rpl_core.plugins.boundary import plugin_boundary

    session = session_of(context)
    renderers = session.host.catalog.renderers()
    renderer = renderers.get(format_name)
    documents = load_documents(run or session.latest_run)
    with plugin_boundary(renderers.plugin_of(format_name), f"renderer {format_name!r}"):
        text = renderer.render(RenderRequest(documents.by_name()))
    if output is None:
        session.output.raw(text)
    else:
        write_atomic(output, text)
        session.output.note(f"written to {output}")
