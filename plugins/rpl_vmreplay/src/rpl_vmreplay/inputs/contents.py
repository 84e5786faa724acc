"""What memory behind a pointer may hold: by the type of its elements, near what was captured there."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_vmreplay.inputs.arguments import Pointer

#: ``exact``: small integers, of which floats hold sums and products to the bit, in every order. ``special``:
#: NaN, infinities, denormals and zeros of both signs among others. ``ties``: halves and the like, which
#: roundings take to different sides, and integers that are often equal. ``lowest``: nothing but very negative
#: numbers. ``ramp`` and ``falling``: the greatest comes last or first. ``near``: beside the scalars' own
#: values. ``text``: letters of both cases, where elements are bytes.
KINDS = (
    "captured",
    "exact",
    "real",
    "dictionary",
    "zero",
    "one",
    "negative",
    "special",
    "huge",
    "tiny",
    "any",
    "ties",
    "lowest",
    "ramp",
    "near",
    "text",
    "falling",
)
#: Elements of a pattern that is repeated: a prime, so that no stride of a kernel falls in step with it.
PATTERN = 4093
#: Of captured bytes, for what is like them.
MOST_CAPTURED_BYTES = 16 << 20
#: Letters, and what lies beside the alphabets.
_OFTEN, _SELDOM = np.frombuffer(b"AaBb", np.uint8), np.frombuffer(b"ZzYy@[`{ 09", np.uint8)
_LARGEST = {"f2": 6.0e4, "f4": 3.0e38, "f8": 1.0e308, "bf": 3.0e38}


@frozen
class Content:
    """``holds_addresses`` lead into captured memory, so nothing else may be there."""

    element: str
    captured: bytes
    holds_addresses: bool
    ascending: bool

    @property
    def size(self) -> int:
        return 2 if self.element == "bf" else int(self.element[1])


def content_of(pointer: Pointer, captured: bytes, regions: Sequence[tuple[int, int]]) -> Content:
    words = np.frombuffer(captured[: min(len(captured), 4096) // 8 * 8], np.uint64)
    leads = any(begin <= int(word) < end for word in words if word for begin, end in regions)
    element = pointer.element or _likely(captured)
    ascending = False
    if element[0] in "iu" and element != "u1":
        numbers = np.frombuffer(captured[: len(captured) // int(element[1]) * int(element[1])], f"<{element}")
        used = numbers[: int(np.max(np.flatnonzero(numbers), initial=-1)) + 1]
        steps = used[1:] >= used[:-1]
        ascending = len(used) > 2 and bool(steps.all()) and used[0] != used[-1]
    return Content(element, captured, leads, ascending)


def _likely(captured: bytes) -> str:
    """Floats where most words that are not zero are of a size that people compute with."""
    words = np.frombuffer(captured[: min(len(captured), 1 << 16) // 4 * 4], np.uint32)
    words = words[words != 0]
    if not len(words):
        return "f4"
    exponents = (words >> 23) & 0xFF
    return "f4" if float(np.mean((exponents > 87) & (exponents < 168))) > 0.9 else "i4"


def pattern_of(
    content: Content,
    kind: str,
    numbers: tuple[Sequence[int], Sequence[float]],
    salt: int,
    elements: int,
    scalars: Sequence[float] = (),
) -> bytes:
    """The bytes to be repeated. The same for the same arguments. ``scalars`` are those of the launch."""
    if kind == "captured" or content.holds_addresses:
        return content.captured
    draw = np.random.default_rng(zlib.crc32(f"{kind} {salt} {content.element}".encode()))
    count = max(1, min(PATTERN, elements))
    if content.element[0] in "iu":
        count = max(1, elements) if content.ascending else count
        return _integers(content, kind, numbers[0], draw, count, scalars)
    if content.element == "b1":
        return (
            bytes(draw.integers(0, 2, count, np.uint8))
            if kind not in ("zero", "one")
            else bytes([kind == "one"])
        )
    return _floats(content.element, kind, numbers[1], draw, count, scalars)


def _integers(
    content: Content, kind: str, numbers: Sequence[int], draw: Any, count: int, scalars: Sequence[float] = ()
) -> bytes:
    letter = np.dtype(f"<{content.element}")
    least, most = np.iinfo(letter).min, np.iinfo(letter).max
    wide = np.dtype(np.int64 if least else np.uint64)
    captured = np.frombuffer(
        content.captured[: len(content.captured) // letter.itemsize * letter.itemsize], letter
    )
    low, high = (int(captured.min()), int(captured.max())) if len(captured) else (0, 3)
    high = min(most, max(high, low + (3 if low == high == 0 else 0)))
    if content.ascending:
        low = int(captured[0])
        return bytes(
            np.sort(draw.integers(low, high, min(count, 1 << 20), wide, endpoint=True)).astype(letter)
        )
    if kind == "zero":
        values = np.zeros(1, letter)
    elif kind == "one":
        values = np.ones(1, letter)
    elif kind == "any":
        values = draw.integers(least, most, count, letter, endpoint=True)
    elif kind == "negative" and least < 0:
        values = -draw.integers(1, 9, count, np.int64)
    elif (
        arranged := _arranged_integers(kind, letter, (int(low), int(high)), draw, count, scalars)
    ) is not None:
        values = arranged
    elif kind in ("huge", "tiny"):
        values = draw.integers(0, 2, count, wide) * wide.type(most if kind == "huge" else 1)
    elif kind in ("dictionary", "special"):
        usable = [one for one in numbers if least <= one <= most] or [0, 1]
        values = draw.choice(
            np.array([*usable, least, most] if kind == "special" else usable, wide),
            count,
        )
    else:
        values = draw.integers(low, high, count, wide, endpoint=True)
    return bytes(values.astype(letter))


def _arranged_integers(
    kind: str, letter: Any, usual: tuple[int, int], draw: Any, count: int, scalars: Sequence[float]
) -> Any:
    """``usual`` are the least and the greatest captured; ``None``: another kind."""
    least, most = int(np.iinfo(letter).min), int(np.iinfo(letter).max)
    wide = np.dtype(np.int64 if least else np.uint64)
    low, high = usual
    if kind == "lowest":
        return draw.integers(least, least + min(100, most), count, letter)
    if kind in ("ramp", "falling"):
        rising = low + (np.arange(count) % min(high - low + 1, 1 << 31)).astype(wide)
        return rising if kind == "ramp" else rising[::-1]
    if kind == "ties":
        return draw.choice(draw.integers(low, high, 3, wide, endpoint=True), count)
    if kind == "text" and letter.itemsize == 1:
        return np.where(draw.random(count) < 0.8, draw.choice(_OFTEN, count), draw.choice(_SELDOM, count))
    if kind == "near":
        edges = [int(one) + more for one in scalars if abs(one) < 2.0**40 for more in (0, -1, 1)]
        edges = [one for one in (*edges, 0, -1, least, most) if least <= one <= most]
        between = draw.integers(low, high, count, wide, endpoint=True)
        return np.where(draw.random(count) < 0.5, between, draw.choice(np.array(edges, wide), count))
    return None


def _floats(
    element: str, kind: str, numbers: Sequence[float], draw: Any, count: int, scalars: Sequence[float]
) -> bytes:
    if kind == "zero":
        return _encoded(np.zeros(1), element)
    if kind == "one":
        return _encoded(np.ones(1), element)
    least = 2 if element in ("f2", "bf") else 8
    values = draw.integers(-least, least, count, endpoint=True).astype(np.float64)
    some = draw.random(count) < 0.5
    if kind == "negative":
        values = -np.abs(values) - 1
    elif kind in ("real", "any"):
        values = draw.normal(size=count)
    elif kind == "huge":
        values = np.where(some, values, draw.choice([-1.0, 1.0], count) * _LARGEST[element])
    elif kind == "tiny":
        values = values * {"f2": 2.0**-24, "f8": 2.0**-1070}.get(element, 2.0**-140)
    elif kind == "dictionary" and len(numbers):
        near = np.array([one * scale for one in numbers[:64] for scale in (1.0, 1.001, 0.999, -1.0)])
        values = np.where(some, values, draw.choice(near, count))
    elif (arranged := _arranged_floats(element, kind, draw, count, scalars)) is not None:
        values = arranged
    elif kind == "special":
        strange = [np.nan, np.inf, -np.inf, 0.0, -0.0, _LARGEST[element], 2.0**-149, -(2.0**-130)]
        values = np.where(
            draw.random(count) < 0.2, 0.0, values
        )  # which nothing but numbers can be skipped for
        values = np.where(draw.random(count) < 0.1, draw.choice(strange, count), values)
    return _encoded(values, element)


def _arranged_floats(element: str, kind: str, draw: Any, count: int, scalars: Sequence[float]) -> Any:
    if kind == "lowest":
        return -draw.integers(1, 9, count) * (_LARGEST[element] / 2048)  # hundreds of them have a sum
    if kind in ("ramp", "falling"):
        rising = np.arange(count) * 8.0
        return rising if kind == "ramp" else rising[::-1]
    if kind == "ties":
        return draw.integers(-64, 64, count, endpoint=True) / 2.0 ** draw.integers(0, 7, count)
    if kind == "near":
        known = draw.choice(np.array([one for one in scalars if one and abs(one) < 1e6] or [1.0]), count)
        halves = draw.integers(-8, 8, count) + 0.5
        scaled = np.where(draw.random(count) < 0.5, halves / known, halves * known)
        return np.where(draw.random(count) < 0.5, known, scaled)
    return None


def _encoded(values: Any, element: str) -> bytes:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if element == "bf":
            return bytes((np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2"))
        return bytes(np.asarray(values).astype(f"<{element}"))
