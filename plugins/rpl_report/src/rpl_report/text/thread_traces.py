"""The thread traces of a run as a few lines of text: where wave time went, and the hottest places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.figures import UNKNOWN, percent
from rpl_core.text.safety import printable, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_analysis.contracts.profile import ProfileDocument
    from rpl_att.contract import AttPart

_NAME_WIDTH = 60
_SHOWN_PLACES = 3


def thread_trace_section(profile: ProfileDocument) -> str:
    """All traced kernels, or the empty text when nothing was traced."""
    parts = [kernel.att for kernel in profile.kernels if kernel.att is not None]
    blocks = ["\n".join(_lines(part)) for part in (*parts, *profile.untimed_thread_traces)]
    return "\n\n".join(blocks)


def _lines(part: AttPart) -> Iterable[str]:
    name = printable(shorten(part.kernel or "unknown kernel", _NAME_WIDTH))
    if part.cycles is None:
        yield f"thread trace  {name}: {part.status}: {printable(part.reason or '')}"
        return
    extent = f"{part.waves} waves, " if part.waves else ""
    dispatch = f"dispatch {part.dispatch_id}, " if part.dispatch_id is not None else ""
    yield f"thread trace  {name} ({extent}{part.instructions:,} instructions, {dispatch}from {part.level})"
    yield (
        f"  wave time   issue {percent(part.issue_fraction)}, stall {percent(part.stall_fraction)}, "
        f"idle {percent(part.idle_fraction)}"
    )
    yield from _split(part)
    if part.avg_memory_latency is not None:
        yield f"  latency     {part.avg_memory_latency:,.0f} cycles per load of vector memory (mean)"
    for place in part.hot_lines[:_SHOWN_PLACES]:
        yield f"  hot line    {percent(place.share)}  {printable(shorten(place.source, _NAME_WIDTH))}"
    if not part.hot_lines:
        for row in part.hot_instructions[:_SHOWN_PLACES]:
            yield f"  hot ISA     {percent(row.share)}  {printable(shorten(row.isa, _NAME_WIDTH))}"
    for field, why in sorted(part.unavailable.items()):
        yield f"  {UNKNOWN} {field}: {printable(why)}"


def _split(part: AttPart) -> Iterable[str]:
    split = part.stall_split
    if split is None:
        return
    counters = ", ".join(f"{name} {percent(value)}" for name, value in split.memory_wait.items())
    yield (
        f"  waiting     memory {percent(split.memory_wait_fraction)}{f' ({counters})' if counters else ''}, "
        f"barrier {percent(split.barrier_fraction)}, pipes {percent(split.pipe_backpressure_fraction)}, "
        f"start-up {percent(split.startup_fraction)}"
    )
