"""The section of the HTML report: what waves did, and the sampled instructions beside their source lines."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rpl_core.text import readable
from rpl_core.values import frozen
from rpl_pcsampling.counting import source_line
from rpl_pcsampling.phrases import TOO_FEW, interval, main_stall, place_of, shown_kernel, summary
from rpl_report.html import figures as q

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Template

    from rpl_core.interfaces.section import SectionRequest
    from rpl_pcsampling.contract import Sampled, SampledKernel, SampledLine, SampledPlace

_SHOWN_LINES, _SHOWN_PER_LINE = 30, 16
#: Style classes of states, those of the same states in the section of thread traces where there are such.
_CSS = {
    "issued": "w0",
    "waitcnt": "w1",
    "barrier_wait": "w2",
    "alu_dependency": "w3",
    "arbiter_win_ex_stall": "w4",
    "no_instruction_available": "w5",
    "arbiter_not_win": "w6",
    "internal_instruction": "w7",
}
_OTHER_CSS = "c9"
_NO_LINE = "no source line"


@frozen
class Part:
    """A part of the stacked bar, in percent of the bar; ``text`` has its interval."""

    label: str
    css: str
    start: float
    width: float
    text: str


@frozen
class Row:
    """A source line (``is_line``) or an instruction below it; ``cells`` stand behind samples and share."""

    is_line: bool
    samples: str
    share: str
    cells: tuple[str, ...]
    text: str


@frozen
class View:
    """One kernel. ``columns`` head the cells; those of other sources stand only where they know something."""

    name: str
    target: str | None
    summary: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int


def samples_html(kernels: Sequence[SampledKernel], request: SectionRequest) -> str:
    """All sampled kernels, in the classes of the report's style sheet. Every inserted value is escaped."""
    return _template().render(views=[_view(kernel, request) for kernel in kernels])


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rpl_pcsampling", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["px"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    return environment.get_template("pc_samples.html.j2")


def _view(kernel: SampledKernel, request: SectionRequest) -> View:
    traced = any(place.trace is not None for place in kernel.places)
    emulated = any(place.executed is not None for place in kernel.places) or any(
        line.executed is not None for line in kernel.lines
    )
    rows = tuple(_rows(kernel, traced=traced, emulated=emulated))
    return View(
        name=readable(shown_kernel(kernel, request), 64),
        target=request.anchors.get(kernel.kernel or ""),
        summary=readable(summary(kernel), 300),
        notes=tuple(readable(note, 300) for note in _notes(kernel)),
        facts=tuple(_facts(kernel)),
        parts=_parts(kernel),
        columns=(
            *("Issued", "Main stall", "Lanes", "Waves", "Position"),
            *(("Traced cycles", "Traced hits") if traced else ()),
            *(("Executed (emulator)",) if emulated else ()),
        ),
        rows=rows,
        left_out=len(kernel.places) - sum(not row.is_line for row in rows) + kernel.places_left_out,
    )


def _notes(kernel: SampledKernel) -> Iterable[str]:
    if kernel.reason:
        yield kernel.reason
    if kernel.kernel_reason:
        yield f"kernel: {kernel.kernel_reason}"
    yield from (f"{field}: {why}" for field, why in sorted(kernel.unavailable.items()))
    if kernel.lines_reason:
        yield f"source lines: {kernel.lines_reason}"
    if kernel.position == "text":
        yield "the recording (CSV) tells instructions by text and comment only; equal ones count as one"
    if kernel.undecoded:
        yield f"samples at instructions that could not be decoded: {kernel.undecoded:,}"


def _facts(kernel: SampledKernel) -> Iterable[tuple[str, str]]:
    if kernel.lanes is not None:
        yield "Active lanes", f"{q.plain(kernel.lanes)} of the sampled wave (mean)"
    if kernel.waves is not None:
        yield "Waves", f"{q.plain(kernel.waves)} on the compute unit (mean)"
    if kernel.instruction_types:
        issued = sum(kernel.instruction_types.values())
        kinds = (f"{kind} {q.share(n / issued, 0)}" for kind, n in list(kernel.instruction_types.items())[:6])
        yield "Issued instructions", ", ".join(kinds)
    for name, metric in kernel.counters.items():
        upper = "" if metric.upper is None else f" to {q.plain(metric.upper)}"
        yield f"Counter: {readable(name, 60)}", f"{q.plain(metric.value)}{upper} ({metric.origin})"


def _parts(kernel: SampledKernel) -> tuple[Part, ...]:
    """Issued, then the stall reasons that occurred; what is left has an unknown state."""
    if kernel.issue_share is None or kernel.stalls is None:
        return ()
    parts, start = [], 0.0
    for state in (kernel.issue_share, *kernel.stalls):
        if state.samples:
            width = 100 * state.share
            label = state.reason.replace("_", " ")
            css = _CSS.get(state.reason, _OTHER_CSS)
            parts.append(Part(label, css, start, width, interval(state)))
            start += width
    return tuple(parts)


def _rows(kernel: SampledKernel, *, traced: bool, emulated: bool) -> Iterable[Row]:
    """Hot lines, each with its instructions in the order of the code; those without a line come last."""
    below: dict[str | None, list[SampledPlace]] = {}
    for place in kernel.places:
        below.setdefault(source_line(place.source), []).append(place)
    for line in kernel.lines[:_SHOWN_LINES]:
        yield _row(line, place_of(line.source), _line_cells(line, traced=traced, emulated=emulated))
        yield from _instructions(below.get(line.source, ()), kernel, traced=traced, emulated=emulated)
    unplaced = below.get(None, ())
    if unplaced and kernel.lines:
        yield Row(
            is_line=True, samples="", share="", cells=("",) * (5 + 2 * traced + emulated), text=_NO_LINE
        )
    yield from _instructions(unplaced, kernel, traced=traced, emulated=emulated)


def _instructions(
    places: Sequence[SampledPlace], kernel: SampledKernel, *, traced: bool, emulated: bool
) -> Iterable[Row]:
    shown = sorted(
        places[:_SHOWN_PER_LINE], key=lambda sampled: (sampled.code_object or 0, sampled.offset or 0)
    )
    for place in shown:
        position = "by text" if kernel.position == "text" else f"0x{place.offset or 0:x}"
        trace = place.trace
        cells = (
            *_state(place),
            position,
            *((q.share(trace.share), q.count(trace.hits)) if trace else ("-", "-") if traced else ()),
            *((q.count(place.executed),) if emulated else ()),
        )
        yield _row(place, readable(place.instruction or "not decoded", 120), cells)


def _line_cells(line: SampledLine, *, traced: bool, emulated: bool) -> tuple[str, ...]:
    return (
        *_state(line),
        "",
        *(("", "") if traced else ()),
        *((q.count(line.executed),) if emulated else ()),
    )


def _state(sampled: Sampled) -> tuple[str, ...]:
    issued = None if sampled.issued is None else sampled.issued / sampled.samples
    return q.share(issued, 0), main_stall(sampled), q.plain(sampled.lanes), q.plain(sampled.waves)


def _row(sampled: SampledLine | SampledPlace, text: str, cells: tuple[str, ...]) -> Row:
    from rpl_pcsampling.contract import SampledLine

    share = f"{TOO_FEW} (to {sampled.share_high:.1%})" if sampled.too_few else interval(sampled)
    return Row(isinstance(sampled, SampledLine), q.count(sampled.samples), share, cells, readable(text, 120))
