"""How often a counted loop runs, where the source alone decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rpl_llm_unroll.loops.counted import Counted
    from rpl_llm_unroll.syntax.constants import Constants

#: More runs than any 32-bit counter can make without wrapping are not a trip count.
_MOST = (1 << 31) - 1


@attrs.frozen
class TripCount:
    """``runs`` iterations, the counter starting at ``first``."""

    runs: int
    first: int


def trip_count(form: Counted, constants: Constants) -> TripCount | None:
    """The constant trip count, or ``None`` when start, bound or step is not a known constant.

    ``i < b``: ceil((b - a) / s) runs, ``i <= b``: floor((b - a) / s) + 1, mirrored downwards; ``!=`` only
    when the step reaches the bound exactly, since otherwise the counter runs past it and wraps.
    """
    first, bound, step = constants.value(form.start), constants.value(form.bound), form.step
    if first is None or bound is None or step is None:
        return None
    if form.type_text.startswith(("unsigned", "size_t", "uint", "std::size_t", "std::uint")):
        # Downwards past zero an unsigned counter wraps: `i >= 0` never ends.
        if first < 0 or bound < 0 or (form.relation == ">=" and bound < abs(step)):
            return None
        if form.relation == ">" and step < -1 and bound < abs(step) - 1:
            return None
    distance = (bound - first) if step > 0 else (first - bound)
    size = abs(step)
    if form.relation == "!=":
        runs = distance // size if distance >= 0 and distance % size == 0 else None
    elif form.relation in {"<", ">"}:
        runs = max(0, -(-distance // size))
    else:
        runs = max(0, distance // size + 1)
    if runs is None or runs > _MOST or abs(first + runs * step) > _MOST:
        return None
    return TripCount(runs, first)
