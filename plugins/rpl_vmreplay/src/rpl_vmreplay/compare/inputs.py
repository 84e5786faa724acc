"""Other numbers in the place of the captured ones, on which both kernels run as well.

What the captured numbers hide shows here: with small integers every order of exact sums gives the same
bits; among
numbers of one size no term is too small to be missed; negative, large, equal and permuted ones meet
comparisons,
neutral elements and limits that the captured ones never reach.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen
from rpl_vmreplay.capture.plain_memory import PlainMemory
from rpl_vmreplay.capture.ranges import without
from rpl_vmreplay.compare.data_types import DataType, bytes_of, numbers_of
from rpl_vmreplay.compare.outputs import outputs_of
from rpl_vmreplay.interfaces.replayer import MemoryEdit, MemoryRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.capture.ranges import Ranges
    from rpl_vmreplay.compare.outputs import Output

#: Sums of a few hundred products of two of them are exact in what such numbers are summed in (f32, f64 of
#: f64).
_LARGEST_EXACT = {DataType.F64: 1 << 20, DataType.F32: 255, DataType.F16: 63, DataType.BF16: 63}


@frozen
class OtherInput:
    """``edits`` replace captured bytes. ``integers``: it changes integers, which may be places or sizes."""

    name: str
    edits: tuple[MemoryEdit, ...]
    integers: bool = False


#: Where floating-point numbers are read, of what kind, and what was captured there.
FloatInput = tuple[MemoryRange, DataType, bytes]


@frozen
class DrawnInputs:
    floats: tuple[FloatInput, ...] = ()
    others: tuple[OtherInput, ...] = ()


def drawn_inputs(capture: Capture, read: Ranges, unknown: DataType) -> DrawnInputs:
    """Of what the launch reads behind its pointers, where their types are known (or ``unknown`` says them).

    The same for the same capture. Integers that never fall stay as they are: they look like offsets.
    """
    extras = capture.extras
    arguments: Ranges = ()
    if extras is not None and extras.dispatch.kernarg_address is not None:
        arguments = (MemoryRange(extras.dispatch.kernarg_address, capture.dispatch.kernarg_size),)
    with tempfile.TemporaryDirectory(prefix="rpl-inputs-") as folder:
        return _drawn(capture, PlainMemory(capture, Path(folder)), without(read, arguments), unknown)


def _drawn(capture: Capture, memory: PlainMemory, read: Ranges, unknown: DataType) -> DrawnInputs:
    fields = [one for one in outputs_of(capture, read, unknown) if one.argument is not None]
    floats = [one for one in fields if one.kind is not DataType.BYTES]
    integers = [
        one for one in fields if one.element.signed is not None and not _rising(one, _captured(memory, one))
    ]
    found = [_made(name, floats, memory, draw) for name, draw in _OF_FLOATS.items() if floats]
    found += [_made(name, integers, memory, draw, True) for name, draw in _OF_INTEGERS.items() if integers]
    told = (
        (place, one.kind, memory.read(place.address, place.size)) for one in floats for place in one.ranges
    )
    return DrawnInputs(tuple(told), tuple(found))


def _made(
    name: str, fields: list[Output], memory: PlainMemory, draw: Callable[..., Any], of_integers: bool = False
) -> OtherInput:
    import numpy as np

    edits: list[MemoryEdit] = []
    for number, one in enumerate(fields):
        source = np.random.default_rng([number, zlib.crc32(name.encode())])
        content = draw(source, one, _captured(memory, one))
        edits += _edits(one.ranges, content)
    return OtherInput(name, tuple(edits), of_integers)


def _edits(ranges: Ranges, content: bytes) -> Iterator[MemoryEdit]:
    at = 0
    for one in ranges:
        yield MemoryEdit(one.address, content[at : at + one.size])
        at += one.size


def _captured(memory: PlainMemory, field: Output) -> bytes:
    return b"".join(memory.read(one.address, one.size) for one in field.ranges)


def _integers(field: Output, content: bytes) -> Any:
    import numpy as np

    return np.frombuffer(content, np.dtype(f"<{'i' if field.element.signed else 'u'}{field.element.size}"))


def _rising(field: Output, content: bytes) -> bool:
    numbers = _integers(field, content)
    return len(numbers) > 2 and bool((numbers[1:] >= numbers[:-1]).all()) and numbers[0] != numbers[-1]


def _floats(draw: Callable[[Any, int, DataType], Any]) -> Callable[..., bytes]:
    return lambda source, field, captured: bytes_of(
        field.kind, draw(source, len(captured) // field.kind.size, field.kind)
    )


def _signs(source: Any, count: int) -> Any:
    return source.integers(0, 2, count) * 2.0 - 1.0


_OF_FLOATS: dict[str, Callable[..., bytes]] = {
    "small integers": _floats(lambda r, n, _: r.integers(1, 4, n) * _signs(r, n)),
    "integers": _floats(lambda r, n, kind: r.integers(1, _LARGEST_EXACT[kind] + 1, n) * _signs(r, n)),
    "positive integers": _floats(lambda r, n, kind: r.integers(1, _LARGEST_EXACT[kind] + 1, n)),
    "around 0": _floats(lambda r, n, _: r.uniform(-1, 1, n)),
    "around 1": _floats(lambda r, n, _: r.uniform(0.5, 1.5, n)),
    "around -1": _floats(lambda r, n, _: -r.uniform(0.5, 1.5, n)),
    "two values": _floats(lambda r, n, _: r.choice([2443 / 8192, -5735 / 8192], n)),
    "large": _floats(lambda r, n, _: r.uniform(-100, 100, n)),
    "large and negative": _floats(lambda r, n, _: -r.uniform(120, 160, n)),
    "captured, permuted": lambda r, field, captured: bytes_of(
        field.kind, r.permutation(numbers_of(field.kind, captured))
    ),
}  # fmt: skip


def _wide(source: Any, field: Output, captured: bytes) -> bytes:
    import numpy as np

    words: bytes = source.bytes(len(captured))
    content = np.frombuffer(words, np.uint8).copy()
    info = np.iinfo(_integers(field, captured).dtype)
    numbers = content.view(_integers(field, captured).dtype)
    numbers[:: max(1, len(numbers) // 3)] = info.max
    numbers[1 :: max(2, len(numbers) // 3)] = info.min
    changed: bytes = numbers.tobytes()
    return changed


#: Without 0, by the bytes that they have.
_LARGE = {1: (20, 100), 2: (2000, 20_000), 4: (100_000, 2_000_000), 8: (100_000, 2_000_000)}


def _as_integers(draw: Callable[[Any, Any], Any]) -> Callable[..., bytes]:
    def drawn(source: Any, field: Output, captured: bytes) -> bytes:
        numbers = _integers(field, captured)
        return bytes(draw(source, numbers).astype(numbers.dtype).tobytes())

    return drawn


_OF_INTEGERS: dict[str, Callable[..., bytes]] = {
    "captured integers, permuted": _as_integers(lambda r, x: r.permutation(x)),
    "integers 0 to 3": _as_integers(lambda r, x: r.integers(0, 4, len(x))),
    "integers -3 to 3": _as_integers(lambda r, x: r.integers(-3, 4, len(x))),
    "positive integers of their own": _as_integers(
        lambda r, x: r.integers(*_LARGE[x.dtype.itemsize], len(x))
    ),
    "negative integers": _as_integers(lambda r, x: -r.integers(1, 1000, len(x))),
    "equal integers": _as_integers(lambda _, x: x[:1].repeat(len(x))),
    "wide integers": _wide,
}
