"""The static instruction mix of a code object: per function and per loop, by class and by opcode."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen
from rpl_emu.native_program import call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What the assembler puts behind a function to fill its last lines.
_PADDING = "s_nop"


@frozen
class Loop:
    """What a backward branch spans: addresses of the first and the last instruction."""

    head: int
    end: int
    classes: dict[str, int]


@frozen
class FunctionMix:
    name: str
    kernel: bool
    instructions: int
    classes: dict[str, int]
    opcodes: dict[str, int]
    loops: tuple[Loop, ...]
    refused: tuple[str, ...]


def instruction_mix(code_object: Path) -> tuple[FunctionMix, ...]:
    """Raises the emulator's errors."""
    document = call(["decode", str(code_object), "--json"]).document
    return tuple(_function(name, content) for name, content in sorted(document.items()))


def _function(name: str, content: Mapping[str, Any]) -> FunctionMix:
    code = list(content["instructions"])
    while code and code[-1]["opcode"] == _PADDING:
        code.pop()
    ends: dict[int, int] = {}
    for one in code:
        if "target" in one and one["target"] <= one["at"]:
            ends[one["target"]] = max(ends.get(one["target"], 0), one["at"])
    places: dict[str, list[int]] = {}
    for one in sorted(code, key=lambda one: int(one["at"])):
        places.setdefault(one["class"] or "unknown", []).append(one["at"])
    return FunctionMix(
        name,
        bool(content["kernel"]),
        len(code),
        {class_: len(found) for class_, found in sorted(places.items())},
        dict(sorted(Counter(one["opcode"] for one in code).items())),
        tuple(Loop(head, end, _between(places, head, end)) for head, end in sorted(ends.items())),
        tuple(one["refused"] for one in code if "refused" in one),
    )


def _between(places: Mapping[str, Sequence[int]], head: int, end: int) -> dict[str, int]:
    inside = {c: bisect_right(at, end) - bisect_left(at, head) for c, at in sorted(places.items())}
    return {class_: count for class_, count in inside.items() if count}
