"""Show the documents of an analysis the way the user asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_core.cli.session import Session
    from rpl_core.documents.bundle import Documents


def show(
    session: Session,
    documents: Documents,
    *,
    as_json: bool,
    quiet: bool,
    directory: Path | None,
    path_first: bool = False,
) -> None:
    """``--json``: profile.json; ``--quiet``: the runtime in ms; otherwise the text report.

    Diagnostics and the place of the documents go to stderr; with ``--quiet`` only what makes the number
    doubtful.
    """
    from rpl_core.errors import BadDataError

    output = session.output
    if quiet:
        profile = documents.content("profile")  # making the model would take longer than all of this
        if profile["runtime_ms"] is None:
            raise BadDataError(f"the runtime is unknown: {profile['runtime_reason']}")
        output.line(f"{profile['runtime_ms']:.6f}")
        for diagnostic in documents.diagnostics:
            if diagnostic.severity != "info":
                output.diagnostic(diagnostic)
        return
    if as_json:
        output.raw(documents.json("profile"))
    else:
        _text(session, documents, path_first=path_first)
    for diagnostic in documents.diagnostics:
        output.diagnostic(diagnostic)
    if directory is not None:
        output.note(f"documents: {directory}")


def _text(session: Session, documents: Documents, *, path_first: bool) -> None:
    from rpl_core.cli.terminal import text_width
    from rpl_core.interfaces.renderer import RenderRequest
    from rpl_report.text.report import TextRenderer

    request = RenderRequest(documents.by_name(), path_first=path_first, width=text_width())
    session.output.raw(TextRenderer().render(request))
