"""What kind of instruction a line of ISA is, which counter it counts up, and which a wait waits for.

Classes follow docs/reference/thread-trace.md, 3.3: the matrix instructions are tested before the vector ones
and every ``s_`` family before the scalar ALU, because all of them share those prefixes.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from rpl_core.values import frozen


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
