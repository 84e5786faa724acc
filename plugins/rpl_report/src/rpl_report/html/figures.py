"""How figures look in HTML: a dash for the unknown, units with their prefix, no exponents."""

from __future__ import annotations

from rpl_analysis.text.figures import UNKNOWN, in_unit, number

__all__ = ["bytes_per_s", "count", "duration", "factor", "flops", "intensity", "plain", "share"]

_PREFIXES = ((1e6, "P"), (1e3, "T"), (1.0, "G"), (1e-3, "M"), (1e-6, "k"))


def duration(ns: float | None) -> str:
    """A duration in the unit of the page, with a real micro sign."""
    if ns is None:
        return UNKNOWN
    value, unit = in_unit(ns)
    return f"{_digits(value)} {unit.replace('u', 'µ')}"


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
