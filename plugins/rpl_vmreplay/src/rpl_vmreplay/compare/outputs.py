"""What a launch wrote: kinds of numbers and how far two are apart, and the outputs behind its pointers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.layout import KERNARG
from rpl_vmreplay.capture.records import Argument
from rpl_vmreplay.interfaces import MemoryEdit, MemoryRange, Rounding
from rpl_vmreplay.replay.captured_code import captured_code

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import KernelArgument
    from rpl_vmreplay.capture.plain_memory import Ranges

#: Larger than any distance: one of the two is not a number.
NOT_A_NUMBER = (1 << 63) - 1


class DataType(str, Enum):
    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    BYTES = "bytes"  # integers, structures and what nobody knows: equal to the bit

    @property
    def size(self) -> int:
        return _SIZES[self]


_SIZES: Mapping[DataType, int] = {
    DataType.F64: 8, DataType.F32: 4, DataType.F16: 2, DataType.BF16: 2, DataType.BYTES: 1
}  # fmt: skip
_EXPONENT_BITS: Mapping[DataType, tuple[int, int]] = {
    DataType.F64: (52, 11), DataType.F32: (23, 8), DataType.F16: (10, 5), DataType.BF16: (7, 8)
}  # fmt: skip
_NAMES = {
    "double": DataType.F64,
    "float": DataType.F32,
    "__half": DataType.F16,
    "half": DataType.F16,
    "_Float16": DataType.F16,
    "__bf16": DataType.BF16,
    "__hip_bfloat16": DataType.BF16,
    "hip_bfloat16": DataType.BF16,
}
_VECTOR = re.compile(r"HIP_vector_type<([\w ]+), *(\d+)u?>")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict)\b")


@frozen
class Element:
    """What a pointer leads to. ``size`` in bytes; of integers ``signed`` is known, of all else it is
    ``None``."""

    kind: DataType
    size: int
    signed: bool | None = None
    record: int = 0  # bytes of the vector of which it is one, 0: of itself


UNKNOWN = Element(DataType.BYTES, 1)
_INTEGERS = {
    "char": (1, True), "signed char": (1, True), "unsigned char": (1, False),
    "short": (2, True), "unsigned short": (2, False), "int": (4, True), "unsigned int": (4, False),
    "long": (8, True), "unsigned long": (8, False), "long long": (8, True), "unsigned long long": (8, False),
}  # fmt: skip


def element_of(kind: DataType) -> Element:
    return Element(kind, kind.size)


def parameter_types(demangled: str) -> tuple[DataType | None, ...]:
    """For each parameter what it points to; ``None``: it is no pointer. Empty where the name has none."""
    return tuple(None if element is None else element.kind for element in parameter_elements(demangled))


def parameter_elements(demangled: str) -> tuple[Element | None, ...]:
    """The same, with integers told apart."""
    return tuple(_pointed_to(part) for part in parameter_texts(demangled))


def parameter_texts(demangled: str) -> tuple[str, ...]:
    """Each parameter as the demangled name writes it. Empty where the name has none."""
    text = demangled.partition(" [clone")[0].rstrip()
    return tuple(_parameters(text)) if text.endswith(")") else ()


def _parameters(text: str) -> list[str]:
    """Between the last pair of brackets that belong together."""
    depth, parts, current = 0, [], ""
    for character in reversed(text):
        depth += {")": 1, ">": 1, "]": 1, "(": -1, "<": -1, "[": -1}.get(character, 0)
        if depth == 0:
            break
        if character == "," and depth == 1:
            parts.append(current[::-1])
            current = ""
        elif not (character == ")" and depth == 1 and not current and not parts):
            current += character
    parts.append(current[::-1])
    return [part.strip() for part in reversed(parts)]


def _pointed_to(parameter: str) -> Element | None:
    plain = " ".join(_QUALIFIERS.sub("", parameter).split())
    if not plain.endswith(("*", "&")):
        return None
    pointed = plain[:-1].strip()
    vector = _VECTOR.fullmatch(pointed)
    count = int(vector[2]) if vector else 1
    name = vector[1] if vector else pointed.rpartition("::")[2]
    if name in _NAMES:
        kind = _NAMES[name]
        return Element(kind, kind.size, None, kind.size * count)
    size, signed = _INTEGERS.get(name, (UNKNOWN.size, None))
    return Element(DataType.BYTES, size, signed, size * count)


def distances(kind: DataType, left: bytes, right: bytes) -> Any:
    """For each element how far it is from the other one's, as a numpy array of unsigned 64-bit integers."""
    import numpy as np

    if kind is DataType.BYTES:
        pair = (np.frombuffer(one, np.uint8) for one in (left, right))
        return np.where(np.not_equal(*pair), NOT_A_NUMBER, 0).astype(np.uint64)
    first, second = (_ordered(kind, one) for one in (left, right))
    apart = np.where(first > second, first - second, second - first).astype(np.uint64)
    strange = _not_numbers(kind, left) != _not_numbers(kind, right)
    both = _not_numbers(kind, left) & _not_numbers(kind, right)
    return np.where(strange, np.uint64(NOT_A_NUMBER), np.where(both, np.uint64(0), apart))


def _bits(kind: DataType, content: bytes) -> Any:
    import numpy as np

    return np.frombuffer(content, np.dtype(f"<u{kind.size}")).astype(np.uint64)


def _ordered(kind: DataType, content: bytes) -> Any:
    """Unsigned integers in the order of the numbers; the two zeros are one."""
    import numpy as np

    bits, sign = _bits(kind, content), np.uint64(1 << (8 * kind.size - 1))
    return np.where(bits & sign, sign - (bits & ~sign), sign + bits)


def _not_numbers(kind: DataType, content: bytes) -> Any:
    import numpy as np

    fraction, exponent = _EXPONENT_BITS[kind]
    infinity = np.uint64(((1 << exponent) - 1) << fraction)
    magnitude = _bits(kind, content) & np.uint64((1 << (8 * kind.size - 1)) - 1)
    return magnitude > infinity


def values_of(kind: DataType, content: bytes) -> list[str]:
    """The elements for people."""
    if kind is DataType.BYTES:
        return [f"0x{byte:02x}" for byte in content]
    import numpy as np

    if kind is DataType.BF16:
        wide = (_bits(kind, content).astype(np.uint32) << np.uint32(16)).view(np.float32)
        return [f"{float(one):g}" for one in wide]
    numbers = np.frombuffer(content, np.dtype(f"<f{kind.size}"))
    return [repr(float(number)) if kind is DataType.F64 else f"{float(number):.9g}" for number in numbers]


def numbers_of(kind: DataType, content: bytes) -> Any:
    """The elements as doubles, which hold all of them."""
    import numpy as np

    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        if kind is DataType.BF16:
            wide = (_bits(kind, content).astype(np.uint32) << np.uint32(16)).view(np.float32)
            return wide.astype(np.float64)
        return np.frombuffer(content, np.dtype(f"<f{kind.size}")).astype(np.float64)


def bytes_of(kind: DataType, numbers: Any) -> bytes:
    """Doubles as elements of ``kind``, to the nearest (bfloat: cut off)."""
    import numpy as np

    if kind is DataType.BF16:
        wide = np.asarray(numbers, np.float32).view(np.uint32)
        content: bytes = (wide >> np.uint32(16)).astype("<u2").tobytes()
    else:
        content = np.asarray(numbers).astype(np.dtype(f"<f{kind.size}")).tobytes()
    return content


def last_places(kind: DataType, numbers: Any) -> Any:
    """What a unit in the last place of each is worth, as doubles."""
    import numpy as np

    fraction, exponent = _EXPONENT_BITS[kind]
    least = 2 - (1 << (exponent - 1))
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    _, power = np.frexp(finite)
    return np.ldexp(1.0, np.maximum(np.where(finite == 0, least, power - 1), least) - fraction)


# How far rounding alone can move a result: runs of both kernels that round otherwise than to the nearest.
#
# The same operations on the same numbers, once with every inexact result rounded up, once down, twice in
# drawn directions. What of an output moves then, and by how much, follows from the magnitudes of all terms
# on its way, of cancelled ones too; results of exact operations do not move at all (D. Stott Parker, "Monte
# Carlo Arithmetic", 1997; J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993).

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
    kind: DataType, usual: bytes, ours: Any, theirs: Any, terms: Any, *, rounded: bool, halves: bool = False
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


# Which of its memory a launch wrote, by the pointer that leads there.

_POINTER_BYTES = 8


@frozen
class Output:
    """Written bytes behind one pointer. ``argument`` is its name, ``None`` where no argument leads there."""

    argument: str | None
    base: int
    kind: DataType
    ranges: tuple[MemoryRange, ...]
    element: Element = UNKNOWN  # integers too, where whole ones were written

    @property
    def size(self) -> int:
        return sum(one.size for one in self.ranges)

    def address_of(self, element: int) -> int:
        offset = element * self.kind.size
        for one in self.ranges:
            if offset < one.size:
                return one.address + offset
            offset -= one.size
        raise IndexError(element)


@frozen
class _Pointer:
    name: str
    address: int
    element: Element


def outputs_of(capture: Capture, written: Ranges, unknown: DataType) -> tuple[Output, ...]:
    """``unknown`` is the type of what the kernel's name and metadata tell nothing about."""
    pointers = sorted(_pointers(capture, unknown), key=lambda one: one.address)
    found: dict[tuple[int, int], list[MemoryRange]] = {}
    owners: dict[tuple[int, int], _Pointer | None] = {}
    for one in written:
        region = next((r for r in capture.regions if r.base <= one.address < r.end), None)
        base = region.base if region else one.address
        owner = next((p for p in reversed(pointers) if base <= p.address <= one.address), None)
        key = (base, owner.address if owner else base)
        owners[key] = owner
        found.setdefault(key, []).append(one)
    return tuple(_output(key[1], owners[key], ranges, unknown) for key, ranges in found.items())


def variable_output(name: str, content: bytes, unknown: DataType) -> Output:
    """A variable of the module: places are counted from its own begin, since each code has it elsewhere."""
    kind = unknown if len(content) % unknown.size == 0 else DataType.BYTES
    return Output(f"variable {name}", 0, kind, (MemoryRange(0, len(content)),))


def is_record(output: Output) -> bool:
    """Its elements are known, so that they can change their places."""
    return output.kind is not DataType.BYTES or output.element.signed is not None


def as_set(outputs: Sequence[tuple[Output, bytes]]) -> bytes:
    """Records in an order of their own: of outputs with as many elements together, so that what belongs
    together stays together."""
    import numpy as np

    found = []
    rows: dict[int, list[Any]] = {}
    for output, content in outputs:
        size = max(output.element.record, output.element.size)
        size = size if len(content) % size == 0 else output.element.size
        table = np.frombuffer(content, np.uint8).reshape(-1, size)
        rows.setdefault(len(table), []).append(table)
    for count in sorted(rows):
        table = np.ascontiguousarray(np.hstack(rows[count]))
        found.append(np.sort(table.view(f"S{table.shape[1]}").ravel()).tobytes())
    return b"".join(found)


def name_of(output: Output) -> str:
    return f"values behind {output.argument}" if output.argument else f"bytes at 0x{output.base:x}"


def _output(base: int, owner: _Pointer | None, ranges: list[MemoryRange], unknown: DataType) -> Output:
    element = owner.element if owner else element_of(unknown)
    size = element.size
    if not all((one.address - base) % size == 0 and one.size % size == 0 for one in ranges):
        element = UNKNOWN
    return Output(owner.name if owner else None, base, element.kind, tuple(ranges), element)


def _pointers(capture: Capture, unknown: DataType) -> Iterator[_Pointer]:
    """Arguments that are addresses of captured memory."""
    extras = capture.extras
    arguments: Sequence[Argument | KernelArgument] = (extras and extras.kernel.arguments) or ()
    if not arguments:  # other tools leave it to the code object to tell them
        arguments = captured_code(capture).kernel.arguments
    kernarg = (capture.folder / KERNARG).read_bytes()
    types = parameter_elements(capture.dispatch.demangled_name)
    explicit = [one for one in arguments if not one.value_kind.startswith("hidden_")]
    for index, argument in enumerate(explicit):
        if argument.size != _POINTER_BYTES or argument.offset + _POINTER_BYTES > len(kernarg):
            continue
        address = int.from_bytes(kernarg[argument.offset : argument.offset + _POINTER_BYTES], "little")
        if not any(region.base <= address < region.end for region in capture.regions):
            continue
        told = types[index] if len(types) == len(explicit) else None
        yield _Pointer(argument.name or f"argument {index}", address, told or element_of(unknown))
