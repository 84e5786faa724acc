"""Section on the machine code: the kernel's hottest innermost loop, from the built binary."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_llm_unroll.hot_places import hot_instructions
from rpl_llm_unroll.prompt.figures import missing
from rpl_llm_unroll.prompt.model import Section
from rpl_llm_unroll.prompt.quoting import fenced

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_codeobject.instructions.disassembly import Instruction
    from rpl_codeobject.instructions.machine_loops import MachineLoop
    from rpl_codeobject.values import CodeObject
    from rpl_llm_unroll.prompt.facts import RunFacts

_TITLE = "Machine code"
#: A loop unrolled by eight still fits; a whole GEMM kernel does not help a reader (chosen).
_SHOWN_INSTRUCTIONS = 160


@frozen
class _Code:
    symbol: str
    architecture: str
    instructions: tuple[Instruction, ...]


def machine_code_section(binary: Path | None, facts: RunFacts) -> Section:
    if binary is None:
        return Section(_TITLE, missing("no built program was given"))
    try:
        code = _find_code(binary, facts)
    except RplError as error:
        return Section(_TITLE, missing(error.fact.replace(str(binary), binary.name)))
    if code is None:
        return Section(_TITLE, missing("the built program has no code of this kernel"))
    return Section(_TITLE, _extract(code, _hot_texts(facts)))


def _find_code(binary: Path, facts: RunFacts) -> _Code | None:
    """The kernel's instructions for the device of the run, else of the first code object that has it."""
    from rpl_codeobject.demangle import demangled
    from rpl_codeobject.instructions.disassembly import disassemble, find_disassembler
    from rpl_codeobject.reading.read import read_code_objects

    objects = read_code_objects(binary)
    tool = find_disassembler()
    for code in sorted(objects, key=lambda c: c.architecture != facts.architecture):  # a stable sort
        shown = demangled([kernel.name for kernel in code.kernels])
        symbol = _symbol(code, shown, facts)
        if symbol is not None:
            return _Code(symbol, code.architecture, disassemble(code, tool, (symbol,))[symbol])
    return None


def _symbol(code: CodeObject, shown: dict[str, str] | object, facts: RunFacts) -> str | None:
    from rpl_codeobject.kernel_names import is_instance

    names = dict(shown) if isinstance(shown, dict) else {}
    wanted = "".join((facts.recorded or "").removesuffix(".kd").split())
    for kernel in code.kernels:
        if wanted in {"".join(names.get(kernel.name, kernel.name).split()), kernel.name}:
            return kernel.name
    instances = [k.name for k in code.kernels if is_instance(names.get(k.name, k.name), facts.kernel)]
    # Of several instances of a template nobody can tell which one ran.
    return instances[0] if len(instances) == 1 else None


def _hot_texts(facts: RunFacts) -> Counter[str]:
    """Instruction text -> cycles, as far as a plugin traced them."""
    weights: Counter[str] = Counter()
    for text, cycles in hot_instructions({} if facts.timing is None else facts.timing.model_dump()):
        weights[" ".join(text.split())] += cycles
    return weights


def _extract(code: _Code, hot: Counter[str]) -> str:
    from rpl_codeobject.instructions.machine_loops import find_machine_loops

    every = find_machine_loops(code.instructions)
    loops = _innermost(every)
    head = f"{counted(len(code.instructions), 'instruction')} of {code.architecture}"
    if not loops:
        text = _listing(code.instructions)
        return f"{head}, no loop. From its beginning:\n\n{text}"
    scores = [
        (_score(loop, code.instructions, hot), _depth(loop, every), len(loop.shape), -loop.head)
        for loop in loops
    ]
    loop = loops[scores.index(max(scores))]
    inside = [i for i in code.instructions if loop.head <= i.address <= loop.end]
    if max(scores)[0]:
        why = "the innermost loop with the most traced cycles (matched by instruction text)"
    elif len(loops) == 1:
        why = "its only innermost loop"
    else:
        why = f"the longest of {len(loops)} innermost loops; which is hottest is {missing(None)}"
    return f"{head}. Shown: {why}, {counted(len(inside), 'instruction')}.\n\n{_listing(inside)}"


def _innermost(loops: Sequence[MachineLoop]) -> list[MachineLoop]:
    return [
        loop
        for loop in loops
        if not any(o is not loop and loop.head <= o.head and o.end <= loop.end for o in loops)
    ]


def _depth(loop: MachineLoop, loops: Sequence[MachineLoop]) -> int:
    return sum(outer.head <= loop.head and loop.end <= outer.end for outer in loops)


def _score(loop: MachineLoop, instructions: Sequence[Instruction], hot: Counter[str]) -> int:
    inside = {_text(i) for i in instructions if loop.head <= i.address <= loop.end}
    return sum(cycles for text, cycles in hot.items() if text in inside)


def _text(instruction: Instruction) -> str:
    return " ".join(f"{instruction.mnemonic} {instruction.operands}".split())


def _listing(instructions: Sequence[Instruction]) -> str:
    lines = [f"{i.address:6x}: {_text(i)}" + _target(i) for i in instructions[:_SHOWN_INSTRUCTIONS]]
    rest = len(instructions) - len(lines)
    if rest > 0:
        lines.append(f"... {counted(rest, 'more instruction')}")
    return fenced("\n".join(lines), "asm")


def _target(instruction: Instruction) -> str:
    return "" if instruction.target is None else f"  -> {instruction.target:x}"
