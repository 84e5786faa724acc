"""Loops of a kernel's machine code: what backward branches span, with the instructions inside."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_codeobject.instructions.disassembly import Instruction


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
    return tuple(
        MachineLoop(head, end, _shape(instructions, head, end)) for head, end in sorted(ends.items())
    )


def _shape(instructions: Sequence[Instruction], head: int, end: int) -> tuple[str, ...]:
    return tuple(i.mnemonic for i in instructions if head <= i.address <= end)
