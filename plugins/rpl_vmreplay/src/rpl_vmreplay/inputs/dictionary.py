"""Numbers that occur in two kernels' machine code: a condition that sets them apart compares with one."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_codeobject.disassembly import Instruction

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
    return list(dict.fromkeys(near for one in numbers for near in (one + 1, one, one - 1)))
