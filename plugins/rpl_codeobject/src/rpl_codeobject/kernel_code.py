"""Code of kernels as analyses get it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rpl_codeobject.instructions.packed import PackedMix
from rpl_codeobject.values import Kernel
from rpl_core.interfaces.fact import Fact
from rpl_core.values import frozen


@frozen
class KernelCode:
    """One kernel of a code object that was at hand. ``source`` names the file, never its folder.

    ``calls_functions``: arithmetic may stand in functions that were not inlined, out of sight here.
    ``metadata`` is what the compiler stated of it: registers, wave size, arguments.
    """

    symbol: str
    demangled: str
    architecture: str
    source: str
    packed: Mapping[str, PackedMix]
    calls_functions: bool = False
    metadata: Kernel | None = None


#: The code of recorded kernels as far as it is at hand; empty where none is.
KERNEL_CODE: Fact[tuple[KernelCode, ...]] = Fact("kernel_code", tuple)


def code_of(name: str, symbols: Collection[str], codes: Sequence[KernelCode]) -> tuple[KernelCode, ...]:
    """The code of the kernel displayed as ``name``: by symbol where one was recorded, else by the name."""
    named = tuple(code for code in codes if code.symbol in symbols)
    return named or tuple(code for code in codes if _plain(name) in (_plain(code.demangled), code.symbol))


def _plain(name: str) -> str:
    """Demanglers differ in blanks only."""
    return "".join(name.split())
