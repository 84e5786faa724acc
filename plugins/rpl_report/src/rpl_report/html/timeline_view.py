"""The timeline section: columns for the page's script, and the drawing that needs none and is printed."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rpl_core.text import counted, readable, shorten
from rpl_core.values import frozen
from rpl_report.html.figures import count, duration
from rpl_report.timeline import NO_SYMBOL
from rpl_report.timeline.build import LONGEST_OF_ALL, LONGEST_ON_PATH, LONGEST_PER_SYMBOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import DTypeLike, NDArray

    from rpl_report.html.figures import Colours, KernelNames
    from rpl_report.timeline import (
        BinLevel,
        RangeLane,
        Timeline,
        TimelineLane,
    )

#: Inside a script element only these could begin a tag or a comment or, in old parsers, end a line.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def timeline_data(
    timeline: Timeline,
    labels: Sequence[str],
    range_labels: Sequence[str],
    names: KernelNames,
    colours: Colours,
) -> dict[str, Any]:
    """Times in ns, exact below 2^53 ns (104 days); ``id`` is the dispatch id plus 1, 0 for copies."""
    return {
        "span": timeline.span_ns,
        "complete": timeline.complete,
        "lanes": list(labels),
        "symbols": [
            {
                "name": names.work(symbol.name, symbol.kind),
                "own": names.work(symbol.name, symbol.kind),
                "colour": colours.of(symbol.name, symbol.kind),
                "target": names.of(symbol.name) if symbol.kind == "kernel" else None,
            }
            for symbol in timeline.symbols
        ],
        "kept": {
            "lane": _column(timeline.kept.lane, "u2"),
            "symbol": _column(timeline.kept.symbol, "u2"),
            "begin": _counts(timeline.kept.begin_ns),
            "duration": _counts(timeline.kept.duration_ns),
            "slack": _counts(timeline.kept.slack_ns),
            "path": _column(timeline.kept.on_path, "u1"),
            "id": _counts(timeline.kept.identity + 1),
        },
        "levels": [_level_columns(level) for level in timeline.levels],
        "links": {
            "from": _column(timeline.links.source_lane, "u2"),
            "to": _column(timeline.links.target_lane, "u2"),
            "left": _counts(timeline.links.source_end_ns),
            "right": _counts(timeline.links.target_begin_ns),
        },
        "ranges": {
            "rows": list(range_labels),
            "names": [readable(name, 120) for name in timeline.ranges.names],
            "row": _column(timeline.ranges.lane, "u2"),
            "name": _column(timeline.ranges.name, "u2"),
            "begin": _column(timeline.ranges.begin_ns, "f8"),
            "duration": _counts(timeline.ranges.duration_ns),
        },
    }


def _level_columns(level: BinLevel) -> dict[str, Any]:
    return {
        "width": level.width_ns,
        "bins": level.bins,
        "busy": _column(level.busy, "u1"),
        "path": _column(level.on_path, "u1"),
        "symbol": _column(level.symbol, "u2"),
        "count": _column(level.count, "u4"),
    }


def script_json(value: Any) -> Markup:
    """``value`` as JSON for a ``<script type="application/json">`` element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"), sort_keys=True)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 - every character that HTML knows is escaped above


def _column(values: NDArray[np.generic], kind: DTypeLike) -> str:
    """``values`` as little-endian ``kind`` in base64; what typed arrays of the script read."""
    import numpy as np

    wanted = np.dtype(kind).newbyteorder("<")
    return base64.b64encode(np.ascontiguousarray(values.astype(wanted)).tobytes()).decode("ascii")


def _counts(values: NDArray[np.int64]) -> dict[str, str]:
    """Whole numbers from 0 on: 4 bytes each where they all fit, else float64, exact below 2^53."""
    kind = "u4" if not values.size or int(values.max()) < 1 << 32 else "f8"
    return {"kind": kind, "data": _column(values, kind)}


_WIDTH, _RIGHT = 1000.0, 10.0
_LETTER, _NARROWEST, _WIDEST = 5.6, 80.0, 260.0
_LANE, _GAP, _TOP, _PATH = 26.0, 6.0, 8.0, 4.0
#: Lanes times bins of the drawing (chosen: about 20 bytes each).
_MOST_CELLS = 12_000
_FEWEST = 96
_TICKS = 8
#: Ranges of the drawing, and letters of a name that say something (chosen).
_MOST_RANGES = 400
_FEWEST_LETTERS = 4


@frozen
class LaneDrawing:
    """``fills`` are (colour class, path data); ``path`` marks what is critical."""

    label: str
    y: float
    fills: tuple[tuple[str, str], ...]
    path: str


@frozen
class RangeBox:
    """``text`` is what fits inside; ``title`` says all."""

    x: float
    y: float
    width: float
    text: str
    title: str


@frozen
class Drawing:
    width: float
    height: float
    left: float
    lane_height: float
    lanes: tuple[LaneDrawing, ...]
    ranges: tuple[RangeBox, ...]
    ticks: tuple[tuple[float, str], ...]


@frozen
class Scale:
    """From ns to places on the drawing."""

    left: float
    per_ns: float

    def __call__(self, ns: float) -> float:
        return self.left + ns * self.per_ns


def draw_timeline(
    timeline: Timeline, labels: Sequence[str], range_labels: Sequence[str], colours: Colours
) -> Drawing:
    """Rows of ranges, then one per lane: height is how busy, colour what ran most, the bar: critical."""
    ordered, level = (*range_labels, *labels), _drawn_level(timeline)
    css = [f"c{colours.of(symbol.name, symbol.kind)}" for symbol in timeline.symbols]
    left = min(_WIDEST, max(_NARROWEST, 16 + _LETTER * max(len(label) for label in ordered)))
    scale = Scale(left, (_WIDTH - left - _RIGHT) / max(timeline.span_ns, 1))
    lanes = []
    for row, label in enumerate(ordered):
        y, number = _TOP + row * (_LANE + _GAP), row - len(range_labels)
        lanes.append(
            LaneDrawing(
                label=label,
                y=y,
                fills=_fills(level, number, y, scale, css) if number >= 0 else (),
                path=_critical(level, number, y, scale) if number >= 0 else "",
            )
        )
    return Drawing(
        width=_WIDTH,
        height=_TOP + len(ordered) * (_LANE + _GAP) + 26.0,
        left=left,
        lane_height=_LANE,
        lanes=tuple(lanes),
        ranges=_range_boxes(timeline, scale),
        ticks=_ticks(timeline.span_ns, scale),
    )


def _range_boxes(timeline: Timeline, scale: Scale) -> tuple[RangeBox, ...]:
    """The longest ones, cut at the ends of the drawing."""
    ranges = timeline.ranges
    longest = sorted((-ranges.duration_ns).argsort(kind="stable")[:_MOST_RANGES].tolist())
    boxes = []
    for i in longest:
        begin, length = int(ranges.begin_ns[i]), int(ranges.duration_ns[i])
        x = scale(max(begin, 0))
        width = max(scale(min(begin + length, max(timeline.span_ns, 1))) - x, 0.4)
        name = readable(ranges.names[int(ranges.name[i])], 120)
        letters = int((width - 6) / _LETTER)
        text = "" if letters < _FEWEST_LETTERS else shorten(name, letters)
        y = _TOP + int(ranges.lane[i]) * (_LANE + _GAP)
        boxes.append(RangeBox(x, y, width, text, f"{name}: {duration(length)}"))
    return tuple(boxes)


def _drawn_level(timeline: Timeline) -> BinLevel:
    """The finest level that is small enough to draw as it stands."""
    most = max(_FEWEST, _MOST_CELLS // max(1, len(timeline.lanes)))
    return next((level for level in timeline.levels if level.bins <= most), timeline.levels[-1])


def _fills(
    level: BinLevel, lane: int, y: float, scale: Scale, css: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Neighbouring bins of one colour and height become one rectangle."""
    width = level.width_ns * scale.per_ns
    room = _LANE - _PATH - 1
    boxes: dict[str, list[str]] = {}
    runs: list[tuple[str, int, int, int]] = []  # colour, tenths of height, first bin, bins
    for index, (busy, symbol) in enumerate(
        zip(level.busy[lane].tolist(), level.symbol[lane].tolist(), strict=True)
    ):
        if symbol == NO_SYMBOL:
            continue
        tenths = max(1, round(busy * 16 / 255))
        colour = css[symbol]
        if runs and runs[-1][:2] == (colour, tenths) and runs[-1][2] + runs[-1][3] == index:
            runs[-1] = (colour, tenths, runs[-1][2], runs[-1][3] + 1)
        else:
            runs.append((colour, tenths, index, 1))
    for colour, tenths, first, bins in runs:
        height = room * tenths / 16
        boxes.setdefault(colour, []).append(
            _box(scale.left + first * width, y + room - height, bins * width, height)
        )
    return tuple((colour, "".join(parts)) for colour, parts in sorted(boxes.items()))


def _critical(level: BinLevel, lane: int, y: float, scale: Scale) -> str:
    width = level.width_ns * scale.per_ns
    parts, first, last = [], -1, -2
    for index in (*level.on_path[lane].nonzero()[0].tolist(), -10):
        if index != last + 1:
            if first >= 0:
                parts.append(
                    _box(scale.left + first * width, y + _LANE - _PATH, (last - first + 1) * width, _PATH)
                )
            first = index
        last = index
    return "".join(parts)


def _box(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:.1f} {y:.1f}h{max(width, 0.4):.1f}v{height:.1f}h{-max(width, 0.4):.1f}z"


def _ticks(span_ns: int, scale: Scale) -> tuple[tuple[float, str], ...]:
    """Round times, about ``_TICKS`` of them."""
    if span_ns <= 0:
        return ((scale.left, "0"),)
    step = 1
    while span_ns / step > _TICKS:
        step = next(step * m for m in (2, 5, 10) if span_ns / (step * m) <= _TICKS or m == 10)
    return tuple((scale(at), duration(at)) for at in range(0, span_ns + 1, step))


_LEGEND = 10
#: Heights of the plots in ``web/src/timeline``: the overview, then a row per lane and the axis.
_OVERVIEW, _AXIS, _ALL_LANES, _LOWEST_LANE, _HIGHEST_LANE = 76, 36, 620, 15, 40


@frozen
class LaneRow:
    label: str
    nodes: int
    busy: float
    on_path: float


@frozen
class LegendEntry:
    name: str
    css: str
    target: str | None


@frozen
class TimelineView:
    """``reason`` is set when there is nothing to show."""

    reason: str | None
    drawing: Drawing | None = None
    data: Markup | None = None
    lanes: tuple[LaneRow, ...] = ()
    legend: tuple[LegendEntry, ...] = ()
    visible: str = ""  # what stays individually visible
    notes: tuple[str, ...] = ()
    plots_height: int = 0  # kept free, so that nothing moves when the script draws


def timeline_view(
    timeline: Timeline | None, reason: str | None, names: KernelNames, colours: Colours
) -> TimelineView:
    if timeline is None:
        return TimelineView(reason=readable(reason or "this renderer was given documents alone", 400))
    labels = [lane_label(lane, timeline) for lane in timeline.lanes]
    range_labels = [_range_label(lane, timeline) for lane in timeline.ranges.lanes]
    return TimelineView(
        reason=None,
        drawing=draw_timeline(timeline, labels, range_labels, colours),
        data=script_json(timeline_data(timeline, labels, range_labels, names, colours)),
        lanes=tuple(_lane(lane, label, timeline) for lane, label in zip(timeline.lanes, labels, strict=True)),
        legend=_legend(timeline, names, colours),
        visible=_visible(timeline),
        notes=tuple(_notes(timeline)),
        plots_height=_plots_height(len(labels) + len(range_labels)),
    )


def _plots_height(lanes: int) -> int:
    lane = max(_LOWEST_LANE, min(_HIGHEST_LANE, _ALL_LANES // max(1, lanes)))
    return _OVERVIEW + lane * lanes + _AXIS


def lane_label(lane: TimelineLane, timeline: Timeline) -> str:
    """As short as it can be: process and machine only where there are several."""
    parts = []
    if timeline.machines > 1:
        parts.append(readable(lane.machine, 24))
    if len({(entry.machine, entry.process) for entry in timeline.lanes}) > 1:
        parts.append(f"pid {lane.process}")
    if lane.agent is not None:
        parts.append(f"GPU {lane.agent}")
    if lane.id is None:
        parts.append("no stream")
    else:
        parts.append(f"{'queue' if lane.by_queue else 'stream'} {lane.id}")
    return " · ".join(parts)


def _range_label(lane: RangeLane, timeline: Timeline) -> str:
    parts = [readable(lane.machine, 24)] if timeline.machines > 1 else []
    parts += [f"pid {lane.process}"] if len({each.process for each in timeline.ranges.lanes}) > 1 else []
    return " · ".join((*parts, lane.label))


def _lane(lane: TimelineLane, label: str, timeline: Timeline) -> LaneRow:
    span = max(timeline.span_ns, 1)
    path = max(timeline.critical_path_ns, 1)
    return LaneRow(label, lane.nodes, lane.busy_ns / span, min(1.0, lane.on_path_ns / path))


def _legend(timeline: Timeline, names: KernelNames, colours: Colours) -> tuple[LegendEntry, ...]:
    """Coloured symbols by total time, then copies and all others, if they occur."""
    entries: list[LegendEntry] = []
    kinds = set()
    for symbol in timeline.symbols:
        number = colours.of(symbol.name, symbol.kind)
        if number >= 8:
            kinds.add(number)
        elif len(entries) < _LEGEND:
            entries.append(LegendEntry(names.short(symbol.name), f"c{number}", names.of(symbol.name)))
    if 8 in kinds:
        entries.append(LegendEntry("copies", "c8", None))
    if 9 in kinds:
        entries.append(LegendEntry("other kernels", "c9", None))
    if len(timeline.ranges):
        entries.append(LegendEntry("ranges that the application marked", "range", None))
    return tuple(entries)


def _visible(timeline: Timeline) -> str:
    if timeline.complete:
        return (
            f"All {count(len(timeline.kept))} dispatches and copies of these lanes are individually visible "
            "when zoomed in."
        )
    shown, every = count(len(timeline.kept)), count(timeline.nodes)
    return (
        f"{shown} of {every} dispatches and copies are individually visible when zoomed in: the "
        f"{count(LONGEST_OF_ALL)} longest, the {count(LONGEST_ON_PATH)} longest on the critical path, the "
        f"{LONGEST_PER_SYMBOL} longest of each kernel, and those where the path changes lanes. All others "
        f"are counted and summed in bins of {duration(timeline.levels[0].width_ns)} per lane, which show how "
        "busy the lane is, with which kernel most, and how much of it is critical; zoomed in, bins are drawn "
        "lower than dispatches."
    )


def _notes(timeline: Timeline) -> list[str]:
    notes = []
    if timeline.lanes_left_out:
        left_out = count(timeline.nodes_left_out)
        nodes = counted(timeline.nodes_left_out, "dispatch or copy", "dispatches and copies", shown=left_out)
        lanes = counted(timeline.lanes_left_out, "lane", shown=count(timeline.lanes_left_out))
        notes.append(f"Not shown: {lanes} with the least work ({nodes}).")
    if timeline.machines > 1:
        notes.append(
            "Machines have clocks of their own: each begins at 0 here, and nothing compares between them."
        )
    if timeline.links.left_out:
        changes = counted(timeline.links.left_out, "more change", shown=count(timeline.links.left_out))
        notes.append(f"Not drawn: {changes} of lane of the critical path.")
    ranges = timeline.ranges
    if ranges.left_out or ranges.lanes_left_out:
        notes.append(
            f"Not shown: {counted(ranges.left_out, 'shorter range', shown=count(ranges.left_out))} and "
            f"{counted(ranges.lanes_left_out, 'row', shown=count(ranges.lanes_left_out))} of ranges."
        )
    if timeline.symbols_merged:
        notes.append(f"{count(timeline.symbols_merged)} kernels with the least time share one entry.")
    return notes
