"""Quantities that are sums of others, with the exactness that their parts leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.model import QuantityValue
from rpl_core.model.metric import Exactness, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rpl_core.model.device import Quantity
    from rpl_core.model.metric import Origin

__all__ = ["add_up", "exactness_of_part", "exactness_of_sum", "is_open_above", "low_or_middle"]


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
