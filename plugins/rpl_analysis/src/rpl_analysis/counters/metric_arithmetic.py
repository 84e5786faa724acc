"""Sums, quotients and shares of metrics, with the exactness that their parts leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.model import QuantityValue
from rpl_core.model.metric import Exactness, Metric, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rpl_core.model.device import Quantity

# Sums.


def add_up(quantity: Quantity, parts: Mapping[str, QuantityValue], origin: Origin) -> QuantityValue | None:
    """The sum of the known ``parts`` per launch; ``None`` when no part is known.

    An unknown part makes the sum a lower bound, or a partial estimate beside an estimate. Parts known for
    different numbers of launches are added per launch, and the total is that sum over the smallest number.
    """
    known = {name: part for name, part in parts.items() if part.per_launch.value is not None}
    if not known:
        return None
    metrics = [part.per_launch for part in known.values()]
    launches = min(part.launches for part in known.values())
    exactness = exactness_of_sum(m.exactness for m in metrics)
    if len(known) < len(parts):
        exactness = exactness_of_part(exactness)
    elif exactness is Exactness.EXACT and len({part.launches for part in known.values()}) > 1:
        exactness = Exactness.ESTIMATE
    notes = dict.fromkeys(m.note for m in metrics if m.note and m.value)
    per_launch = Metric(
        value=sum(low_or_middle(m, exactness) for m in metrics),
        unit=quantity.unit,
        exactness=exactness,
        origin=origin,
        formula=" + ".join(known),
        counters=tuple(sorted({name for m in metrics for name in m.counters})),
        missing=tuple(sorted({name for part in parts.values() for name in part.per_launch.missing})),
        upper=_upper(metrics) if exactness is Exactness.INTERVAL else None,
        source="sum of the quantities named in the formula",
        note=" ".join(notes) or None,
        partial=exactness is Exactness.ESTIMATE and (len(known) < len(parts) or is_open_above(*metrics)),
    )
    return QuantityValue(per_launch, _times(per_launch, launches), launches)


def exactness_of_sum(parts: Iterable[Exactness | None]) -> Exactness:
    """What is known about a sum of non-negative parts: no bound survives an estimate, which may be high."""
    kinds = set(parts)
    for kind in (Exactness.ESTIMATE, Exactness.LOWER_BOUND, Exactness.INTERVAL):
        if kind in kinds:
            return kind
    return Exactness.EXACT


def exactness_of_part(known: Exactness | None) -> Exactness:
    """What a sum of which ``known`` is the known part says about the whole."""
    return Exactness.ESTIMATE if known is Exactness.ESTIMATE else Exactness.LOWER_BOUND


def is_open_above(*metrics: Metric) -> bool:
    """Whether the truth may be any amount above one of them: a lower bound, or an estimate of a part."""
    return any(metric.partial or metric.exactness is Exactness.LOWER_BOUND for metric in metrics)


def low_or_middle(metric: Metric, exactness: Exactness) -> float:
    """The lower end, which bounds are made of; in an estimate the middle."""
    low = metric.value or 0.0
    return (low + metric.upper) / 2 if exactness is Exactness.ESTIMATE and metric.upper is not None else low


def _upper(metrics: list[Metric]) -> float:
    return sum(m.value or 0.0 if m.upper is None else m.upper for m in metrics)


def _times(metric: Metric, launches: int) -> Metric:
    assert metric.value is not None
    upper = None if metric.upper is None else metric.upper * launches
    return attrs.evolve(metric, value=metric.value * launches, upper=upper)


# Quotients: what a bound, an interval or an estimate leaves of a rate or an intensity.


def quotient(numerator: Metric, denominator: Metric, unit: str, formula: str) -> Metric:
    """``numerator / denominator``; unknown with a reason when one is unknown or the divisor is zero.

    Exact zero over anything is exact zero. A lower bound below the line gives an upper bound, which has no
    label of its own and is called an estimate. So is a bound beside an estimate.
    """
    missing = tuple(sorted({*numerator.missing, *denominator.missing}))
    if numerator.value is None or denominator.value is None:
        lacking = numerator if numerator.value is None else denominator
        return Metric.unknown(unit, lacking.reason or "not recorded", missing)
    if denominator.value <= 0 and (denominator.upper or 0) <= 0:
        return Metric.unknown(unit, f"the divisor of {formula} is zero", missing)
    low, high, exactness = _bounds(numerator, denominator)
    return Metric(
        value=low,
        unit=unit,
        exactness=exactness,
        origin=_origin(numerator, denominator),
        formula=formula,
        counters=tuple(sorted({*numerator.counters, *denominator.counters})),
        missing=missing,
        upper=high if exactness is Exactness.INTERVAL else None,
        note=numerator.note or denominator.note,
        partial=exactness is Exactness.ESTIMATE and is_open_above(numerator),
    )


def _bounds(numerator: Metric, denominator: Metric) -> tuple[float, float | None, Exactness]:
    assert numerator.value is not None
    assert denominator.value is not None
    top, top_high = numerator.value, numerator.upper
    bottom, bottom_high = denominator.value, denominator.upper
    kinds = {numerator.exactness, denominator.exactness}
    if top == 0 and numerator.exactness is Exactness.EXACT:
        return 0.0, None, Exactness.EXACT
    if denominator.exactness is Exactness.LOWER_BOUND:
        return top / bottom if bottom > 0 else 0.0, None, Exactness.ESTIMATE
    if Exactness.ESTIMATE in kinds:
        return _middle(top, top_high) / _middle(bottom, bottom_high), None, Exactness.ESTIMATE
    if Exactness.LOWER_BOUND in kinds:
        return top / (bottom_high or bottom), None, Exactness.LOWER_BOUND
    if Exactness.INTERVAL not in kinds:
        return top / bottom, None, Exactness.EXACT
    if bottom <= 0:  # the upper end is without bound
        return top / (bottom_high or bottom), None, Exactness.LOWER_BOUND
    return top / (bottom_high or bottom), (top if top_high is None else top_high) / bottom, Exactness.INTERVAL


def _middle(low: float, high: float | None) -> float:
    return low if high is None else (low + high) / 2


def _origin(numerator: Metric, denominator: Metric) -> Origin | None:
    known = [metric.origin for metric in (numerator, denominator) if metric.origin is not None]
    return Origin.weakest(known) if known else None


def scaled(metric: Metric, factor: float, unit: str, formula: str, source: str | None = None) -> Metric:
    """``metric`` times an exact number, e.g. divided by a ceiling."""
    if metric.value is None:
        return Metric.unknown(unit, metric.reason or "not recorded", metric.missing)
    return Metric(
        value=metric.value * factor,
        unit=unit,
        exactness=metric.exactness,
        origin=metric.origin,
        formula=formula,
        counters=metric.counters,
        missing=metric.missing,
        upper=None if metric.upper is None else metric.upper * factor,
        source=source,
        note=metric.note,
        partial=metric.partial,
    )


def largest(metrics: Sequence[Metric], unit: str, formula: str) -> Metric:
    """The largest of ``metrics``; one that is unknown leaves a lower bound, of an estimate a partial one."""
    known = [metric for metric in metrics if metric.value is not None]
    if not known:
        reasons = dict.fromkeys(metric.reason for metric in metrics if metric.reason)
        return Metric.unknown(unit, "; ".join(reasons) or "not recorded")
    top = max(known, key=lambda metric: metric.value or 0.0)
    open_above = len(known) < len(metrics) or is_open_above(*known)
    ends = [metric.value or 0.0 if metric.upper is None else metric.upper for metric in known]
    exactness = exactness_of_part(top.exactness) if open_above else top.exactness
    if not open_above and exactness is not Exactness.ESTIMATE and max(ends) > (top.value or 0.0):
        exactness = Exactness.INTERVAL
    return Metric(
        value=top.value,
        unit=unit,
        exactness=exactness,
        origin=top.origin,
        formula=formula,
        counters=tuple(sorted({name for metric in known for name in metric.counters})),
        missing=tuple(sorted({name for metric in metrics for name in metric.missing})),
        upper=max(ends) if exactness is Exactness.INTERVAL else None,
        note=top.note,
        partial=open_above and exactness is Exactness.ESTIMATE,
    )
