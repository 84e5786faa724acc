"""What kind of instruction a line of ISA is, which counter it counts up, and which a wait waits for.

Classes follow docs/reference/thread-trace.md, 3.3: the matrix instructions are tested before the vector ones
and every ``s_`` family before the scalar ALU, because all of them share those prefixes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_att.contract import AttInstruction, AttPart, AttWait


class InstructionClass(str, Enum):
    """The pipe or the purpose of an instruction."""

    VALU = "VALU"
    MFMA = "MFMA"
    SALU = "SALU"
    SMEM = "SMEM"
    VMEM = "VMEM"
    FLAT = "FLAT"
    LDS = "LDS"
    BRANCH = "BRANCH"
    WAITCNT = "WAITCNT"
    BARRIER = "BARRIER"
    INTERNAL = "INTERNAL"
    OTHER = "OTHER"


#: Instructions that the sequencer handles itself: their ``stall`` is waiting, not back-pressure.
IMMEDIATE = frozenset({InstructionClass.WAITCNT, InstructionClass.BARRIER, InstructionClass.INTERNAL})
MEMORY = frozenset(
    {InstructionClass.SMEM, InstructionClass.VMEM, InstructionClass.FLAT, InstructionClass.LDS}
)

_INTERNAL = (
    "nop|sleep|setprio|endpgm|sendmsg|sethalt|trap|clause|delay_alu|code_end|inst_prefetch|set_inst_prefetch"
    "|icache_inv|ttracedata|incperflevel|decperflevel|set_gpr_idx|version"
)
_PATTERNS = (
    (InstructionClass.MFMA, r"v_(?:mfma|smfmac|wmma|swmmac)"),
    (InstructionClass.VALU, r"v_"),
    (InstructionClass.VMEM, r"(?:global|buffer|tbuffer|scratch|image)_"),
    (InstructionClass.FLAT, r"flat_"),
    (InstructionClass.LDS, r"ds_|lds_"),
    (
        InstructionClass.SMEM,
        r"s_(?:(?:buffer_|scratch_)?(?:load|store|atomic|prefetch)|dcache|atc_probe|gl1_inv|memtime|memrealtime)",
    ),
    (InstructionClass.WAITCNT, r"s_wait"),
    (InstructionClass.BARRIER, r"s_barrier"),
    (InstructionClass.BRANCH, r"s_(?:cbranch|branch|setpc|swappc|call|subvector_loop)"),
    (InstructionClass.INTERNAL, f"s_(?:{_INTERNAL})"),
    (InstructionClass.SALU, r"s_"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


@lru_cache(maxsize=65536)
def classify(isa: str) -> InstructionClass:
    """The class of one line of ISA text; ``OTHER`` for exports and what is not known."""
    for kind, pattern in _COMPILED:
        if pattern.match(isa):
            return kind
    return InstructionClass.OTHER


@frozen
class MemoryOperation:
    """A memory instruction: the counters that it counts up, and whether it returns in order."""

    counters: tuple[str, ...]
    in_order: bool


_STORE = re.compile(r"(?:global|buffer|tbuffer|scratch|image|flat)_(?:store|atomic)")
_RETURNS = re.compile(r"\b(?:glc|sc0|th:TH_ATOMIC_RETURN)\b")


def memory_operation(isa: str, gfx_major: int) -> MemoryOperation | None:
    """Which wait counters ``isa`` occupies (docs/reference/thread-trace.md, 2.6).

    ``None`` for other instructions.
    """
    kind = classify(isa)
    if kind is InstructionClass.SMEM or isa.startswith("s_sendmsg"):
        return MemoryOperation(("kmcnt" if gfx_major >= 12 else "lgkmcnt",), in_order=False)
    if kind is InstructionClass.LDS:
        return MemoryOperation(("dscnt" if gfx_major >= 12 else "lgkmcnt",), in_order=True)
    if kind is InstructionClass.VMEM:
        return MemoryOperation((_vector_counter(isa, gfx_major),), in_order=True)
    if kind is InstructionClass.FLAT:
        local = "dscnt" if gfx_major >= 12 else "lgkmcnt"
        # Memory or LDS answers, whichever holds the address, each at its own pace.
        return MemoryOperation((_vector_counter(isa, gfx_major), local), in_order=False)
    return None


def _vector_counter(isa: str, gfx_major: int) -> str:
    """gfx9 counts all in vmcnt; gfx10 and 11 count stores apart; gfx12 also samples and BVH."""
    if gfx_major < 10:
        return "vmcnt"
    stores = bool(_STORE.match(isa)) and not ("atomic" in isa and _RETURNS.search(isa))
    if gfx_major < 12:
        return "vscnt" if stores else "vmcnt"
    if stores:
        return "storecnt"
    if isa.startswith("image_bvh"):
        return "bvhcnt"
    return "samplecnt" if isa.startswith("image_sample") else "loadcnt"


_NAMED = re.compile(r"\b(vmcnt|lgkmcnt|expcnt|vscnt)\((\d+)\)")
_SINGLE = re.compile(r"s_wait(?:cnt)?_(?P<counters>[a-z]+cnt(?:_[a-z]+cnt)*)\b(?P<rest>.*)")
_NUMBER = re.compile(r"\b(0x[0-9a-fA-F]+|\d+)\b")
#: Waits for results of the vector or scalar ALU, or for events: no memory
#: (docs/reference/thread-trace.md, 2.6).
NOT_MEMORY = frozenset({"depctr", "alu", "idle", "event"})


@frozen
class Wait:
    """``limits``: how many operations may stay outstanding, by counter. ``other`` names any other wait."""

    limits: tuple[tuple[str, int], ...] = ()
    other: str | None = None

    @property
    def label(self) -> str:
        """Counters joined by ``+``, or the name of the other wait."""
        return self.other or "+".join(name for name, _ in self.limits)


def wait_of(isa: str) -> Wait | None:
    """What the ``s_wait*`` in ``isa`` waits for; ``None`` for other instructions."""
    if classify(isa) is not InstructionClass.WAITCNT:
        return None
    named = tuple((name, int(limit)) for name, limit in _NAMED.findall(isa))
    if named:
        return Wait(named)
    mnemonic = isa.split(maxsplit=1)[0]
    suffix = mnemonic.removeprefix("s_waitcnt").removeprefix("s_wait").strip("_")
    if suffix in NOT_MEMORY:
        return Wait(other=suffix)
    match = _SINGLE.match(isa)
    number = _NUMBER.findall(match["rest"]) if match else []
    if match is None or not number:
        return Wait(other="unnamed")
    return Wait(_limits(match["counters"].split("_"), int(number[-1], 0)))


def _limits(counters: list[str], value: int) -> tuple[tuple[str, int], ...]:
    """One counter takes the whole value; of two, the second is in bits 0-5 and the first in bits 8-13."""
    if len(counters) == 1:
        return ((counters[0], value),)
    return ((counters[0], value >> 8 & 0x3F), (counters[1], value & 0x3F))


# What to do about a hot instruction, by the class of what it waits for.


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
    deciding = [producer for producer in awaited.producers if producer.deciding_cycles] if awaited else []
    return max(deciding, key=lambda producer: producer.deciding_cycles).isa if deciding else None


def hottest(part: AttPart, most: int = 1) -> Sequence[tuple[AttInstruction, AttWait | None, str]]:
    """The first instructions by cycles, each with what it waited for and what to do about it."""
    waits = {wait.line: wait for wait in part.waits}
    return [
        (row, waits.get(row.line), next_step(row.isa, waits.get(row.line)))
        for row in part.hot_instructions[:most]
    ]
