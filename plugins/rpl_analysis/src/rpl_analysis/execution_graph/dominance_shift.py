"""After which speed-up of the dominant kernel another one dominates the critical path, and which."""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.critical_path.dominance import dominance_after
from rpl_analysis.execution_graph.forecasts import SPEEDUPS
from rpl_analysis.execution_graph.model import DominanceStep

if TYPE_CHECKING:
    from rpl_analysis.critical_path.dominance import Dominance
    from rpl_analysis.critical_path.segment_sums import SegmentSums
    from rpl_analysis.execution_graph.domain import SolvedDomain

__all__ = ["DominanceShift", "find_dominance_shift"]

#: Halvings of the interval around the shift (in logarithms): it is known to a few percent (chosen).
_HALVINGS = 5
#: Speed-ups beyond this are not searched: the shift is reported at infinity only (chosen).
_LARGEST_SPEEDUP = 64.0


@attrs.frozen
class DominanceShift:
    """``steps`` at the usual speed-ups; ``at`` is the smallest tried one with another dominant symbol."""

    steps: tuple[DominanceStep, ...]
    at: float | None


def find_dominance_shift(solved: SolvedDomain, dominant: int, sums: SegmentSums | None) -> DominanceShift:
    """The shift away from symbol ``dominant``, in the exec-only weighting."""
    answers = _ask(solved, dominant, SPEEDUPS, sums)
    names = solved.domain.work.symbol_names
    steps = tuple(
        DominanceStep(speedup, names[answer.symbol] if answer else None, answer.fraction if answer else None)
        for speedup, answer in zip(SPEEDUPS, answers, strict=True)
    )
    low = 1.0
    for speedup, answer in zip(SPEEDUPS, answers, strict=True):
        if answer is None or answer.symbol != dominant:
            return DominanceShift(steps, _narrowed(solved, dominant, low, speedup, sums))
        low = speedup
    return DominanceShift(steps, None)


def _narrowed(
    solved: SolvedDomain, dominant: int, low: float, high: float, sums: SegmentSums | None
) -> float:
    """The smallest tried speed-up above ``low`` and up to ``high`` with another dominant symbol."""
    if high == inf:
        high = 2 * low
        while not _shifted(solved, dominant, high, sums):
            if high >= _LARGEST_SPEEDUP:
                return inf
            low, high = high, 2 * high
    for _ in range(_HALVINGS):
        # Two decimals are what is reported, and what is asked for must be what is reported.
        middle = round(sqrt(low * high), 2)
        if not low < middle < high:
            break
        if _shifted(solved, dominant, middle, sums):
            high = middle
        else:
            low = middle
    return high


def _shifted(solved: SolvedDomain, dominant: int, speedup: float, sums: SegmentSums | None) -> bool:
    (answer,) = _ask(solved, dominant, (speedup,), sums)
    return answer is None or answer.symbol != dominant


def _ask(
    solved: SolvedDomain, dominant: int, speedups: tuple[float, ...], sums: SegmentSums | None
) -> list[Dominance | None]:
    return dominance_after(solved.graph, solved.weights, solved.domain.symbol, dominant, speedups, sums)
