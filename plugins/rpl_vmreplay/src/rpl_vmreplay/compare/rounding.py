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
#: The same where the baseline computes in 16 bits: no arithmetic of fewer bits is moved by the direction, so
#: only the length of chains counts (a tree of 256 terms has 8 roundings on each way, a chain 256).
HALVES_LIMIT = 64.0
#: Inputs are drawn anew by this part of themselves, so often.
INPUT_CHANGE, INPUT_DRAWS = 2.0**-10, 3
#: Units in the last place that any inexact result may be away, in formats that kernels compute in.
FEWEST_PLACES = 4.0
_SIXTEEN_BITS = (DataType.F16, DataType.BF16)


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


def bound(
    kind: DataType, usual: bytes, ours: Any, theirs: Any, terms: Any, *, rounded: bool, halves: bool
) -> Any:
    """How far from ``usual`` each element may be, from the movements of both. All 0 where nothing was
    rounded.

    ``terms`` is how far each moves with inputs that are ``INPUT_CHANGE`` larger or smaller: what one
    rounding of
    its terms is worth, though the baseline itself may happen to round none of them.

    Of 16 bits a result may be one place away for the last rounding, or as far as the baseline itself moves:
    so arithmetic in them, where the baseline has more bits, is no rounding. With ``halves`` the baseline
    computes in 16 bits itself, and other orders of its sums are rounding as in wider formats.
    """
    import numpy as np

    if not rounded:
        return np.zeros(len(ours))
    places = last_places(kind, numbers_of(kind, usual))
    if kind in _SIXTEEN_BITS:
        return _of_halves(ours, theirs, terms, places) if halves else np.maximum(ours, places)
    limit = HALVES_LIMIT if halves else CANDIDATE_LIMIT
    if not ours.any():
        return np.zeros(len(ours))
    with np.errstate(invalid="ignore"):
        one = np.where(np.isfinite(terms), terms, 0.0) / INPUT_CHANGE * last_places(kind, np.ones(1))
        share = np.minimum(theirs, limit * (ours + one))
        allowed = OWN_FACTOR * ours + np.where(np.isnan(share), 0.0, share) + FEWEST_PLACES * (places + one)
    return np.where((ours > 0) | (one > 0), allowed, 0.0)  # what never moves is no result of rounding


def computes_in_halves(kind: DataType, usual: bytes, up: bytes, up_but_halves: bytes) -> bool:
    """Whether most of what moves when the baseline rounds up moves by arithmetic of 16 bits, and not by the
    last rounding of what is stored. Then a candidate's is rounding, too."""
    import numpy as np

    whole, rest = movement(kind, usual, [up]), movement(kind, usual, [up_but_halves])
    moving = np.isfinite(whole) & np.isfinite(rest) & (whole > 0)
    places = last_places(kind, numbers_of(kind, usual))
    return bool(moving.any() and np.median((whole / (rest + places))[moving]) > 1)


def _of_halves(ours: Any, theirs: Any, terms: Any, places: Any) -> Any:
    import numpy as np

    moving = (terms > 0) & np.isfinite(terms) & np.isfinite(ours)
    # An element of which no rounding happened to show is made of as many of them as the others.
    usual = np.median(ours[moving] / terms[moving]) if moving.any() else 0.0
    own = np.maximum(ours, np.where(moving, usual * terms, 0.0))
    with np.errstate(invalid="ignore"):
        share = np.minimum(theirs, HALVES_LIMIT * own)
    return np.maximum(places, OWN_FACTOR * own + np.where(np.isnan(share), 0.0, share))


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
