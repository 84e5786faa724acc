"""The section of the HTML report, and the report that a search writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rpl_autotune.report import plots
from rpl_autotune.report.text import document_text

if TYPE_CHECKING:
    from rpl_autotune.contracts.autotune import AutotuneDocument

__all__ = ["section_html"]


def section_html(document: AutotuneDocument, title: str) -> str:
    """The whole section: the text with its table, and a drawing for what each can show."""
    drawings = (
        plots.convergence(document),
        plots.predicted_against_measured(document),
        plots.importance(document),
        plots.pair_grid(document),
    )
    return str(
        Markup('<section id="autotune"><h2>{}</h2><pre>{}</pre>{}</section>').format(
            title,
            document_text(document),
            Markup("").join(drawing for drawing in drawings if drawing is not None),
        )
    )
