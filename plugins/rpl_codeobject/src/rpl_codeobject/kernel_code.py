"""Code of kernels as analyses get it."""

from __future__ import annotations

from collections.abc import Mapping

from rpl_codeobject.instructions.packed import PackedMix
from rpl_core.interfaces.fact import Fact
from rpl_core.values import frozen


@frozen
class KernelCode:
    """One kernel of a code object that was at hand. ``source`` names the file, never its folder.

    ``calls_functions``: arithmetic may stand in functions that were not inlined, out of sight here.
    """

    symbol: str
    demangled: str
    architecture: str
    source: str
    packed: Mapping[str, PackedMix]
    calls_functions: bool = False


#: The code of recorded kernels as far as it is at hand; empty where none is.
KERNEL_CODE: Fact[tuple[KernelCode, ...]] = Fact("kernel_code", tuple)
