"""Quantities that are sums of others, with the exactness that their parts leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.counters.model import QuantityValue
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rpl_core.model.device import Quantity
    from rpl_core.model.origin import Origin

__all__ = ["add_up", "exactness_of_sum"]


def add_up(quantity: Quantity, parts: Mapping[str, QuantityValue], origin: Origin) -> QuantityValue | None:
    """The sum of the known ``parts`` per launch; ``None`` when no part is known.

    An unknown part makes the sum a lower bound. Parts known for different numbers of launches are added
    per launch, and the total is that sum over the smallest number.
    """
    known = {name: part for name, part in parts.items() if part.per_launch.value is not None}
    if not known:
        return None
    metrics = [part.per_launch for part in known.values()]
    launches = min(part.launches for part in known.values())
    exactness = exactness_of_sum(m.exactness for m in metrics)
    if len(known) < len(parts):
        exactness = Exactness.LOWER_BOUND
    elif exactness is Exactness.EXACT and len({part.launches for part in known.values()}) > 1:
        exactness = Exactness.ESTIMATE
    notes = dict.fromkeys(m.note for m in metrics if m.note and m.value)
    per_launch = Metric(
        value=sum(m.value for m in metrics if m.value is not None),
        unit=quantity.unit,
        exactness=exactness,
        origin=origin,
        formula=" + ".join(known),
        counters=tuple(sorted({name for m in metrics for name in m.counters})),
        missing=tuple(sorted({name for part in parts.values() for name in part.per_launch.missing})),
        upper=_upper(metrics) if exactness is Exactness.INTERVAL else None,
        source="sum of the quantities named in the formula",
        note=" ".join(notes) or None,
    )
    return QuantityValue(per_launch, _times(per_launch, launches), launches)


def exactness_of_sum(parts: Iterable[Exactness | None]) -> Exactness:
    """What is known about a sum of non-negative parts.

    A lower bound among them, or an interval beside an estimate, leaves a lower bound only.
    """
    kinds = set(parts)
    if Exactness.LOWER_BOUND in kinds or {Exactness.INTERVAL, Exactness.ESTIMATE} <= kinds:
        return Exactness.LOWER_BOUND
    for kind in (Exactness.INTERVAL, Exactness.ESTIMATE):
        if kind in kinds:
            return kind
    return Exactness.EXACT


def _upper(metrics: list[Metric]) -> float:
    return sum(m.value or 0.0 if m.upper is None else m.upper for m in metrics)


def _times(metric: Metric, launches: int) -> Metric:
    assert metric.value is not None
    upper = None if metric.upper is None else metric.upper * launches
    return attrs.evolve(metric, value=metric.value * launches, upper=upper)
