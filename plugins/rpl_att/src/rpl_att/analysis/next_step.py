"""What to do about a hot instruction, by the class of what it waits for.

The classes are those of docs/reference/thread-trace.md, 3.3; that a wait counter covers is told by what the
trace says of the operations behind it (2.6). Advice follows AMD's performance guidelines for HIP
(https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/performance_guidelines.html).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rpl_att.instruction_class import MEMORY, InstructionClass, classify, wait_of

if TYPE_CHECKING:
    from rpl_att.contract import AttInstruction, AttPart, AttWait

__all__ = ["hottest", "next_step", "waited_for"]

_LOADS = "Ask for it earlier: unroll, prefetch the next tile, double-buffer, or let more waves fit."
_LOCAL = "Put independent work between the LDS access and its use; look for bank conflicts (pad or swizzle)."
_SCALAR = "Hoist the scalar load out of the loop, or ask for it earlier."
_STORES = "Write less often or wider; nothing needs to wait for a store that nobody reads back."
#: By the class of the operation that a wait waited for.
_AWAITED = {
    InstructionClass.VMEM: _LOADS,
    InstructionClass.FLAT: _LOADS,
    InstructionClass.LDS: _LOCAL,
    InstructionClass.SMEM: _SCALAR,
}
#: By the wait counter where the trace names no operation.
_COUNTERS = {
    "vmcnt": _LOADS,
    "loadcnt": _LOADS,
    "samplecnt": _LOADS,
    "vscnt": _STORES,
    "storecnt": _STORES,
    "dscnt": _LOCAL,
    "kmcnt": _SCALAR,
    "lgkmcnt": "LDS or a scalar load is late: ask earlier, or put independent work before its use.",
}
#: By the class of an instruction that is no wait: its cycles are those of its pipe.
_PIPES = {
    InstructionClass.BARRIER: "Waves wait for the slowest one: balance their work, or use fewer barriers.",
    InstructionClass.VMEM: "Fewer and wider memory accesses, 16 bytes per lane, neighbours side by side.",
    InstructionClass.FLAT: "Let the compiler know the address space; then fewer and wider accesses.",
    InstructionClass.LDS: "Fewer and wider LDS accesses without bank conflicts (ds_read_b128).",
    InstructionClass.SMEM: "Load scalars once, outside of the loop, in wide groups.",
    InstructionClass.MFMA: "The matrix units are the limit here: a narrower type or less arithmetic.",
    InstructionClass.VALU: "Fewer or packed vector instructions: hoist what does not change in the loop.",
    InstructionClass.SALU: "Hoist scalar arithmetic out of the loop.",
    InstructionClass.BRANCH: "Branch less often: unroll the loop, or turn short branches into selects.",
}
_WIDEST = re.compile(r"dwordx4|b128")
_ALREADY_WIDE = "Its accesses are as wide as can be: move fewer bytes, or let more waves overlap them."


def next_step(isa: str, awaited: AttWait | None = None) -> str:
    """What to do about the instruction; the empty text where nothing is known to help."""
    kind = classify(isa)
    if kind in MEMORY and _WIDEST.search(isa):
        return _ALREADY_WIDE
    if kind is not InstructionClass.WAITCNT:
        return _PIPES.get(kind, "")
    operation = waited_for(awaited)
    if operation is not None:
        stores = any(word in operation.split(maxsplit=1)[0] for word in ("_store", "_write"))
        known = _STORES if stores and classify(operation) is not InstructionClass.LDS else None
        return known or _AWAITED.get(classify(operation), "")
    wait = wait_of(isa)
    counters = [name for name, _ in wait.limits] if wait else []
    return next((_COUNTERS[name] for name in counters if name in _COUNTERS), "")


def waited_for(awaited: AttWait | None) -> str | None:
    """The operation that decided most of a wait's cycles."""
    deciding = [one for one in awaited.producers if one.deciding_cycles] if awaited else []
    return max(deciding, key=lambda one: one.deciding_cycles).isa if deciding else None


def hottest(part: AttPart, most: int = 1) -> Sequence[tuple[AttInstruction, AttWait | None, str]]:
    """The first instructions by cycles, each with what it waited for and what to do about it."""
    waits = {wait.line: wait for wait in part.waits}
    return [
        (row, waits.get(row.line), next_step(row.isa, waits.get(row.line)))
        for row in part.hot_instructions[:most]
    ]
