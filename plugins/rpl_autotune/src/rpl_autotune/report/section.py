"""The section of reports on the search that a run came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table

if TYPE_CHECKING:
    from rpl_autotune.contracts.autotune import AutotuneDocument

__all__ = ["AutotuneSection"]


class AutotuneSection(ReportSection):
    """Present where the documents of a report hold `autotune`: in the report that a search writes."""

    name = "autotune"
    summary = "how a search of parameters converged, and what its model says"
    title = "Autotuning"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        document = _document(request)
        if document is None:
            return ()
        from rpl_autotune.report.text import configuration_text, model_text, time_text

        best = document.best_config
        shown = (
            "none" if best is None else f"{configuration_text(best.parameters)}, {time_text(best.runtime_ms)}"
        )
        rows = tuple(
            (str(item.number), item.phase, time_text(item.runtime_ms), configuration_text(item.parameters))
            for item in document.evaluations
        )
        return (
            Paragraph(f"Best configuration: {shown}."),
            *(Paragraph(line) for line in model_text(document)),
            Table(("no.", "phase", "time", "configuration"), rows, right=("no.", "time")),
        )

    def html(self, request: SectionRequest) -> str | None:
        document = _document(request)
        if document is None:
            return None
        from rpl_autotune.report.html import section_html

        return section_html(document, self.title)


def _document(request: SectionRequest) -> AutotuneDocument | None:
    document: AutotuneDocument | None = cast("Any", request.documents).get("autotune")
    return document
