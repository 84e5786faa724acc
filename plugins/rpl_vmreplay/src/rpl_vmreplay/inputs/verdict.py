"""Answers of both kernels on many inputs become one verdict, with what was compared and what was not."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_vmreplay.interfaces.replayer import InputAnswer, LaunchEnd, LaunchInput, WrittenPair

#: What no right kernel does; an input on which the baseline does it says nothing about another kernel.
RACES = (
    "lds-race",
    "memory-race",
    "memory-race-between-workgroups",
    "barrier-partial-exec",
    "barrier-different",
)
#: Distance of 1 to the next float, and how many of them results may be apart: on inputs of small integers,
#: and on others. Sums in another order differ; wrong results show on the small integers.
_FLOATS: Mapping[str, tuple[float, float, float]] = {
    "f2": (2.0**-10, 16, 16), "bf": (2.0**-7, 8, 8),
    "f4": (2.0**-23, 256, 4096), "f8": (2.0**-52, 4096, 65536),
}  # fmt: skip
_SMALLEST = {  # and the least denormal
    "f2": (2.0**-14, 2.0**-24), "bf": (2.0**-126, 2.0**-133), "f4": (2.0**-126, 2.0**-149),
    "f8": (2.0**-1022, 2.0**-1074)
}  # fmt: skip
_EXACT = ("exact", "zero", "one", "negative")


class Dropped(str, Enum):
    """Why an input says nothing: because of the baseline itself."""

    FAULT = "faults or leaves its memory"
    LIMIT = "takes too many instructions"
    RACES = "races"
    UNWRITTEN = "reads LDS that nobody wrote"
    ORDER = "gives other results in another order"


@frozen
class Tolerance:
    """The user's own, which counts where it is larger."""

    relative: float = 0.0
    absolute: float = 0.0


@attrs.define
class Tally:
    """``different`` ends the comparison. ``not_numbers``: inputs on which only NaN, infinities and denormals
    are otherwise, ``not_watched`` those whose order of synchronisation or LDS could not be compared."""

    compared: int = 0
    watched: int = 0
    synchronised: int = 0
    without_results: int = 0
    dropped: Counter[Dropped] = attrs.field(factory=Counter)
    not_numbers: int = 0
    not_watched: int = 0
    different: str | None = None
    crashed: bool = False

    @property
    def seen(self) -> int:
        return self.compared + sum(self.dropped.values())


def take(
    tally: Tally,
    one: LaunchInput,
    answer: InputAnswer,
    elements: Mapping[int, str],
    tolerance: Tolerance,
    strict: bool,
) -> None:
    """``strict``: differences in NaN and denormals count too. ``elements`` is by where buffers begin."""
    if (why := _dropped(answer)) is not None:
        tally.dropped[why] += 1
        return
    other = answer.other
    assert other is not None
    tally.compared += 1
    tally.watched += answer.watched
    tally.synchronised += answer.watched and answer.stable and bool(answer.barriers or answer.atomics)
    tally.not_watched += answer.watched and (not answer.stable or answer.lds_unlike)
    tally.without_results += answer.written_bytes == 0
    tally.different, tally.crashed = _behaviour(answer.baseline, other, answer)
    if tally.different is None and answer.differing:
        kind = one.name.rpartition(", ")[2].removesuffix(" contents")
        worst, special = _worst(answer.differing, elements, kind, tolerance)
        if worst is not None:
            tally.different = worst
        elif special is not None and strict and kind != "huge":  # a rounding more or less may overflow
            tally.different = special
        elif special is not None:
            tally.not_numbers += 1
    if tally.different is not None:
        tally.different = f"{tally.different}; input: {one.name}"


def _dropped(answer: InputAnswer) -> Dropped | None:
    if answer.baseline.outcome == "limit":
        return Dropped.LIMIT
    if answer.baseline.outcome != "ended":
        return Dropped.FAULT
    if any(one.kind in RACES for one in answer.baseline.findings):
        return Dropped.RACES
    if any(one.kind == "lds-unwritten" for one in answer.baseline.findings):
        return Dropped.UNWRITTEN
    return None if answer.same_results else Dropped.ORDER


def _behaviour(baseline: LaunchEnd, other: LaunchEnd, answer: InputAnswer) -> tuple[str | None, bool]:
    if other.outcome != "ended":
        return f"the candidate does not end as the baseline does: {other.reason or other.outcome}", True
    usual = {one.kind for one in baseline.findings}
    new = next((one for one in other.findings if one.kind not in usual), None)
    if new is not None:
        return f"it does what the baseline does not: {new.text}", False
    if answer.outside is not None:
        place = f"0x{answer.outside.address:x}"
        return (
            f"it writes {answer.outside.size} bytes that the baseline does not, the first at {place}",
            False,
        )
    if answer.variables:
        return f"it leaves the variable {answer.variables[0]} otherwise", False
    if answer.cooperation is not None:
        return f"its waves work together otherwise: {answer.cooperation}", False
    return None, False


def _worst(
    pairs: Sequence[WrittenPair], elements: Mapping[int, str], content: str, tolerance: Tolerance
) -> tuple[str | None, str | None]:
    """The first difference that counts, and the first in what is no number or nearly zero."""
    special = None
    begins = sorted(elements)
    for begin, many in _by_buffer(pairs, begins).items():
        kind = elements.get(begin, "u1")
        scale = _scale(kind, many)
        for pair in many:
            counts, strange = _difference(pair, kind, scale, content, tolerance)
            if counts is not None:
                return counts, special
            special = special or strange
    return None, special


def _by_buffer(pairs: Sequence[WrittenPair], begins: Sequence[int]) -> dict[int, list[WrittenPair]]:
    from bisect import bisect_right

    found: dict[int, list[WrittenPair]] = {}
    for pair in pairs:
        place = bisect_right(begins, pair.address) - 1
        found.setdefault(begins[place] if place >= 0 else 0, []).append(pair)
    return found


def _scale(kind: str, pairs: Sequence[WrittenPair]) -> float:
    import numpy as np

    if kind not in _FLOATS:
        return 0.0
    largest = 0.0
    for pair in pairs:
        values = _numbers(pair.baseline, kind)
        finite = values[np.isfinite(values)]
        largest = max(largest, float(np.abs(finite).max()) if len(finite) else 0.0)
    return largest


def _numbers(content: bytes, kind: str) -> Any:
    import numpy as np

    if kind == "bf":
        return (np.frombuffer(content, "<u2").astype("<u4") << np.uint32(16)).view("<f4").astype(np.float64)
    return np.frombuffer(content, f"<{kind}").astype(np.float64)


def _difference(
    pair: WrittenPair, kind: str, scale: float, content: str, tolerance: Tolerance
) -> tuple[str | None, str | None]:
    import numpy as np

    size = 2 if kind == "bf" else int(kind[1])
    where = f"at 0x{pair.address:x}"
    if kind not in _FLOATS or len(pair.baseline) % size:
        if pair.baseline == pair.other:
            return None, None
        left, right = (np.frombuffer(one, np.uint8) for one in (pair.baseline, pair.other))
        first = int(np.flatnonzero(left != right)[0])
        found = f"0x{right[first]:02x} instead of 0x{left[first]:02x}"
        return (
            counted(int((left != right).sum()), "byte differs", "bytes differ")
            + f", the first at 0x{pair.address + first:x}: {found}",
            None,
        )
    left, right = (_numbers(one, kind) for one in (pair.baseline, pair.other))
    ulp, few, many = _FLOATS[kind]
    exact = content in _EXACT
    with np.errstate(invalid="ignore", over="ignore"):
        both = np.isnan(left) & np.isnan(right)
        strange = ~np.isfinite(left) | ~np.isfinite(right)
        tiny = np.maximum(np.abs(left), np.abs(right)) < _SMALLEST[kind][0]
        apart = np.where(left == right, 0.0, np.abs(left - right))
        allowed = np.maximum(
            (few if exact else many) * ulp * np.maximum(np.abs(left), max(scale, 0.0 if exact else 4.0)),
            tolerance.relative * np.abs(left) + tolerance.absolute,
        )
        # Sums and products of small integers are the same in every order.
        whole = exact & (kind in ("f4", "f8")) & (left == np.rint(left)) & (np.abs(left) * ulp < 0.25)
        allowed = np.where(whole & (right == np.rint(right)), tolerance.absolute, allowed)
        wrong = (apart > allowed) & ~strange & ~tiny
        odd = (strange & ~both & (left != right)) | (tiny & (apart > few * _SMALLEST[kind][1]))
    result: list[str | None] = [None, None]
    for number, mask in enumerate((wrong, odd)):
        if mask.any():
            first = int(np.flatnonzero(mask)[0])
            what = f"{right[first]:.9g} instead of {left[first]:.9g}"
            where = f"at 0x{pair.address + first * size:x}"
            differ = counted(int(mask.sum()), "number differs", "numbers differ")
            result[number] = f"{differ}, the first {where}: {what}"
    return result[0], result[1]
