"""How figures look in text: few digits, the unit beside them, a dash for the unknown."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.contracts.dag import SpeedupForecastPart
    from rpl_analysis.contracts.profile import OccupancyPart

UNKNOWN = "-"

#: Units of time with their size in ns, the largest first.
_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
#: The unit of the screen that is being made; ``None``: each duration has its own.
_SCREEN_UNIT: ContextVar[tuple[str, float] | None] = ContextVar("rpl_screen_unit", default=None)


@contextmanager
def one_unit(*times_ns: float | None) -> Iterator[None]:
    """All durations that are shown meanwhile have one unit, so that a screen's figures compare at a glance.

    It is that of the largest of ``times_ns``, but never seconds: beside a run of minutes stand kernels of
    microseconds.
    """
    token = _SCREEN_UNIT.set(_unit_of_time(max((time or 0.0 for time in times_ns), default=0.0), _UNITS[1:]))
    try:
        yield
    finally:
        _SCREEN_UNIT.reset(token)


def in_unit(value_ns: float) -> tuple[float, str]:
    """A duration in the unit of the screen, or in the one that keeps it between 1 and 1000."""
    unit, size = _SCREEN_UNIT.get() or _unit_of_time(abs(value_ns), _UNITS)
    return value_ns / size, unit


def _unit_of_time(largest_ns: float, units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    return next((unit for unit in units if largest_ns >= unit[1]), units[-1])


def milliseconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{_digits(value)} ms"


def duration_ns(value: float | None) -> str:
    """A duration as ``in_unit`` says."""
    if value is None:
        return UNKNOWN
    shown, unit = in_unit(value)
    return f"{_digits(shown)} {unit}"


#: Units that are things, and so have a plural.
_THINGS = ("wave", "lane", "conflict", "cycle", "request", "launch")


def unit_of(value: float, unit: str | None) -> str:
    """As it stands behind the figure: "1 wave", "1,216 waves"; a share has none."""
    if unit not in _THINGS or value == 1:
        return unit or ""
    return f"{unit}es" if unit == "launch" else f"{unit}s"


def between(*ends: str) -> str:
    """A range of which the ends are shown; one end where they read alike."""
    return " to ".join(dict.fromkeys(ends))


def times_as_fast(recorded_ns: int, gain_ns: int) -> str:
    """The speed-up by a gain, such as "1.250x"; no limit where nothing is left."""
    left = recorded_ns - gain_ns
    return f"{recorded_ns / left:.3f}x" if left > 0 else "no limit"


def faster_application(answer: SpeedupForecastPart) -> str:
    """The speed-up of the application, with both ends where the order of streams is unknown."""
    most = answer.application_gain_at_most_ns
    ends = (answer.application_gain_ns,) if most is None else (answer.application_gain_ns, most)
    recorded = answer.application_ns + answer.application_gain_ns
    return between(*(times_as_fast(recorded, gain) for gain in ends))


def percent(value: float | None, digits: int = 1) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}%}"


def occupancy_share(occupancy: OccupancyPart) -> str:
    """In percent; both ends where the wave size of the kernel is unknown."""
    if occupancy.theoretical is None and occupancy.theoretical_range is not None:
        low, high = occupancy.theoretical_range
        return f"{low * 100:.0f}-{percent(high, 0)}"
    return percent(occupancy.theoretical, 0)


def number(value: float | None) -> str:
    return UNKNOWN if value is None else _digits(value)


def work_name(name: str, kind: str) -> str:
    """A kernel by its name, a copy direction (``MEMORY_COPY_HOST_TO_DEVICE``) in words."""
    return name.replace("_", " ").lower() if kind == "copy" else name


def _digits(value: float) -> str:
    """Four digits, but never an exponent for a large figure or a few ns in ms: 12,346 and 0.00002."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.6f}".rstrip("0") if 1e-6 <= abs(value) < 1e-4 else f"{value:.4g}"


def marked(value: float | None, exactness: str | None, upper: float | None = None) -> str:
    """A figure with its exactness: ">=" before a lower bound, "~" before an estimate, an interval as one."""
    if value is None:
        return UNKNOWN
    if upper is not None:
        return f"{number(value)} to {number(upper)}"
    return f"{_mark(exactness)}{number(value)}"


def with_unit(value: float, unit: str | None, exactness: str | None, upper: float | None = None) -> str:
    """A figure of any quantity with its exactness and unit, a share in percent."""
    if unit != "fraction":
        return f"{marked(value, exactness, upper)} {unit_of(value, unit)}".rstrip()
    return f"{_mark(exactness)}{percent(value)}" if upper is None else between(percent(value), percent(upper))


def _mark(exactness: str | None) -> str:
    """What stands before one figure for its exactness; nothing before an exact one."""
    return {"lower_bound": ">=", "interval": ">=", "estimate": "~"}.get(exactness or "", "")
