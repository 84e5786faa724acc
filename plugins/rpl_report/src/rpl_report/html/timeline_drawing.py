"""The timeline as a drawing: what is there without a script, and what is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.text.safety import readable, shorten
from rpl_core.values import frozen
from rpl_report.html.figures import duration
from rpl_report.timeline.model import NO_SYMBOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_report.html.kernel_identity import Colours
    from rpl_report.timeline.model import BinLevel, Timeline

__all__ = ["Drawing", "LaneDrawing", "draw_timeline"]

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
    ordered, level = (*range_labels, *labels), _level(timeline)
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


def _level(timeline: Timeline) -> BinLevel:
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
