"""The section on the ranges that the application marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_analysis.text.figures import UNKNOWN, duration_ns, percent
from rpl_core.interfaces.section import Block, Paragraph, ReportSection, SectionRequest, Table
from rpl_core.text.safety import shorten

if TYPE_CHECKING:
    from rpl_analysis.contracts.phases import PhasePart, PhasesPart

__all__ = ["PhasesSection"]

_NAME_WIDTH = 26
#: Rows of the table; profile.json holds more.
_SHOWN = 12
_COLUMNS = ("range", "kernel time", "share", "dominant kernel", "of it", "kernels", "times", "host time")
_RIGHT = tuple(column for column in _COLUMNS if column not in ("range", "dominant kernel"))


class PhasesSection(ReportSection):
    """Nothing where no range was recorded."""

    name = "phases"
    summary = "GPU time, share and dominant kernel of each roctx range"
    title = "Phases"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        profile: Any = request.documents.get("profile")
        phases: PhasesPart | None = getattr(profile, "phases", None)
        if phases is None:
            return ()
        placed = "that were launched inside" if phases.by == "launch" else "that began meanwhile"
        rows = tuple(_row(phase, request) for phase in phases.phases[:_SHOWN])
        said = f"Ranges that the application marked, with the kernels {placed}; nested ranges share theirs."
        rest = len(phases.phases) - len(rows) + phases.phases_left_out
        more = f" {rest} more in profile.json." if rest else ""
        outside = f"Outside of all: {duration_ns(phases.outside_ns)} of kernels.{more}"
        return Paragraph(said), Table(_COLUMNS, rows, right=_RIGHT), Paragraph(outside)


def _row(phase: PhasePart, request: SectionRequest) -> tuple[str, ...]:
    kernel = phase.dominant_kernel
    return (
        shorten(phase.name, _NAME_WIDTH),
        duration_ns(phase.kernel_ns),
        percent(phase.share),
        UNKNOWN if kernel is None else shorten(request.short_names.get(kernel, kernel), _NAME_WIDTH),
        percent(phase.dominant_share),
        f"{phase.launches:,}",
        f"{phase.ranges:,}",
        duration_ns(phase.host_ns),
    )
