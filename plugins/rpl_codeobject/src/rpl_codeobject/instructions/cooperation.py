"""Which kinds of cooperation a kernel's machine code has: barriers, and atomics on LDS or on memory.

Mnemonics: LLVM's "AMDGPU instruction syntax" for GFX9 and later, https://llvm.org/docs/AMDGPUUsage.html. How
many there are says nothing: an unrolled loop has more, a fully unrolled one fewer branches around them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_codeobject.instructions.disassembly import Instruction

__all__ = ["cooperation_kinds"]

_KINDS = {
    "barrier": re.compile(r"s_barrier\w*"),
    "atomic on memory": re.compile(r"(?:global|flat|buffer)_atomic_\w+"),
    "atomic on LDS": re.compile(
        r"ds_(?:pk_)?(?:add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|cmpst|cmpstore|wrxchg|storexchg"
        r"|condxchg|append|consume)\w*"
    ),
}


def cooperation_kinds(code: Iterable[Instruction]) -> frozenset[str]:
    """The kinds that are present."""
    words = {instruction.mnemonic for instruction in code}
    return frozenset(
        kind for kind, pattern in _KINDS.items() if any(pattern.fullmatch(word) for word in words)
    )
