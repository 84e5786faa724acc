"""A figure: its number with unit, formula, where it comes from and how exact it is; or why it is unknown."""

from __future__ import annotations

from enum import Enum
from typing import Final

from rpl_core.values import frozen

#: Name under which a writer that is no profiler says, inside what it writes, what origin it has.
ORIGIN_MARK: Final = "rpl_origin"
#: Begins the recorded command line of synthetic recordings.
SYNTHETIC_COMMAND_MARK: Final = "[synthetic, written by rpl] "


class Origin(str, Enum):
    """The three origins that are never mixed."""

    MEASURED = "measured"  # hardware
    MODELLED = "modelled"  # emulator or formula
    SYNTHETIC = "synthetic"  # a test or demo writer

    @classmethod
    def weakest(cls, origins: list[Origin]) -> Origin:
        """The origin of something derived from several: synthetic over modelled over measured."""
        for candidate in (cls.SYNTHETIC, cls.MODELLED):
            if candidate in origins:
                return candidate
        return cls.MEASURED


class Exactness(str, Enum):
    """How far a figure may be from the truth."""

    EXACT = "exact"
    LOWER_BOUND = "lower_bound"
    INTERVAL = "interval"  # value is the lower end, ``upper`` the other
    ESTIMATE = "estimate"


@frozen
class Metric:
    """One derived figure.

    ``value`` is ``None`` exactly when nothing usable was recorded, and then ``reason`` says why.
    ``upper`` is set for ``Exactness.INTERVAL`` only. ``counters`` are the names that were used,
    ``missing`` those that a better figure would have needed. ``note`` is what a reader must know to use it.
    ``partial`` is an estimate of which a part is unknown: it may be far too low, and bounds nothing.
    """

    value: float | None
    unit: str
    exactness: Exactness | None = None
    origin: Origin | None = None
    formula: str | None = None
    counters: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    upper: float | None = None
    source: str | None = None
    reason: str | None = None
    note: str | None = None
    partial: bool = False

    def impossible(self) -> str | None:
        """What no such figure can be; checked where a plugin gives it."""
        if self.unit == "fraction" and self.value is not None and self.value < 0:
            return f"a fraction of {self.value:g} is below 0"
        return None

    @classmethod
    def unknown(cls, unit: str, reason: str, missing: tuple[str, ...] = ()) -> Metric:
        """A figure that could not be computed."""
        return cls(value=None, unit=unit, reason=reason, missing=missing)
