"""Drawings of one item: the times of all its runs on both sides, and its change with the interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_compare.contract import ItemPart

__all__ = ["Forest", "Runs", "forest_of", "forest_scale", "runs_of"]

#: Units of a drawing from end to end, with room for the marks at both.
_WIDTH, _MARGIN = 300.0, 8.0


@frozen
class Runs:
    """Places of the runs and the medians; both sides share the axis from ``first`` to ``last`` (ns)."""

    base: tuple[float, ...]
    new: tuple[float, ...]
    base_median: float | None
    new_median: float | None
    first: float
    last: float


@frozen
class Forest:
    """Places of the change, of its interval, of no change and of the allowed slow-down."""

    change: float | None
    low: float | None
    high: float | None
    zero: float
    limit: float


@frozen
class Scale:
    """From fractions of change to places; what lies outside is drawn at the end."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return _MARGIN + (inside - self.low) / (self.high - self.low) * (_WIDTH - 2 * _MARGIN)


def runs_of(item: ItemPart) -> Runs | None:
    """``None`` where no run has a time."""
    values = [*item.base.values_ns, *item.new.values_ns]
    if not values:
        return None
    first, last = min(values), max(values)
    scale = Scale(first, last if last > first else first + 1)

    def median(value: float | None) -> float | None:
        return None if value is None else scale(value)

    return Runs(
        tuple(map(scale, item.base.values_ns)),
        tuple(map(scale, item.new.values_ns)),
        median(item.base.median_ns),
        median(item.new.median_ns),
        first,
        last,
    )


def forest_scale(items: Iterable[ItemPart], limit: float) -> Scale:
    """One axis for all items, around no change, at least to twice the allowed slow-down."""
    known = [value for item in items for value in (item.ratio, item.ratio_low, item.ratio_high) if value]
    widest = max([2 * limit, *(abs(ratio - 1) for ratio in known)])
    return Scale(-widest, widest)


def forest_of(item: ItemPart, scale: Scale, limit: float) -> Forest:
    def place(ratio: float | None) -> float | None:
        return None if ratio is None else scale(ratio - 1)

    return Forest(place(item.ratio), place(item.ratio_low), place(item.ratio_high), scale(0), scale(limit))
