"""Logarithmic axes of the roofline plot: from figures to places on the drawing."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, isfinite, log10

from rpl_core.values import frozen

__all__ = ["Frame", "LogAxis", "Tick", "axis_over"]

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
