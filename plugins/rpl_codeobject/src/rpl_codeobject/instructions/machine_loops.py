"""Loops of a kernel's machine code: what backward branches span, with the instructions inside."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_codeobject.instructions.disassembly import Instruction

#: Mean depth of nested loops, which each list what is inside (chosen; source code has a few).
_DEEPEST = 100


@frozen
class MachineLoop:
    """``head`` and ``end`` are byte offsets of the first and last instruction.

    ``shape`` lists the mnemonics in order: registers and offsets differ between builds, these don't.
    """

    head: int
    end: int
    shape: tuple[str, ...]

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.shape)


def find_machine_loops(instructions: Sequence[Instruction]) -> tuple[MachineLoop, ...]:
    """One loop per target of a backward branch, up to its last such branch; by address."""
    ends: dict[int, int] = {}
    for instruction in instructions:
        if instruction.target is not None and instruction.target <= instruction.address:
            ends[instruction.target] = max(ends.get(instruction.target, 0), instruction.address)
    places = [instruction.address for instruction in instructions]  # ascending
    spans = [(bisect_left(places, head), bisect_right(places, end)) for head, end in sorted(ends.items())]
    if sum(last - first for first, last in spans) > _DEEPEST * len(places):
        raise BadDataError(
            f"{len(spans)} loops that lie in each other {_DEEPEST} deep and deeper",
            cause="damaged, or code of no compiler",
        )
    mnemonics = tuple(instruction.mnemonic for instruction in instructions)
    return tuple(
        MachineLoop(head, end, mnemonics[first:last])
        for (head, end), (first, last) in zip(sorted(ends.items()), spans, strict=True)
    )
