"""The table of modelled operations: mnemonic, operands, function of one lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from .number_formats import BF16, F16, F32, F64, Format

#: Bits of an operand, by its letter. A scalar pair that holds a bit for each lane is ``b``.
WIDTHS = {
    **dict.fromkeys("usfmqk", 32),
    **dict.fromkeys("USFIPb", 64),
    "s": 32,
    **dict.fromkeys("hHwWz", 16),
}
#: Letters of floats; ``q`` and ``P`` hold two.
FLOATS: dict[str, Format] = {"f": F32, "F": F64, "h": F16, "H": F16, "q": F16, "P": F32, "z": BF16}


@attrs.frozen
class Operation:
    """``results`` and ``sources`` are letters of operands:

    u U  32 and 64 bits          f F h  floats            w  16-bit integer
    s S  scalar registers        b      a bit per lane    q k P  two halves, two 16-bit integers, two floats
    H W  as h and w, but the other half of the register stays

    ``function`` takes the bits of the sources, before them a ``Lane`` or ``Wave`` where ``wants`` says so.
    """

    name: str
    group: str
    results: str
    sources: str
    function: Callable[..., Any]
    wants: str = ""
    #: Which edges are drawn for a source, where its letter does not tell.
    draw: tuple[str, ...] = ()
    #: Denormals of sources stay although the mode says otherwise.
    keeps_denormals: bool = False
    #: The result is a move of bits: no flush.
    tags: frozenset[str] = frozenset()


OPERATIONS: dict[str, Operation] = {}


def define(group: str, signature: str, functions: dict[str, Callable[..., Any]], **more: Any) -> None:
    results, sources = signature.split(":")
    tags = frozenset(more.pop("tags", ()))
    for name, function in functions.items():
        assert name not in OPERATIONS, name
        OPERATIONS[name] = Operation(name, group, results, sources, function, tags=tags, **more)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def saturated(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))
