"""What of a captured launch can be varied: scalars, and memory behind pointers, by the kernel's arguments."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_vmreplay.capture.files import KERNARG
from rpl_vmreplay.compare.data_types import parameter_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_codeobject.values import Kernel
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
    return next((one.end for one in capture.regions if one.base <= address < one.end), None)


def _pointers(capture: Capture, found: list[tuple[int, int, str | None]]) -> Iterator[Pointer]:
    addresses = sorted({address for _, address, _ in found})
    for place, address, element in found:
        end = _region_end(capture, address)
        if end is None:
            continue
        behind = min((one for one in addresses if address < one < end), default=end)
        yield Pointer(place, address, behind - address, element)
