"""Instructions of a code object's kernels, by LLVM's disassembler, their loops, and how those of two differ.

Nothing is executed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import CodeObject


#: Searched on PATH in this order, then in ROCm's default place.
DISASSEMBLERS = ("llvm-objdump-22", "llvm-objdump", "/opt/rocm/llvm/bin/llvm-objdump")
_TIME_LIMIT_S = 120.0
#: Linux takes 128 KiB per argument.
_MAX_ARGUMENT_BYTES = 100_000
_SYMBOL = re.compile(r"^(?P<address>[0-9a-f]+) <(?P<name>[^>]+)>:$")
_LINE = re.compile(
    r"^\s+(?P<mnemonic>[a-z][\w.]*)(?:\s+(?P<operands>.*?))?\s*// (?P<address>[0-9A-F]+):"
    r"(?: [0-9A-F]{8})+(?: <(?P<target>[^>+]+)(?:\+0x(?P<offset>[0-9a-f]+))?>)?$"
)


@frozen
class Instruction:
    """``address`` and ``target`` (of a direct branch) are byte offsets from the kernel's entry."""

    address: int
    mnemonic: str
    operands: str
    target: int | None = None


def find_disassembler() -> Path:
    """The first disassembler found; ``MissingError`` names what to install."""
    for name in DISASSEMBLERS:
        program = shutil.which(name)
        if program is not None:
            return Path(program)
    raise MissingError(
        "no llvm-objdump found", next_step="install LLVM's tools or ROCm, or put llvm-objdump on PATH"
    )


def disassemble(
    code_object: CodeObject, tool: Path | None = None, kernels: Collection[str] | None = None
) -> dict[str, tuple[Instruction, ...]]:
    """Kernel name -> instructions in address order, padding behind the last one left out.

    ``kernels`` are the names of those wanted, ``None`` for all.
    """
    names = {kernel.name for kernel in code_object.kernels}
    names = names if kernels is None else names & set(kernels)
    text = _objdump(tool or find_disassembler(), code_object.elf, _selection(names, code_object))
    return _parsed(text, names, names)


def disassemble_all(code_object: CodeObject, tool: Path | None = None) -> dict[str, tuple[Instruction, ...]]:
    """The same for every function of the code object, those that kernels call among them."""
    text = _objdump(tool or find_disassembler(), code_object.elf, [])
    return _parsed(text, None, {kernel.name for kernel in code_object.kernels})


def _parsed(
    text: str, wanted: Collection[str] | None, needed: Collection[str]
) -> dict[str, tuple[Instruction, ...]]:
    """Functions named ``wanted`` (``None``: all); ``BadDataError`` unless all of ``needed`` are there."""
    functions: dict[str, list[Instruction]] = {}
    current: list[Instruction] | None = None
    base, name = 0, ""
    for line in text.splitlines():
        if (symbol := _SYMBOL.match(line)) is not None:
            name, base = symbol["name"], int(symbol["address"], 16)
            current = functions.setdefault(name, []) if wanted is None or name in wanted else None
        elif current is not None and (match := _LINE.match(line)) is not None:
            current.append(_instruction(match, name, base))
    missing = sorted(set(needed) - functions.keys())
    if missing:
        raise BadDataError(f"the disassembly has no code for {', '.join(missing)}")
    return {name: _without_padding(instructions) for name, instructions in sorted(functions.items())}


def _instruction(match: re.Match[str], name: str, base: int) -> Instruction:
    target = int(match["offset"] or "0", 16) if match["target"] == name else None
    return Instruction(int(match["address"], 16) - base, match["mnemonic"], match["operands"] or "", target)


def _without_padding(instructions: list[Instruction]) -> tuple[Instruction, ...]:
    # The assembler fills up to the next cache line with s_nop or s_code_end.
    end = len(instructions)
    while end and instructions[end - 1].mnemonic in {"s_nop", "s_code_end"}:
        end -= 1
    return tuple(instructions[:end])


def _selection(names: Collection[str], code_object: CodeObject) -> list[str]:
    """The option that limits the disassembler to ``names``; none where they do not fit on a command line."""
    joined = ",".join(sorted(names))
    plain = all(name.isprintable() and "," not in name for name in names)
    if len(names) == len(code_object.kernels) or not plain or len(joined.encode()) > _MAX_ARGUMENT_BYTES:
        return []
    return [f"--disassemble-symbols={joined}"]


def _objdump(tool: Path, elf: bytes, selection: list[str]) -> str:
    with tempfile.NamedTemporaryFile(suffix=".hsaco") as file:
        file.write(elf)
        file.flush()
        command = [str(tool), "--disassemble", "--no-show-raw-insn", *selection, file.name]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIME_LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MissingError(f"{tool} did not disassemble the code object: {error}") from error
    if done.returncode < 0:  # its last lines are addresses of its own
        raise BadDataError(
            f"{tool} crashed on the code object",
            cause="bytes that are no instruction of its architecture: damaged or not code",
        )
    if done.returncode != 0:
        problem = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BadDataError(
            f"{tool} refused the code object", cause=problem[-1] if problem else "it gave no reason"
        )
    return done.stdout.decode("utf-8", "replace")


# Loops of a kernel's machine code: what backward branches span, with the instructions inside.

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


# Whether an edit of a loop reached the machine code, judged from both builds' instructions.


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
    elif _position_free(before) == _position_free(after):
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


def _position_free(instructions: Sequence[Instruction]) -> list[tuple[str, str, int | None]]:
    return [(i.mnemonic, i.operands, i.target) for i in instructions]


def _sizes(loops: Sequence[MachineLoop]) -> str:
    return ", ".join(str(len(loop.shape)) for loop in loops) or "no"
