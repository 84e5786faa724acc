"""The section on thread traces of all reports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rpl_analysis.text import UNKNOWN, percent
from rpl_att.instruction_class import hottest, waited_for
from rpl_att.reading import place_of
from rpl_core.interfaces.section import Block, Claim, Paragraph, Place, ReportSection, SectionRequest, Table
from rpl_core.text import counted, printable, shorten

if TYPE_CHECKING:
    from rpl_att.contract import AttPart, AttStallSplit, AttWait

_NAME_WIDTH = 60
_SHOWN_PLACES = 3
_CLAIM_WIDTH = 40
_SHOWN_SOURCES = 20
_EXPLAINED_PLACES, _EXPLAINED_WAITS = 12, 6  # of one kernel that somebody asked for


class ThreadTraceSection(ReportSection):
    """Draws its own text, in which labels have a column, and its own HTML, with bars and curves."""

    name = "thread-traces"
    summary = "where wave time went, and the hottest places of each traced kernel"
    title = "Thread traces"

    def blocks(self, request: SectionRequest) -> tuple[Block, ...]:
        return tuple(block for part in _traced(request) for block in _blocks(part, request))

    def text(self, request: SectionRequest) -> str | None:
        return "\n\n".join("\n".join(_lines(part, request)) for part in _traced(request)) or None

    def html(self, request: SectionRequest) -> str | None:
        parts = _traced(request)
        if not parts:
            return None
        from rpl_att.report_html import thread_traces_html

        return thread_traces_html([(shown_kernel(part, request), part) for part in parts], request)

    def claims(self, request: SectionRequest) -> tuple[Claim, ...]:
        return tuple(claim for part in _traced(request) if (claim := _claim(part, request)) is not None)

    def explain(self, request: SectionRequest, kernel: str) -> tuple[Block, ...]:
        asked = (part for part in _traced(request) if part.kernel == kernel)
        return tuple(
            block for part in asked for block in (*_blocks(part, request, _EXPLAINED_WAITS), *_places(part))
        )


def _traced(request: SectionRequest) -> tuple[AttPart, ...]:
    """All traced kernels in order of time, those without a time last."""
    profile: Any = request.documents.get("profile")
    if profile is None:
        return ()
    timed = [kernel.att for kernel in profile.kernels if kernel.att is not None]
    blocks = (*timed, *profile.untimed_thread_traces)
    if not blocks:
        return ()
    from rpl_att.contract import AttPart

    return tuple(AttPart.model_validate(block) for block in blocks)


def _claim(part: AttPart, request: SectionRequest) -> Claim | None:
    """The hottest instruction, what it waited for, and what to do about that."""
    hot = hottest(part)
    if part.cycles is None or not hot:
        return None
    row, wait, step = hot[0]
    isa = shorten(printable(row.isa), _CLAIM_WIDTH)
    awaited = waited_for(wait)
    behind = f", waiting for `{shorten(printable(awaited), _CLAIM_WIDTH)}`" if awaited else ""
    place = f", {_file(row.source)}" if row.source else ""
    share = f"{percent(row.share)} of wave time" if row.share is not None else "most cycles"
    reasons = _reasons(part)
    return Claim(
        head=f"Thread trace of {shown_kernel(part, request)}{f': {reasons}' if reasons else ''}.",
        text=f"Hottest, with {share}: `{isa}`{behind}{place}.",
        step=step,
        command="rpl att show RUN" if step else "",
        kernel=part.kernel,
        places=tuple(_source_places(part, request)),
    )


def _source_places(part: AttPart, request: SectionRequest) -> Iterable[Place]:
    """The hottest lines of source, each with its share and the step for its hottest instruction."""
    for hot in part.hot_lines[:_SHOWN_SOURCES]:
        file, line = place_of(hot.source)
        if not line:
            continue
        rows = hottest(part, len(part.hot_instructions))
        step = next((step for row, _, step in rows if step and (row.source or "").startswith(hot.source)), "")
        share = f"{percent(hot.share)} of wave time" if hot.share is not None else f"{hot.latency:,} cycles"
        yield Place(file, line, f"{share} of {shown_kernel(part, request)}. {step}".rstrip())


def _reasons(part: AttPart) -> str:
    """Where wave time went, the largest shares first."""
    split = part.stall_split
    if split is None:
        return ""
    shares = {
        "waits for memory": split.memory_wait_fraction,
        "barriers": split.barrier_fraction,
        "busy pipes": split.pipe_backpressure_fraction,
        "start-up of waves": split.startup_fraction,
        "issuing": part.issue_fraction,
    }
    known = sorted(((value, name) for name, value in shares.items() if value), reverse=True)
    return ", ".join(f"{name} {percent(value)}" for value, name in known[:_SHOWN_PLACES])


def _lines(part: AttPart, request: SectionRequest) -> Iterable[str]:
    """One kernel in the text report."""
    name = shown_kernel(part, request)
    if part.cycles is None:
        yield f"thread trace  {name}: {part.status}: {printable(part.reason or '')}"
        return
    yield f"thread trace  {name} ({_extent(part)})"
    yield f"  wave time   {_wave_time(part)}"
    if part.stall_split is not None:
        yield f"  waiting     {_waiting(part.stall_split)}"
    if part.avg_memory_latency is not None:
        yield f"  latency     {part.avg_memory_latency:,.0f} cycles per load of vector memory (mean)"
    for place in part.hot_lines[:_SHOWN_PLACES]:
        yield f"  hot line    {percent(place.share)}  {printable(shorten(place.source, _NAME_WIDTH))}"
    if not part.hot_lines:
        for row in part.hot_instructions[:_SHOWN_PLACES]:
            yield f"  hot ISA     {percent(row.share)}  {printable(shorten(row.isa, _NAME_WIDTH))}"
    for field, why in sorted(part.unavailable.items()):
        yield f"  {UNKNOWN} {field}: {printable(why)}"


def _blocks(part: AttPart, request: SectionRequest, most_waits: int = _SHOWN_PLACES) -> Iterable[Block]:
    """One kernel in sentences, with the longest waits and what each waited for."""
    name = shown_kernel(part, request)
    if part.cycles is None:
        yield Paragraph(f"The thread trace of {name} is {part.status}: {part.reason or 'no reason given'}.")
        return
    yield Paragraph(
        f"Thread trace of {name} ({_extent(part)}): {_wave_time(part)} of wave time ({part.origin})."
    )
    if part.stall_split is not None:
        yield Paragraph(f"Waiting: {_waiting(part.stall_split)}.")
    if part.avg_memory_latency is not None:
        yield Paragraph(f"Latency: {part.avg_memory_latency:,.0f} cycles per load of vector memory (mean).")
    if part.waits:
        rows = tuple(row for wait in part.waits[:most_waits] for row in _wait_rows(wait))
        yield Table(("share", "wait", "waited for"), rows, right=("share",))


def _places(part: AttPart) -> Iterable[Block]:
    """The hottest lines and instructions; folders are those of whichever machine compiled the program."""
    if part.cycles is None:
        return
    if part.hot_lines:
        lines = tuple(
            (percent(line.share), _file(line.source)) for line in part.hot_lines[:_EXPLAINED_PLACES]
        )
        yield Table(("share", "source line"), lines, right=("share",))
    else:
        yield Paragraph("Lines of source are unknown: the program has no line tables.")
    if part.hot_instructions:
        rows = tuple(
            (percent(row.share), shorten(row.isa, _NAME_WIDTH), _file(row.source))
            for row in part.hot_instructions[:_EXPLAINED_PLACES]
        )
        yield Table(("share", "instruction", "source line"), rows, right=("share",))
    if part.unavailable:
        missing = "; ".join(f"{field}: {why}" for field, why in sorted(part.unavailable.items()))
        yield Paragraph(f"Unknown: {missing}.")


def _file(source: str | None) -> str:
    return UNKNOWN if source is None else shorten(PurePath(source).name, _NAME_WIDTH)


def _extent(part: AttPart) -> str:
    waves = f"{counted(part.waves, 'wave')}, " if part.waves else ""
    dispatch = f"dispatch {part.dispatch_id}, " if part.dispatch_id is not None else ""
    instructions = counted(part.instructions, "instruction", shown=_digits(part.instructions))
    return f"{waves}{instructions}, {dispatch}from {part.level}"


def _digits(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _wave_time(part: AttPart) -> str:
    fractions = {"issue": part.issue_fraction, "stall": part.stall_fraction, "idle": part.idle_fraction}
    return ", ".join(f"{name} {percent(value)}" for name, value in fractions.items())


def _waiting(split: AttStallSplit) -> str:
    counters = ", ".join(f"{name} {percent(value)}" for name, value in split.memory_wait.items())
    return (
        f"memory {percent(split.memory_wait_fraction)}{f' ({counters})' if counters else ''}, "
        f"barrier {percent(split.barrier_fraction)}, pipes {percent(split.pipe_backpressure_fraction)}, "
        f"start-up {percent(split.startup_fraction)}"
    )


def _wait_rows(wait: AttWait) -> Iterable[tuple[str, str, str]]:
    """What it waited for, one row each, first the operation that most often returned last."""
    latest = sorted(wait.producers, key=lambda place: -place.deciding_cycles)[:_SHOWN_PLACES]
    awaited = [shorten(f"line {place.line}: {place.isa}", _NAME_WIDTH) for place in latest] or [UNKNOWN]
    yield percent(wait.share), shorten(wait.isa, _NAME_WIDTH), awaited[0]
    yield from (("", "", place) for place in awaited[1:])


def shown_kernel(part: AttPart, request: SectionRequest) -> str:
    """As the kernel is called in the rest of the report."""
    name = part.kernel or "unknown kernel"
    return request.short_names.get(name) or printable(shorten(name, _NAME_WIDTH))
