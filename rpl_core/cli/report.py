"""``rpl report``: the documents of a run, rendered."""

from __future__ import annotations

from pathlib import Path

import click

from rpl_core.cli.session import session_of


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path), default="rpl-runs/latest")
@click.option("--format", "format_name", default="text", show_default=True, help="Renderer to use.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.pass_context
def report(context: click.Context, run: Path, format_name: str, output: Path | None) -> None:
    """Show the documents of RUN (default: the latest run).

    Example: rpl report rpl-runs/latest
    """
    from rpl_core.documents.load import load_documents
    from rpl_core.files.atomic import write_atomic
    from rpl_core.interfaces.renderer import RenderRequest

    session = session_of(context)
    renderer = session.host.catalog.renderers().get(format_name)
    text = renderer.render(RenderRequest(load_documents(run).by_name()))
    if output is None:
        session.output.raw(text)
    else:
        write_atomic(output, text)
        session.output.note(f"written to {output}")
