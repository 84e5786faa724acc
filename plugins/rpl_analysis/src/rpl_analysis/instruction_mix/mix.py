"""What code objects tell about a recorded kernel.

Its code is found by symbol where that was recorded, else by the whole displayed name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_codeobject.kernel_code import PackedMix, code_of
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rpl_codeobject.kernel_code import KernelCode

__all__ = ["KernelMix", "NoMix", "mix_of"]


@frozen
class KernelMix:
    """The packed share by data type of a recorded kernel, and the file it was read from."""

    packed: Mapping[str, PackedMix]
    source: str


@frozen
class NoMix:
    """Code objects were at hand, but tell nothing about this kernel, for ``reason``."""

    reason: str


def mix_of(
    name: str, symbols: Collection[str], architectures: Collection[str], codes: Sequence[KernelCode]
) -> KernelMix | NoMix:
    """The mix of the kernel displayed as ``name``; an empty ``architectures`` accepts code of any.

    Several code objects may hold it, as long as they agree.
    """
    named = code_of(name, symbols, codes)
    if not named:
        return NoMix("no code object at hand has this kernel")
    fitting = [code for code in named if not architectures or code.architecture in architectures]
    if not fitting:
        others = ", ".join(sorted({code.architecture for code in named}))
        return NoMix(f"the code objects at hand have this kernel for {others} only")
    if any(code.calls_functions for code in fitting):
        return NoMix("its code calls functions that were not inlined, whose arithmetic is not in sight")
    if any(code.packed != fitting[0].packed for code in fitting):
        files = ", ".join(sorted({code.source for code in fitting}))
        return NoMix(f"code objects at hand differ in this kernel ({files})")
    return KernelMix(fitting[0].packed, fitting[0].source)
