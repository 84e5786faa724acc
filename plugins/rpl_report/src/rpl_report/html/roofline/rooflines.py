"""Several recordings on one page: their rooflines with one colour and one name for each kernel.

For pages of other plugins, such as that of a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rpl_report.documents import report_documents
from rpl_report.html.kernel_identity import assign_colours, by_time, kernel_names
from rpl_report.html.roofline.view import roofline_view

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rpl_report.html.roofline.view import RooflineView

__all__ = ["rooflines_of"]


def rooflines_of(
    sides: Sequence[Mapping[str, BaseModel]], shown: Mapping[str, str]
) -> tuple[tuple[RooflineView, ...], dict[str, str]]:
    """One view per set of documents, and the style class of each kernel's colour by its recorded name.

    ``shown`` says how kernels are called. Colours go to the kernels with most time on the first side.
    """
    found = [report_documents(documents) for documents in sides]
    ranked = [kernel.name for side in found for kernel in by_time(side.profile)]
    colours = assign_colours(ranked)
    views = tuple(
        roofline_view(side.profile, side.roofline, kernel_names((), shown), colours) for side in found
    )
    return views, {name: f"c{colours.of(name)}" for name in ranked}
