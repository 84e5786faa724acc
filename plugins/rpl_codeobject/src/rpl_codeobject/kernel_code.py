"""Code of kernels as analyses get it, and the packed share of its arithmetic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from rpl_codeobject.values import Kernel
from rpl_core.interfaces.fact import Fact
from rpl_core.values import frozen

#: Operation -> FLOPs per lane that the counters stand for (docs/reference/counters.md, 2.1).
_ARITHMETIC = {
    **dict.fromkeys(("add", "sub", "subrev", "mul"), 1),
    **dict.fromkeys(("fma", "fmac", "fmaak", "fmamk", "mac", "mad", "madak", "madmk"), 2),
}
#: Transcendental operations have no packed form.
_TRANSCENDENTAL = dict.fromkeys(("exp", "log", "rcp", "rsq", "sqrt", "sin", "cos"), 1)
#: Floating-point types as mnemonics spell them (LLVM AMDGPU: v_pk_fma_f32, v_pk_fma_bf16 and their kin).
_FLOATING = re.compile(r"b?f\d+")


@frozen
class PackedMix:
    """FLOPs per lane of one data type in a kernel's code, each instruction once: of packed ones, and of all.

    Both as the counters count them: a packed addition is one here, an FMA two.
    """

    packed: int
    all: int

    def operations_per_counted(self, packed_operations: int) -> float:
        """Operations per counted one, if a packed instruction does ``packed_operations`` times the work."""
        return 1.0 + (packed_operations - 1) * self.packed / self.all if self.all else 1.0


def packed_mix(mnemonics: Iterable[str]) -> Mapping[str, PackedMix]:
    """The mix by data type ("F16", "F32") from mnemonics such as ``v_pk_fma_f32`` or ``v_add_f32_e32``."""
    packed: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for mnemonic in mnemonics:
        parts = mnemonic.split("_")
        is_packed = parts[1:2] == ["pk"]
        operation, data_type = parts[1 + is_packed :][:1], parts[2 + is_packed :][:1]
        if parts[0] != "v" or not data_type or _FLOATING.fullmatch(data_type[0]) is None:
            continue
        flops = _ARITHMETIC.get(operation[0]) or (0 if is_packed else _TRANSCENDENTAL.get(operation[0], 0))
        every[data_type[0].upper()] += flops
        packed[data_type[0].upper()] += flops * is_packed
    return {name: PackedMix(packed[name], count) for name, count in sorted(every.items()) if count}


# Code of kernels as analyses get it.


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
