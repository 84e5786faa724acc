"""What changed between two builds beside the kernel that was meant to: nothing may, or a launch breaks.

The host finds kernels and variables by name when it runs, so one that is missing is no error of any compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_codeobject.instructions.disassembly import disassemble_all
from rpl_codeobject.reading.exported import exported_symbols
from rpl_core.text.table import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rpl_codeobject.instructions.disassembly import Instruction
    from rpl_codeobject.values import CodeObject


def other_code_changes(
    before: Sequence[CodeObject], after: Sequence[CodeObject], intended: Callable[[str], bool]
) -> tuple[str, ...]:
    """Sentences about what is missing or different in ``after`` although it is not ``intended``, by name.

    Compares code objects of one target in their order: symbols that the host can look up, machine code of
    every function, descriptors (but for where the code lies) and initial bytes of variables. What is new does
    no harm.
    """
    changes: list[str] = []
    for target in dict.fromkeys(code.target for code in before):
        old, new = ([code for code in codes if code.target == target] for codes in (before, after))
        if len(old) != len(new):
            changes.append(f"there are {counted(len(new), 'code object')} for {target}, not {len(old)}")
            continue
        for code, candidate in zip(old, new, strict=True):
            changes += _symbol_changes(code, candidate, intended)
            changes += _code_changes(code, candidate, intended)
    return tuple(dict.fromkeys(changes))


def position_free(code: Sequence[Instruction]) -> list[tuple[str, str]]:
    """The instructions without the distances to data, which move when another kernel grows.

    Such a distance is the literal of the two additions behind ``s_getpc_b64``.
    """
    found, relative = [], 0
    for instruction in code:
        operands = instruction.operands
        if relative and instruction.mnemonic in {"s_add_u32", "s_addc_u32"}:
            operands = operands.rpartition(",")[0]
        relative = 2 if instruction.mnemonic == "s_getpc_b64" else max(0, relative - 1)
        found.append((instruction.mnemonic, operands))
    return found


def _symbol_changes(before: CodeObject, after: CodeObject, intended: Callable[[str], bool]) -> Iterator[str]:
    new = exported_symbols(after)
    for name, symbol in exported_symbols(before).items():
        if name not in new:
            yield f"{name} is missing"
        elif symbol.content is not None and symbol != new[name] and not intended(name.removesuffix(".kd")):
            what = "the descriptor" if name.endswith(".kd") else "the initial value"
            yield f"{what} of {name.removesuffix('.kd')} changed"


def _code_changes(before: CodeObject, after: CodeObject, intended: Callable[[str], bool]) -> Iterator[str]:
    new = disassemble_all(after)
    for name, code in disassemble_all(before).items():
        # One that is gone was taken into its callers, whose code tells.
        if name in new and not intended(name) and position_free(code) != position_free(new[name]):
            yield f"the code of {name} changed"
