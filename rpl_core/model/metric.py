"""A number with its unit, origin, formula and exactness; unknown is ``None`` with a reason."""

from __future__ import annotations

from rpl_core.model.origin import Exactness, Origin
from rpl_core.values import frozen


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
