"""Show the documents of an analysis the way the user asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rpl_core.cli.session import Session
    from rpl_core.contracts.common import DiagnosticDoc
    from rpl_core.documents.bundle import Documents
    from rpl_core.interfaces.options import Options
    from rpl_core.interfaces.renderer import Renderer, RenderRequest
    from rpl_core.plugins.catalog import NamedContributions

#: The output format of the terminal.
_TEXT = "text"


def show(
    session: Session,
    documents: Documents,
    *,
    as_json: bool,
    quiet: bool,
    directory: Path | None,
    path_first: bool = False,
    options: Options | None = None,
) -> None:
    """``--json``: the leading document; ``--quiet``: its brief form; otherwise the text report.

    Diagnostics and the place of the documents go to stderr; with ``--quiet`` only what makes the number
    doubtful.
    """
    from rpl_core.documents.drafts import diagnostic_drafts

    output, leading = session.output, documents.leading
    if leading is None:
        _without_documents(session, needed=as_json or quiet)
    elif quiet:
        output.line(leading.brief(documents.content(leading.name)))
    elif as_json:
        output.raw(documents.json(leading.name))
    else:
        _text(session, documents, options, path_first=path_first)
    late = [d for d in diagnostic_drafts(session.host.diagnostics) if d not in documents.diagnostics]
    for diagnostic, others in _each_once((*documents.diagnostics, *late)):
        if not quiet or diagnostic.severity != "info":
            output.diagnostic(diagnostic, others)
    if directory is not None and not quiet:
        output.note(f"{'documents' if leading else 'run directory'}: {directory}")


def _each_once(found: Iterable[DiagnosticDoc]) -> Iterator[tuple[DiagnosticDoc, int]]:
    """What was found alike in several files once, with the number of the others."""
    alike: dict[tuple[str | None, ...], list[DiagnosticDoc]] = {}
    for one in found:
        alike.setdefault((one.code, one.fact, one.cause, one.remedy), []).append(one)
    for first, *others in alike.values():
        yield first, len(others)


def _without_documents(session: Session, *, needed: bool) -> None:
    from rpl_core.errors import MissingError
    from rpl_core.plugins.packages import provider_of

    package = provider_of("kinds", "documents") or "rocm-perf-lab"
    fact = "no installed plugin makes the documents of an analysis"
    if needed:
        raise MissingError(fact, next_step=f"pip install {package}")
    session.output.note(
        f"{fact}: the recordings were kept and read, nothing more. Next: pip install {package}."
    )


def _text(session: Session, documents: Documents, options: Options | None, *, path_first: bool) -> None:
    from rpl_core.cli.output import emphasised, shows_colours, text_width
    from rpl_core.interfaces.options import Options
    from rpl_core.interfaces.renderer import RenderRequest, SectionOf
    from rpl_core.plugins.packages import provider_of

    catalog = session.host.catalog
    renderers = catalog.renderers()
    if _TEXT not in renderers:
        package = provider_of("kinds", "renderers") or "rocm-perf-lab"
        session.output.note(f"no installed plugin shows documents as text. Next: pip install {package}.")
        return
    request = RenderRequest(
        {name: documents.view(name) for name in documents.names},
        path_first=path_first,
        width=text_width(),
        terminal=shows_colours(),
        sections=tuple(SectionOf(c.plugin, c.value) for c in catalog.report_sections().contributions),
        options=options or Options(),
    )
    session.output.raw(emphasised(rendered(renderers, _TEXT, request)))


def rendered(renderers: NamedContributions[Renderer], name: str, request: RenderRequest) -> str:
    """What the output format ``name`` gives. Raises ``PluginError`` when it breaks."""
    from rpl_core.model.value_checks import require_value
    from rpl_core.plugins.boundary import plugin_boundary

    with plugin_boundary(renderers.plugin_of(name), f"renderer {name!r}"):
        text = require_value(renderers.get(name).render(request), str)
        text.encode()
    return text
