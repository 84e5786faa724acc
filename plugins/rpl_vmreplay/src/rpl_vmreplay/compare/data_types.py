"""What kinds of numbers a kernel writes, and how far two of them are apart.

The distance of two floats is the count of representable numbers between them (units in the last place): that
of their bits, once negative ones are ordered as numbers are (IEEE 754-2019, 3.4: sign, exponent, fraction).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_VECTOR = re.compile(r"HIP_vector_type<(\w+), *\d+u?>")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict__|__restrict)\b")


def parameter_types(demangled: str) -> tuple[DataType | None, ...]:
    """For each parameter what it points to; ``None``: it is no pointer. Empty where the name has none."""
    text = demangled.partition(" [clone")[0].rstrip()
    if not text.endswith(")"):
        return ()
    return tuple(_pointed_to(part) for part in _parameters(text))


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


def _pointed_to(parameter: str) -> DataType | None:
    plain = " ".join(_QUALIFIERS.sub("", parameter).split())
    if not plain.endswith(("*", "&")):
        return None
    pointed = plain[:-1].strip()
    vector = _VECTOR.fullmatch(pointed)
    return _NAMES.get(vector[1] if vector else pointed.rpartition("::")[2], DataType.BYTES)


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
    return [repr(float(one)) if kind is DataType.F64 else f"{float(one):.9g}" for one in numbers]
