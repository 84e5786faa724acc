"""The roofs of the plot on its logarithmic axes: memory levels, ceilings of data types, and their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_report.html.figures import bytes_per_s, flops

if TYPE_CHECKING:
    from rpl_analysis.contracts.roofline import CeilingsPart, ComputeCeilingDoc, MemoryCeilingDoc

#: More decades than this are no plot of a GPU; what lies outside is listed instead (chosen).
_MOST_DECADES = 14


@frozen
class Tick:
    at: float
    label: str
    major: bool


@frozen
class LogAxis:
    """Decades ``low`` to ``high`` (exponents) from ``start`` to ``end`` in units of the drawing.

    ``giga``: the values count 10^9.
    """

    low: float
    high: float
    start: float
    end: float
    giga: bool = False

    def place(self, value: float) -> float:
        """Where ``value`` (> 0) is drawn; it may lie outside the axis."""
        return self.start + (log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return value > 0 and isfinite(value) and self.low <= log10(value) <= self.high

    @property
    def first(self) -> float:
        return float(10**self.low)

    @property
    def last(self) -> float:
        return float(10**self.high)

    def ticks(self) -> tuple[Tick, ...]:
        """Decades with their label, and 2 to 9 between them."""
        label = giga_label if self.giga else plain_label
        marks = []
        for exponent in range(floor(self.low), ceil(self.high) + 1):
            for digit in range(1, 10):
                value = digit * 10.0**exponent
                if self.holds(value):
                    marks.append(Tick(self.place(value), label(exponent), major=digit == 1))
        return tuple(marks)


@frozen
class Frame:
    """The drawing: its size, and the axes of operational intensity (x) and rate (y)."""

    width: float
    height: float
    x: LogAxis
    y: LogAxis

    def slope_degrees(self) -> float:
        """The angle of a line of constant bandwidth on the drawing, negative: it rises to the right."""
        from math import atan2, degrees

        run = (self.x.end - self.x.start) / (self.x.high - self.x.low)
        rise = (self.y.end - self.y.start) / (self.y.high - self.y.low)
        return degrees(atan2(rise, run))


def axis_over(
    values: Iterable[float], least: tuple[float, float], start: float, end: float, *, giga: bool = False
) -> LogAxis:
    """An axis of whole decades over ``values``, at least over the exponents ``least``."""
    exponents = [log10(value) for value in values if value > 0 and isfinite(value)]
    low = floor(min([least[0], *exponents]))
    high = ceil(max([least[1], *exponents]))
    if high - low > _MOST_DECADES:
        low = max(low, floor(least[1]) - _MOST_DECADES)
        high = min(high, low + _MOST_DECADES)
    return LogAxis(low, high, start, end, giga)


def plain_label(exponent: int) -> str:
    """ "0.01", "1", "1000"; powers of ten beyond that."""
    if 0 <= exponent <= 4:
        return str(10**exponent)
    if -4 <= exponent < 0:
        return f"{10.0**exponent:.{-exponent}f}"
    superscript = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{superscript}"


def giga_label(exponent: int) -> str:
    """The same for units of 10^9, with the fitting prefix: "1 G", "100 T"."""
    prefix = {-2: "k", -1: "M", 0: "G", 1: "T", 2: "P", 3: "E"}.get(exponent // 3)
    return f"{10 ** (exponent % 3)} {prefix}" if prefix else plain_label(exponent + 9)


_LEVELS = {"hbm": "HBM", "l2": "L2", "vl1d": "vL1D", "lds": "LDS"}
_PIPES = {"valu": "VALU", "valu_packed": "packed", "mfma": "MFMA"}
_LABEL_HEIGHT = 14.0
#: How far apart labels of lines of one level stand, as a share of the line (chosen: a label's length).
_APART = 0.22
_LEVEL_ORDER = ("hbm", "l2", "vl1d", "lds")


def level_name(level: str) -> str:
    return _LEVELS.get(level, level)


def pipe_name(pipe: str) -> str:
    return _PIPES.get(pipe, pipe)


@frozen
class MemoryRoof:
    """A line of constant bandwidth from (x1, y1) to (x2, y2)."""

    label: str
    source: str
    origin: str
    level: str
    shown: bool  # false: only with "all ceilings"
    x1: float
    y1: float
    x2: float
    y2: float
    label_x: float
    label_y: float


@frozen
class ComputeRoof:
    """A horizontal line from where memory feeds it; ceilings of equal height share one."""

    label: str
    source: str
    origin: str
    shown: bool
    x1: float
    x2: float
    y: float
    label_y: float


def memory_roofs(
    ceilings: CeilingsPart, compute: tuple[ComputeRoof, ...], frame: Frame
) -> tuple[MemoryRoof, ...]:
    """One line per bandwidth and origin, up to the highest arithmetic that is shown.

    Further measured ceilings of a level, and what is above the shown arithmetic, count as extra.
    """
    top = min((roof.y for roof in compute if roof.shown), default=frame.y.end)
    highest = min((roof.y for roof in compute), default=frame.y.end)
    seen: Counter[tuple[str, str]] = Counter()
    roofs = []
    # Ceilings of one bandwidth and origin share a line; the levels farthest from the cores come first.
    groups: dict[tuple[float, str], list[MemoryCeilingDoc]] = {}
    for ceiling in sorted(ceilings.memory, key=_memory_order):
        if ceiling.peak_gbps > 0:
            groups.setdefault((ceiling.peak_gbps, ceiling.origin), []).append(ceiling)
    for members in groups.values():
        first = members[0]
        shown = (first.level, first.origin) not in seen
        # Labels of different lines stand apart along them, those of one level farther: its lines lie close.
        along = 0.05 + 0.16 * len({level for level, _ in seen} - {first.level})
        along = min(along + _APART * seen[first.level, first.origin], 0.8)
        seen.update((member.level, member.origin) for member in members)
        roofs += _segments(members, along, (top, highest) if shown else (highest,), frame, shown=shown)
    return tuple(roofs)


def _memory_order(ceiling: MemoryCeilingDoc) -> int:
    return _LEVEL_ORDER.index(ceiling.level) if ceiling.level in _LEVEL_ORDER else len(_LEVEL_ORDER)


def _segments(
    members: list[MemoryCeilingDoc], along: float, tops: tuple[float, ...], frame: Frame, *, shown: bool
) -> list[MemoryRoof]:
    """The line up to the first of ``tops`` with its label, then an extra one from there to the next."""
    gbps = members[0].peak_gbps
    left = max(frame.x.first, frame.y.first / gbps)
    x, y = frame.x.place(left), frame.y.place(left * gbps)
    rise = (frame.y.end - frame.y.start) / (frame.y.high - frame.y.low)
    run = (frame.x.end - frame.x.start) / (frame.x.high - frame.x.low)
    roofs: list[MemoryRoof] = []
    for number, top in enumerate(tops):
        x2 = min(x + (top - y) * run / rise, frame.x.end)
        if x2 <= x:
            continue
        y2 = y + (x2 - x) * rise / run
        roofs.append(
            MemoryRoof(
                label=""
                if number
                else f"{', '.join(level_name(m.level) for m in members)} {bytes_per_s(gbps)}",
                source="; ".join(dict.fromkeys(member.source for member in members)),
                origin=members[0].origin,
                level=members[0].level,
                shown=shown and not number,
                x1=x,
                y1=y,
                x2=x2,
                y2=y2,
                label_x=x + along * (x2 - x),
                label_y=y + along * (y2 - y),
            )
        )
        x, y = x2, y2
    return roofs


def compute_roofs(
    ceilings: CeilingsPart, used: set[tuple[str, str]], frame: Frame
) -> tuple[ComputeRoof, ...]:
    """``used`` are (data type, pipe) that some kernel executes; the others are extra.

    Where no kernel computes anything, none is.
    """
    hbm = max((c.peak_gbps for c in ceilings.memory if c.level == "hbm"), default=0.0)
    groups: dict[tuple[float, str], list[ComputeCeilingDoc]] = {}
    for ceiling in ceilings.compute:
        if frame.y.holds(ceiling.peak_gflops):
            groups.setdefault((ceiling.peak_gflops, ceiling.origin), []).append(ceiling)
    roofs = []
    for (peak, origin), members in sorted(groups.items(), key=lambda item: (-item[0][0], item[0][1])):
        used_members = [member for member in members if (member.data_type, member.pipe) in used]
        ridge = peak / hbm if hbm else frame.x.first
        start = min(max(ridge, frame.x.first), frame.x.last)
        roofs.append(
            ComputeRoof(
                label=f"{_types(used_members or members)} {flops(peak)}",
                source="; ".join(dict.fromkeys(member.source for member in members)),
                origin=origin,
                shown=bool(used_members) or not used,
                x1=frame.x.place(start),
                x2=frame.x.end,
                y=frame.y.place(peak),
                label_y=0.0,
            )
        )
    # Labels from top to bottom, each at least a line's height below the one before.
    placed: dict[bool, float] = {}
    apart = []
    for roof in roofs:
        wanted = roof.y + 4
        # Labels of extra roofs must also stand clear of the others, which are always there.
        last = (
            max(placed.values(), default=float("-inf")) if not roof.shown else placed.get(True, float("-inf"))
        )
        at = max(wanted, last + _LABEL_HEIGHT)
        placed[roof.shown] = at
        apart.append(attrs.evolve(roof, label_y=at))
    return tuple(apart)


def _types(members: Iterable[ComputeCeilingDoc]) -> str:
    """ "F64/F32 VALU, F16 MFMA"."""
    by_pipe: dict[str, list[str]] = {}
    for member in members:
        by_pipe.setdefault(member.pipe, []).append(member.data_type)
    return ", ".join(f"{'/'.join(types)} {pipe_name(pipe)}" for pipe, types in by_pipe.items())
