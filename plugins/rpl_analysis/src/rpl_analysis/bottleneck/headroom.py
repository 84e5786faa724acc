"""How much of the nearer ceiling a kernel leaves unused, from counters or from a thread trace."""

from __future__ import annotations

from collections.abc import Mapping

from rpl_analysis.counters.sums_of_quantities import is_open_above
from rpl_core.model.metric import Metric
from rpl_core.model.origin import Exactness
from rpl_core.values import frozen

_FROM_COUNTERS = "counters: 1 - max(bandwidth / ceiling, flops / ceiling)"
#: Ends of an interval that are farther apart than this leave the headroom unknown (chosen).
_WIDEST_INTERVAL = 0.01


@frozen
class Headroom:
    """``fraction`` with its source, or ``None`` with the reason."""

    fraction: float | None
    source: str | None = None
    reason: str | None = None


def headroom_of(figures: Mapping[str, Metric]) -> Headroom:
    """From counters when they decide it, else from the thread trace, else unknown.

    A share of which only a lower bound is known would overstate the headroom, and one above its ceiling is
    no share of it: both leave it unknown.
    """
    shares = {name: figures.get(name) for name in ("hbm_utilization", "compute_utilization")}
    problem = next((why for name, share in shares.items() if (why := _unusable(name, share))), None)
    known = [share for share in shares.values() if share is not None and share.value is not None]
    if problem is None:
        low, high = max(_low(share) for share in known), max(_high(share) for share in known)
        if high - low <= _WIDEST_INTERVAL:
            return Headroom(1.0 - high, _source(known))
        problem = f"the nearer ceiling is reached to between {low:.0%} and {high:.0%}"
    traced = figures.get("trace_headroom")
    if traced is not None and traced.value is not None:
        return Headroom(traced.value, traced.source)
    return Headroom(None, reason=problem)


def _unusable(name: str, share: Metric | None) -> str | None:
    if share is None or share.value is None:
        return f"{name} is unknown"
    if _high(share) > 1.0:
        return f"{name} is {_high(share):.0%} of its ceiling, so the figure is no share of it"
    if is_open_above(share):
        return f"{name} is known as a lower bound only" if not share.partial else f"{name} is known in part"
    return None


def _source(shares: list[Metric]) -> str:
    estimated = any(share.exactness is Exactness.ESTIMATE for share in shares)
    return f"{_FROM_COUNTERS}{' (an estimate)' if estimated else ''}"


def _low(share: Metric) -> float:
    return share.value or 0.0


def _high(share: Metric) -> float:
    return _low(share) if share.upper is None else share.upper
