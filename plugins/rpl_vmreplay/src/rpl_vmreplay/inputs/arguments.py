"""What of a captured launch can be varied, by its arguments, and what memory behind them may hold."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.values import frozen
from rpl_vmreplay.capture.layout import KERNARG
from rpl_vmreplay.compare.outputs import parameter_texts

if TYPE_CHECKING:
    from rpl_codeobject.disassembly import Instruction
    from rpl_codeobject.kernel_code import Kernel
    from rpl_vmreplay.capture.folder import Capture

_POINTER_BYTES = 8
#: numpy's letter and size, by the name of the type as demangled names write it.
ELEMENTS = {
    "float": "f4", "double": "f8", "_Float16": "f2", "__half": "f2", "half": "f2",
    "__bf16": "bf", "__hip_bfloat16": "bf", "hip_bfloat16": "bf",
    "int": "i4", "unsigned int": "u4", "unsigned": "u4", "long": "i8", "unsigned long": "u8",
    "long long": "i8", "unsigned long long": "u8", "short": "i2", "unsigned short": "u2",
    "char": "i1", "signed char": "i1", "unsigned char": "u1", "bool": "b1", "std::byte": "u1",
}  # fmt: skip
_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict)\b")
_VECTOR = re.compile(r"HIP_vector_type<(?P<one>[\w ]+), *(?P<count>\d+)u?>")
#: An unnamed word that is no larger than this, as a number, is taken for an integer.
_LARGEST_INTEGER = 1 << 27


@frozen
class Scalar:
    """``kind`` is numpy's letter and size. ``place`` is the offset among the arguments."""

    place: int
    kind: str
    value: float

    @property
    def size(self) -> int:
        return int(self.kind[1])

    @property
    def integer(self) -> bool:
        return self.kind[0] in "iub"

    def packed(self, value: float) -> bytes:
        """Wrapped to the size of an integer."""
        if self.integer:
            return (int(value) % (1 << (8 * self.size))).to_bytes(self.size, "little")
        letter = {"f2": "<e", "f4": "<f", "f8": "<d"}[self.kind]
        try:
            return struct.pack(letter, value)
        except OverflowError:
            return struct.pack(letter, float("inf") if value > 0 else float("-inf"))


@frozen
class Pointer:
    """``capacity`` is what is captured from ``address`` on, up to where another argument leads.

    ``element`` is what it points to, ``None`` where the name does not tell.
    """

    place: int
    address: int
    capacity: int
    element: str | None


@frozen
class Varied:
    """The arguments of a launch that is to be varied. ``kernarg`` are those of the kernel's own."""

    kernarg: bytes
    scalars: tuple[Scalar, ...]
    pointers: tuple[Pointer, ...]

    def with_values(self, changes: dict[int, bytes]) -> bytes:
        content = bytearray(self.kernarg)
        for place, data in changes.items():
            content[place : place + len(data)] = data
        return bytes(content)


def varied_arguments(capture: Capture, kernel: Kernel) -> Varied:
    """By the metadata of the code; structures by value are looked at word by word."""
    kernarg = (capture.folder / KERNARG).read_bytes()
    explicit = [one for one in kernel.arguments if not one.hidden]
    texts = parameter_texts(capture.dispatch.demangled_name)
    named = texts if len(texts) == len(explicit) else (None,) * len(explicit)
    own = max((one.offset + one.size for one in explicit), default=0)
    scalars: list[Scalar] = []
    pointers: list[tuple[int, int, str | None]] = []
    for argument, text in zip(explicit, named, strict=True):
        content = kernarg[argument.offset : argument.offset + argument.size]
        if len(content) < argument.size:
            continue
        plain = None if text is None else " ".join(_QUALIFIERS.sub("", text).split())
        if argument.value_kind == "global_buffer" or (plain or "").endswith(("*", "&")):
            pointed = None if plain is None else element_of(plain.rstrip("*& "))
            pointers.append((argument.offset, int.from_bytes(content, "little"), pointed))
        elif plain is not None and plain in ELEMENTS and ELEMENTS[plain] != "bf":
            scalars.append(_scalar(argument.offset, ELEMENTS[plain], content))
        else:
            for one in _words(capture, argument.offset, content):
                if isinstance(one, Scalar):
                    scalars.append(one)
                else:
                    pointers.append((*one, None))
    return Varied(kernarg[:own], tuple(scalars), tuple(_pointers(capture, pointers)))


def element_of(name: str) -> str | None:
    vector = _VECTOR.fullmatch(name)
    return ELEMENTS.get(vector["one"] if vector else name)


def _scalar(place: int, kind: str, content: bytes) -> Scalar:
    if kind[0] == "f":
        return Scalar(place, kind, struct.unpack({"f2": "<e", "f4": "<f", "f8": "<d"}[kind], content)[0])
    return Scalar(place, kind, int.from_bytes(content, "little", signed=kind[0] == "i"))


def _words(capture: Capture, offset: int, content: bytes) -> Iterator[Scalar | tuple[int, int]]:
    """Of a type that nobody knows: pointers are words that lead into captured memory."""
    at = 0
    while at < len(content):
        rest = len(content) - at
        word = int.from_bytes(content[at : at + 8], "little")
        if rest >= _POINTER_BYTES and (offset + at) % 8 == 0 and _region_end(capture, word) is not None:
            yield offset + at, word
            at += 8
            continue
        size = 4 if rest >= 4 else 2 if rest >= 2 else 1
        number = int.from_bytes(content[at : at + size], "little", signed=True)
        is_float = size == 4 and abs(number) > _LARGEST_INTEGER
        yield _scalar(offset + at, "f4" if is_float else f"i{size}", content[at : at + size])
        at += size


def _region_end(capture: Capture, address: int) -> int | None:
    return next((region.end for region in capture.regions if region.base <= address < region.end), None)


def _pointers(capture: Capture, found: list[tuple[int, int, str | None]]) -> Iterator[Pointer]:
    addresses = sorted({address for _, address, _ in found})
    for place, address, element in found:
        end = _region_end(capture, address)
        if end is None:
            continue
        behind = min((one for one in addresses if address < one < end), default=end)
        yield Pointer(place, address, behind - address, element)


# What memory behind a pointer may hold: by the type of its elements, near what was captured there.

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
        usable = [number for number in numbers if least <= number <= most] or [0, 1]
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
        edges = [int(scalar) + more for scalar in scalars if abs(scalar) < 2.0**40 for more in (0, -1, 1)]
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
        known = draw.choice(
            np.array([scalar for scalar in scalars if scalar and abs(scalar) < 1e6] or [1.0]), count
        )
        halves = draw.integers(-8, 8, count) + 0.5
        scaled = np.where(draw.random(count) < 0.5, halves / known, halves * known)
        return np.where(draw.random(count) < 0.5, known, scaled)
    return None


def _encoded(values: Any, element: str) -> bytes:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if element == "bf":
            return bytes((np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2"))
        return bytes(np.asarray(values).astype(f"<{element}"))


# Numbers that occur in two kernels' machine code: a condition that sets them apart compares with one.


_LITERAL = re.compile(
    r"(?<![\w.:])(?P<sign>-?)(?:(?P<hex>0x[0-9a-f]+)|(?P<float>\d+\.\d+)|(?P<int>\d+))(?![\w.:\]])"
)
#: What their numbers are is no value that data could have.
_NO_VALUES = ("s_waitcnt", "s_branch", "s_cbranch", "s_nop", "s_load", "s_buffer", "global_", "flat_",
              "buffer_", "scratch_", "ds_", "s_setprio", "s_sleep", "s_getreg", "s_setreg", "s_endpgm",
              "v_mfma", "s_add_u32", "s_addc_u32")  # fmt: skip
#: Their operand is the number of a bit.
_BITS = ("s_bitcmp", "s_bfe", "v_bfe", "s_lshr", "s_ashr", "v_lshr", "v_ashr", "s_bitset", "s_lshl", "v_lshl")
#: Conditions on a shifted or scaled number: by bytes of an element, by lanes of a wave.
_SHIFTS = (1, 2, 3, 4, 6, 8)


@frozen
class Constants:
    """``fresh`` occur in one of the two kernels only; what something is compared with comes first. ``scaled``
    are fresh ones by which a shifted or multiplied number may be meant."""

    fresh: tuple[int, ...]
    shared: tuple[int, ...]
    scaled: tuple[int, ...]
    floats: tuple[float, ...]

    @property
    def largest(self) -> int:
        return max((abs(one) for one in (*self.fresh, *self.shared)), default=0)


def constants_of(a: Iterable[Instruction], b: Iterable[Instruction]) -> Constants:
    sides = [_weighed(one) for one in (a, b)]
    both = {**sides[0], **{key: max(weight, sides[0].get(key, 0)) for key, weight in sides[1].items()}}
    order = sorted(both, key=lambda one: (-both[one], abs(one), one))
    fresh = [one for one in order if (one in sides[0]) != (one in sides[1])]
    shared = [one for one in order if one not in set(fresh)]
    scaled = [
        number
        for one in fresh
        if abs(one) > 8
        for shift in _SHIFTS
        for number in (one >> shift, one << shift)
        if 1 < abs(number) < 1 << 40
    ]
    floats = [number for one in order if (number := _as_float(one)) is not None]
    return Constants(tuple(fresh), tuple(shared), tuple(dict.fromkeys(scaled)), tuple(dict.fromkeys(floats)))


def _weighed(code: Iterable[Instruction]) -> dict[int, int]:
    """Each number as signed 32 bits, with 2 where something is compared with it; floats by their bits."""
    found: dict[int, int] = {}
    for instruction in code:
        mnemonic = instruction.mnemonic
        if mnemonic.startswith(_NO_VALUES):
            continue
        weight = 2 if "cmp" in mnemonic else 1
        for match in _LITERAL.finditer(instruction.operands):
            number = _number(match)
            for one in (
                (number, 1 << number) if mnemonic.startswith(_BITS) and 0 <= number < 31 else (number,)
            ):
                found[one] = max(found.get(one, 0), weight)
    return found


def _number(match: re.Match[str]) -> int:
    if match["float"]:
        (number,) = struct.unpack("<i", struct.pack("<f", float(match["sign"] + match["float"])))
        return int(number)
    number = int(match["hex"] or match["int"], 0)
    number = -number if match["sign"] else number
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _as_float(bits: int) -> float | None:
    """Where the bits are those of a number that people write."""
    (value,) = struct.unpack("<f", struct.pack("<i", bits))
    return float(value) if 1e-10 < abs(value) < 1e15 else None


def around(numbers: Sequence[int]) -> list[int]:
    """Each with its neighbours, in order and once."""
    return list(dict.fromkeys(near for number in numbers for near in (number + 1, number, number - 1)))
