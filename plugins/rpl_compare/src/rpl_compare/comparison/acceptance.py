"""``accept_v1`` on measured pairs: does the new version of one kernel prove a gain for the application?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_compare.comparison.model import ItemKey, Kind
from rpl_compare.comparison.samples import samples_of
from rpl_compare.statistics.sequential import AcceptRule, Look, take_look
from rpl_core.errors import BadDataError

if TYPE_CHECKING:
    from rpl_compare.comparison.model import Sample
    from rpl_compare.comparison.side import Side

#: Times of the application that an accepted candidate must not lose (docs/reference/statistics.md, rule 3).
GUARDS = (Kind.MAKESPAN, Kind.CRITICAL_PATH)


def judge_candidate(base: Side, new: Side, kernel: str, rule: AcceptRule) -> Look:
    """One look at the pairs so far. ``kernel`` is an exact name; guards are those that both sides know.

    Raises ``BadDataError`` when the kernel has no usable time in every run of both sides.
    """
    ratios = _log_ratios(base, new)
    key = ItemKey(Kind.KERNEL, kernel)
    if key not in ratios:
        raise BadDataError(
            f"the kernel {kernel!r} has no usable time in every pair",
            cause="a run without it, or damaged timestamps",
        )
    guards = {
        kind.value: ratios[ItemKey(kind, kind.value)]
        for kind in GUARDS
        if ItemKey(kind, kind.value) in ratios
    }
    return take_look(ratios[key], guards, rule)


def _log_ratios(base: Side, new: Side) -> Mapping[ItemKey, tuple[float, ...]]:
    """ln(base / new) per pair for every item that is usable on both sides."""
    left, right = samples_of(base.runs), samples_of(new.runs)
    return {
        key: _paired(left[key], right[key]) for key in left if key in right and _usable(left[key], right[key])
    }


def _usable(base: Sample, new: Sample) -> bool:
    return base.problem is None and new.problem is None


def _paired(base: Sample, new: Sample) -> tuple[float, ...]:
    return tuple(math.log(b / n) for b, n in zip(base.values_ns, new.values_ns, strict=True))
