"""How figures look in HTML: a dash for the unknown, units with their prefix, no exponents."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from rpl_analysis.text.figures import UNKNOWN, in_unit, number, one_unit

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = [
    "bytes_per_s",
    "count",
    "duration",
    "factor",
    "flops",
    "intensity",
    "plain",
    "share",
    "table_time",
    "table_unit",
]

_PREFIXES = ((1e6, "P"), (1e3, "T"), (1.0, "G"), (1e-3, "M"), (1e-6, "k"))


def duration(ns: float | None, total_ns: float | None = None) -> str:
    """A duration with a real micro sign, as a part of ``total_ns`` in the unit of that."""
    if ns is None:
        return UNKNOWN
    with one_unit(total_ns) if total_ns is not None else nullcontext():
        value, unit = in_unit(ns)
    return f"{_digits(value)} {_shown_unit(unit)}"


def table_unit(longest_ns: float | None) -> str:
    """The unit of all times of a table whose longest is this; its header tells it, its cells don't."""
    with _unit_of_table(longest_ns):
        return _shown_unit(in_unit(0)[1])


def table_time(ns: float | None, longest_ns: float | None) -> str:
    """A time in the unit of its table."""
    if ns is None:
        return UNKNOWN
    with _unit_of_table(longest_ns):
        return _digits(in_unit(ns)[0])


def _unit_of_table(longest_ns: float | None) -> AbstractContextManager[None]:
    """The longest time is 10 or more of the unit: what is a thousandth of it still has a narrow cell."""
    return one_unit(None if longest_ns is None else longest_ns / 10)


def _shown_unit(unit: str) -> str:
    return unit.replace("u", "µ")


def flops(gflops: float | None) -> str:
    """10^9 operations per second with the fitting prefix."""
    return _scaled(gflops, "FLOP/s")


def bytes_per_s(gbps: float | None) -> str:
    """10^9 bytes per second with the fitting prefix."""
    return _scaled(gbps, "B/s")


def intensity(value: float | None) -> str:
    """FLOP per byte."""
    return plain(value)


def share(value: float | None, digits: int = 1) -> str:
    """A fraction of 1 as percent."""
    return UNKNOWN if value is None else f"{value * 100:.{digits}f} %"


def factor(value: float | None) -> str:
    """A speed-up; ``None`` is no limit."""
    if value is None:
        return "∞"
    return f"{value:.2f}×" if value < 10 else f"{value:.3g}×"


def count(value: float | None) -> str:
    """A number of things, with thin spaces between thousands."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    return text.replace(",", "\N{NARROW NO-BREAK SPACE}")


def plain(value: float | None) -> str:
    """A number without unit."""
    if value is None:
        return UNKNOWN
    if value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.3g}"
    return _digits(value)


def _scaled(value: float | None, unit: str) -> str:
    """``value`` is in units of 10^9."""
    if value is None:
        return UNKNOWN
    for size, prefix in _PREFIXES:
        if abs(value) >= size:
            return f"{_digits(value / size)} {prefix}{unit}"
    return f"{_digits(value * 1e9)} {unit}"


def _digits(value: float) -> str:
    """Four significant digits below 1000, whole numbers above."""
    return number(value).replace(",", "\N{NARROW NO-BREAK SPACE}")
