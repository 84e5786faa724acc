"""Whether an edit of a loop reached the machine code, judged from both builds' instructions."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING

from rpl_codeobject.instructions.machine_loops import find_machine_loops
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_codeobject.instructions.disassembly import Instruction
    from rpl_codeobject.instructions.machine_loops import MachineLoop


class IsaVerdict(str, Enum):
    """``outside_loops``: instructions differ, yet every loop is the same as before."""

    IDENTICAL = "identical"
    OUTSIDE_LOOPS = "outside_loops"
    LOOPS_CHANGED = "loops_changed"


@frozen
class IsaDiff:
    """Loops that only one side has, and instruction counts of the whole kernel."""

    verdict: IsaVerdict
    before: tuple[MachineLoop, ...]
    after: tuple[MachineLoop, ...]
    instructions_before: int
    instructions_after: int

    def sentence(self) -> str:
        """The evidence in one line."""
        if self.verdict is IsaVerdict.IDENTICAL:
            return f"the same {self.instructions_before} instructions as before: the edit changed nothing"
        if self.verdict is IsaVerdict.OUTSIDE_LOOPS:
            return "instructions changed, but no loop did"
        return f"loops of {_sizes(self.before)} became loops of {_sizes(self.after)} instructions"


def compare_instructions(before: Sequence[Instruction], after: Sequence[Instruction]) -> IsaDiff:
    """Compare one kernel's code of two builds; loops are matched by their mnemonics, not by place."""
    old, new = find_machine_loops(before), find_machine_loops(after)
    gone, come = _unmatched(old, new), _unmatched(new, old)
    if gone or come:
        verdict = IsaVerdict.LOOPS_CHANGED
    elif _plain(before) == _plain(after):
        verdict = IsaVerdict.IDENTICAL
    else:
        verdict = IsaVerdict.OUTSIDE_LOOPS
    return IsaDiff(verdict, gone, come, len(before), len(after))


def _unmatched(loops: Sequence[MachineLoop], others: Sequence[MachineLoop]) -> tuple[MachineLoop, ...]:
    available = Counter(loop.shape for loop in others)
    unmatched = []
    for loop in loops:
        if available[loop.shape]:
            available[loop.shape] -= 1
        else:
            unmatched.append(loop)
    return tuple(unmatched)


def _plain(instructions: Sequence[Instruction]) -> list[tuple[str, str, int | None]]:
    return [(i.mnemonic, i.operands, i.target) for i in instructions]


def _sizes(loops: Sequence[MachineLoop]) -> str:
    return ", ".join(str(len(loop.shape)) for loop in loops) or "no"
