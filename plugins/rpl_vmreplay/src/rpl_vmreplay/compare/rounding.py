"""How far rounding alone can move a result: runs of both kernels that round otherwise than to the nearest.

The same operations on the same numbers, once with every inexact result rounded up, once down, twice in drawn
directions. What of an output moves then, and by how much, follows from the magnitudes of all terms on its
way, of
cancelled ones too; results of exact operations do not move at all (D. Stott Parker, "Monte Carlo
Arithmetic", 1997;
J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_vmreplay.compare.data_types import DataType, bytes_of, last_places, numbers_of
from rpl_vmreplay.interfaces.replayer import MemoryEdit, Rounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_vmreplay.interfaces.replayer import MemoryRange

#: Directions with the order of the workgroups in which they are tried, for the baseline and for the
#: candidate.
OF_BASELINE = ((Rounding.UP, 0), (Rounding.DOWN, 1), (Rounding.DRAWN, 2), (Rounding.DRAWN, 3))
OF_CANDIDATE = ((Rounding.UP, 0), (Rounding.DOWN, 1))
#: How often the baseline's own movement a result may be away; how much of the candidate's movement counts,
#: as a multiple of the baseline's: longer chains of sums may move more, arithmetic of fewer bits (2^13 times)
#: may not.
OWN_FACTOR, CANDIDATE_LIMIT = 2.0, 16.0
#: Inputs are drawn anew by this part of themselves, so often.
INPUT_CHANGE, INPUT_DRAWS = 2.0**-10, 3
#: Units in the last place that any inexact result may be away, in formats that kernels compute in.
FEWEST_PLACES = 4.0
_STORED_ONLY = (DataType.F16, DataType.BF16)


def movement(kind: DataType, usual: bytes, others: Sequence[bytes]) -> Any:
    """By how much each element moves at most; infinite where it becomes something else than a number."""
    import numpy as np

    at = numbers_of(kind, usual)
    most = np.zeros(len(at))
    with np.errstate(invalid="ignore", over="ignore"):
        for one in others:
            found = numbers_of(kind, one)
            same = (found == at) | (np.isnan(found) & np.isnan(at))
            apart = np.where(same, 0.0, np.abs(found - at))
            most = np.maximum(most, np.where(np.isnan(apart), np.inf, apart))
    return most


def bound(kind: DataType, usual: bytes, ours: Any, theirs: Any, terms: Any, *, rounded: bool) -> Any:
    """How far from ``usual`` each element may be, from the movements of both. All 0 where nothing was
    rounded.

    ``terms`` is how far each moves with inputs that are ``INPUT_CHANGE`` larger or smaller: what one
    rounding of
    its terms is worth, though the baseline itself may happen to round none of them.

    Formats that results are only stored in (16 bits) may be one place away for the last rounding, or as far
    as
    the baseline itself moves: so arithmetic in them, where the baseline has more bits, is no rounding.
    """
    import numpy as np

    if not rounded:
        return np.zeros(len(ours))
    places = last_places(kind, numbers_of(kind, usual))
    if kind in _STORED_ONLY:
        return np.maximum(ours, places)
    if not ours.any():
        return np.zeros(len(ours))
    with np.errstate(invalid="ignore"):
        one = np.where(np.isfinite(terms), terms, 0.0) / INPUT_CHANGE * last_places(kind, np.ones(1))
        share = np.minimum(theirs, CANDIDATE_LIMIT * (ours + one))
        allowed = OWN_FACTOR * ours + np.where(np.isnan(share), 0.0, share) + FEWEST_PLACES * (places + one)
    return np.where((ours > 0) | (one > 0), allowed, 0.0)  # what never moves is no result of rounding


def changed_inputs(edits: Sequence[tuple[MemoryRange, DataType, bytes]], draw: int) -> tuple[MemoryEdit, ...]:
    """Each number by ``INPUT_CHANGE`` of itself larger or smaller."""
    import numpy as np

    source = np.random.default_rng(draw)
    found = []
    for place, kind, content in edits:
        numbers = numbers_of(kind, content)
        signs = source.integers(0, 2, len(numbers)) * 2.0 - 1.0
        found.append(MemoryEdit(place.address, bytes_of(kind, numbers * (1 + INPUT_CHANGE * signs))))
    return tuple(found)


def distance(kind: DataType, usual: bytes, found: bytes) -> Any:
    """How far apart numbers are; infinite where only one side is one, or an infinity is on one side."""
    return movement(kind, usual, [found])
