"""Thread traces in the text report, the HTML report and ``rpl explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text import printable, shorten

if TYPE_CHECKING:
    from rpl_att.contract import AttPart
    from rpl_core.interfaces.section import SectionRequest

__all__ = ["shown_kernel"]

_NAME_WIDTH = 60


def shown_kernel(part: AttPart, request: SectionRequest) -> str:
    """As the kernel is called in the rest of the report."""
    name = part.kernel or "unknown kernel"
    return request.short_names.get(name) or printable(shorten(name, _NAME_WIDTH))
