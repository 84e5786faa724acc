"""The section of the HTML report: where wave time went, states and occupancy over time, hottest places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from rpl_att.analysis.att_block import frames
from rpl_att.contract import AttInstruction, AttPart, AttSourceLine, AttTimeline
from rpl_att.instruction_class import hottest
from rpl_core.text import counted, readable
from rpl_core.values import frozen
from rpl_report.html import figures as q

if TYPE_CHECKING:
    from jinja2 import Template

    from rpl_core.interfaces.section import SectionRequest

_NAME_WIDTH = 64
_SHOWN_ROWS = 25
#: Lines of source with the instructions beside them, and instructions of one line (chosen).
_SHOWN_SOURCES, _SHOWN_BESIDE = 15, 6
_NO_SOURCE = (
    "Lines of source are unknown: the program has no line tables. Build it with -g and record again; "
    "until then the heat of the instructions is all that there is."
)
_SHOWN_ENGINES = 4
#: The drawing with room for its axes, and the part of it in which curves are drawn.
_WIDTH, _HEIGHT = 800.0, 210.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 790.0, 10.0, 165.0
_TICKS = 6
#: Style classes of wave states, the same as in the bar above them; of other curves in their order.
_STATES = {"exec": "w0", "wait": "w1", "stall": "w4", "idle": "w6"}
_CURVES = ("w3", "w7", "w2", "w4")


@frozen
class Share:
    """A part of the stacked bar, in percent of the bar."""

    label: str
    css: str
    start: float
    width: float


@frozen
class Curve:
    """A step curve as the ``d`` of a path; ``peak`` is its highest value."""

    name: str
    css: str
    path: str
    peak: int


@frozen
class Chart:
    """Curves over one extent with both axes: (place, label) of each tick.

    ``curves`` are in the order of drawing, which is that from top to bottom where they are stacked.
    """

    curves: tuple[Curve, ...]
    clocks: tuple[tuple[float, str], ...]
    waves: tuple[tuple[float, str], ...]
    peak: str
    left: float = _LEFT
    right: float = _RIGHT
    top: float = _TOP
    bottom: float = _BOTTOM
    width: float = _WIDTH
    height: float = _HEIGHT


@frozen
class HotRow:
    """One instruction: ``heat`` is its width in percent of the hottest, ``step`` what to do about it."""

    cells: tuple[str, ...]
    heat: float
    step: str


@frozen
class SourceGroup:
    """A line of source with its instructions beside it, the hottest first."""

    place: str
    text: str
    figures: tuple[str, ...]
    heat: float
    instructions: tuple[HotRow, ...]
    left_out: int


@frozen
class ThreadTraceView:
    """One traced kernel. Rows are cells of text; ``notes`` say what is missing or doubtful."""

    name: str
    target: str | None
    summary: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    shares: tuple[Share, ...]
    states: Chart | None
    occupancy: Chart | None
    instructions: tuple[HotRow, ...]
    beside: tuple[SourceGroup, ...]
    no_source: str
    waits: tuple[tuple[str, ...], ...]


def thread_traces_html(parts: Sequence[tuple[str, AttPart]], request: SectionRequest) -> str:
    """All traced kernels under the given names, in the classes of the report's style sheet, escaped."""
    return _template().render(views=[_view(name, part, request) for name, part in parts])


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rpl_att", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = q.share
    environment.filters["px"] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")
    return environment.get_template("thread_traces.html.j2")


def _view(name: str, part: AttPart, request: SectionRequest) -> ThreadTraceView:
    return ThreadTraceView(
        name=name,
        target=request.anchors.get(part.kernel or ""),
        summary=_summary(part),
        notes=tuple(readable(note, 300) for note in _notes(part)),
        facts=tuple(_facts(part)),
        shares=_shares(part),
        states=_chart(_stacked([t for t in part.timelines if t.name.startswith("waves ")])),
        occupancy=_chart([(timeline, timeline) for timeline in _occupancy_curves(part)]),
        instructions=tuple(_instruction_rows(part)),
        waits=tuple(_wait_rows(part)),
        beside=_beside(part),
        no_source="" if part.hot_lines else _NO_SOURCE,
    )


def _summary(part: AttPart) -> str:
    if part.cycles is None:
        return readable(f"{part.status}: {part.reason or ''}", 400)
    place = ", ".join(part.compute_units) or "unknown compute unit"
    extent = counted(part.instructions, "instruction", shown=q.count(part.instructions))
    return f"{counted(part.waves, 'wave', shown=q.count(part.waves))} on {readable(place, 200)}, {extent}"


def _notes(part: AttPart) -> Iterable[str]:
    if part.status == "partial":
        yield f"partial: {part.reason}"
    yield from (f"{field}: {why}" for field, why in sorted(part.unavailable.items()))
    yield from (f"contradiction: {c.name}: {c.detail}" for c in part.checks if c.holds is False)
    yield from part.warnings


def _facts(part: AttPart) -> Iterable[tuple[str, str]]:
    if part.waves_per_simd is not None:
        yield "Waves per SIMD", q.plain(part.waves_per_simd)
    if part.ipc is not None:
        yield (
            "Instructions per cycle",
            f"{q.plain(part.ipc.per_simd)} per SIMD, {q.plain(part.ipc.per_cu)} per CU",
        )
    for counter, latency in part.memory_latency.items():
        text = f"mean {latency.mean:,.0f}, median {latency.median:,.0f}, max {latency.max:,} cycles"
        yield f"Latency ({counter})", text
    if part.headroom_fraction is not None:
        yield "Headroom", f"{q.share(part.headroom_fraction)} (memory wait + idle)"
    if part.mfma_utilization is not None and part.mfma_utilization.value is not None:
        utilization = part.mfma_utilization
        yield "MFMA utilisation", f"{q.share(utilization.value)} ({utilization.origin})"


def _shares(part: AttPart) -> tuple[Share, ...]:
    """Parts of wave time that add up to 1: issue, then stall and idle by cause; the rest is other stall."""
    split = part.stall_split
    if split is None or part.idle_fraction is None:
        return ()
    startup = split.startup_fraction or 0.0
    parts = [
        ("memory wait", "w1", split.memory_wait_fraction),
        ("barrier", "w2", split.barrier_fraction),
        (
            "other waits and internal",
            "w3",
            (split.other_wait_fraction or 0.0) + (split.internal_fraction or 0.0),
        ),
        ("pipes busy", "w4", split.pipe_backpressure_fraction),
        ("start-up", "w5", startup),
        ("idle", "w6", max(0.0, part.idle_fraction - startup)),
    ]
    known = [(label, css, value) for label, css, value in parts if value]
    left = max(0.0, 1.0 - sum(value for _, _, value in known))
    shares, start = [], 0.0
    for label, css, value in [("issue of pipes", "w0", left), *known]:
        shares.append(Share(label, css, start, 100 * value))
        start += 100 * value
    return tuple(shares)


def _occupancy_curves(part: AttPart) -> list[AttTimeline]:
    """Of the shader engines whose instructions were traced, else of the first ones.

    Their clocks have different origins, so each curve begins at its own first wave.
    """
    named = {timeline.name: timeline for timeline in part.timelines if timeline.name.startswith("occupancy ")}
    traced = [name for engine in part.shader_engines if (name := f"occupancy SE{engine}") in named]
    chosen = [named[name] for name in (traced or named)][:_SHOWN_ENGINES]
    return [_from_zero(timeline) for timeline in chosen]


def _from_zero(timeline: AttTimeline) -> AttTimeline:
    first = timeline.clocks[0] if timeline.clocks else 0
    return timeline.model_copy(update={"clocks": tuple(clock - first for clock in timeline.clocks)})


def _stacked(timelines: Sequence[AttTimeline]) -> list[tuple[AttTimeline, AttTimeline]]:
    """Each curve with its sum over those before it, at all clocks of any: the largest sum is drawn first."""
    import numpy as np

    drawn = [timeline for timeline in timelines if timeline.clocks]
    if not drawn:
        return []
    clocks = np.unique(np.concatenate([timeline.clocks for timeline in drawn]))
    below = np.zeros(clocks.size, dtype=np.int64)
    pairs = []
    for timeline in drawn:
        place = np.searchsorted(timeline.clocks, clocks, side="right") - 1
        below = below + np.where(place >= 0, np.asarray(timeline.values)[np.maximum(place, 0)], 0)
        summed = {"clocks": tuple(clocks.tolist()), "values": tuple(below.tolist())}
        pairs.append((timeline, timeline.model_copy(update=summed)))
    return pairs[::-1]


def _chart(curves: Sequence[tuple[AttTimeline, AttTimeline]]) -> Chart | None:
    """Curves, each with the line that is drawn for it, over one extent of clocks and one height."""
    lines = [(wave, line) for wave, line in curves if len(line.clocks) > 1]
    if not lines:
        return None
    first, last = min(t.clocks[0] for _, t in lines), max(t.clocks[-1] for _, t in lines)
    peak = max((max(t.values) for _, t in lines), default=0)
    if last <= first or peak <= 0:
        return None
    drawn = tuple(
        Curve(readable(wave.name, 60), _css(wave, index), _path(line, first, last, peak), max(wave.values))
        for index, (wave, line) in enumerate(lines)
    )
    return Chart(drawn, _clock_ticks(first, last), _wave_ticks(peak), q.count(peak))


def _css(timeline: AttTimeline, index: int) -> str:
    return _STATES.get(timeline.name.removeprefix("waves "), _CURVES[index % len(_CURVES)])


def _clock_ticks(first: int, last: int) -> tuple[tuple[float, str], ...]:
    """At round numbers of clocks, some six of them."""
    step = 10 ** max(0, len(str(last - first)) - 1)
    step = next(s for m in (1, 2, 5, 10, 20) if (last - first) / (s := max(1, step * m // 10)) <= _TICKS + 1)
    clocks = range(-(-first // step) * step, last + 1, step)
    scale = (_RIGHT - _LEFT) / (last - first)
    return tuple((_LEFT + (clock - first) * scale, q.count(clock)) for clock in clocks)


def _wave_ticks(peak: int) -> tuple[tuple[float, str], ...]:
    """From 0 to the highest number of waves, whole ones."""
    step = max(1, -(-peak // 4))
    ticks = sorted({*range(0, peak, step), peak})
    if len(ticks) > 2 and peak - ticks[-2] < step / 2:
        del ticks[-2]
    return tuple((_y_of(waves, peak), q.count(waves)) for waves in ticks)


def _y_of(waves: int, peak: int) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * max(0, waves) / peak


def _path(timeline: AttTimeline, first: int, last: int, peak: int) -> str:
    scale = (_RIGHT - _LEFT) / (last - first)
    points = [f"M{_LEFT + (timeline.clocks[0] - first) * scale:.1f} {_BOTTOM:g}"]
    for clock, value in zip(timeline.clocks, timeline.values, strict=True):
        points.append(f"H{_LEFT + (clock - first) * scale:.1f}V{_y_of(value, peak):.1f}")
    return "".join([*points, f"V{_BOTTOM:g}Z"])


def _instruction_rows(part: AttPart) -> Iterable[HotRow]:
    """The step stands on the hottest lines: further down it is what was said already."""
    told: set[str] = set()
    for row, _, step in hottest(part, _SHOWN_ROWS):
        figures = q.count(row.latency), q.count(row.stall), q.count(row.idle), q.count(row.hits)
        where = readable(row.source or "", 90)
        cells = (str(row.line), q.share(row.share), readable(row.isa, 90), *figures, where)
        yield HotRow(cells, _heat(row, part.hot_instructions), "" if step in told else step)
        told.add(step)


def _heat(
    row: AttInstruction | AttSourceLine, every: Sequence[AttInstruction] | Sequence[AttSourceLine]
) -> float:
    """Cycles in percent of those of the row with the most."""
    most = max(entry.latency + (entry.idle or 0) for entry in every)
    return 100 * (row.latency + (row.idle or 0)) / most if most else 0.0


def _beside(part: AttPart) -> tuple[SourceGroup, ...]:
    """The hottest lines of source, each with those of the hottest instructions that it was compiled to."""
    groups = []
    for line in part.hot_lines[:_SHOWN_SOURCES]:
        steps = [
            (row, step)
            for row, _, step in hottest(part, len(part.hot_instructions))
            if frames(row.source or "")[:1] == (line.source,)
        ]
        rows = tuple(
            HotRow(
                (str(row.line), q.share(row.share), readable(row.isa, 90)),
                _heat(row, part.hot_instructions),
                step if number == 0 else "",
            )
            for number, (row, step) in enumerate(steps[:_SHOWN_BESIDE])
        )
        cycles = counted(line.latency, "cycle", shown=q.count(line.latency))
        figures = (q.share(line.share), cycles, counted(line.hits, "hit", shown=q.count(line.hits)))
        groups.append(
            SourceGroup(
                readable(line.source, 120),
                readable(line.text or "", 160),
                figures,
                _heat(line, part.hot_lines),
                rows,
                max(0, line.instructions - len(rows)),
            )
        )
    return tuple(groups)


def _wait_rows(part: AttPart) -> Iterable[tuple[str, ...]]:
    for wait in part.waits[:_SHOWN_ROWS]:
        decided = [p for p in wait.producers if p.deciding_cycles][:2]
        cause = "; ".join(f"line {p.line} {p.isa} ({p.deciding_cycles:,} cycles)" for p in decided)
        yield (
            str(wait.line),
            q.share(wait.share),
            q.count(wait.latency),
            readable(wait.isa, 60),
            readable(cause, 200),
        )
