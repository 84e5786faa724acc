"""What compiled kernels say about themselves, and their code as analyses get it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

from rpl_core.interfaces.analyzer import Fact
from rpl_core.values import frozen


@frozen(kw_only=True)
class KernelArgument:
    """One slot of the kernarg segment. ``name`` is ``None`` when the compiler did not record it."""

    offset: int
    size: int
    value_kind: str
    address_space: str | None = None
    name: str | None = None

    @property
    def hidden(self) -> bool:
        """Whether the runtime fills it, not the program."""
        return self.value_kind.startswith("hidden_")


@frozen(kw_only=True)
class KernelDescriptor:
    """The 64 bytes that the packet processor reads, as far as they matter here; registers as allocated."""

    group_segment_bytes: int
    private_segment_bytes: int
    kernarg_bytes: int
    entry_offset: int
    vgpr_granules: int
    sgpr_granules: int
    accum_offset: int
    wavefront_size32: bool
    dynamic_stack: bool
    kernarg_preload: int


@frozen(kw_only=True)
class Kernel:
    """One kernel of a code object. Sizes in bytes, registers per wave, scratch per work-item.

    ``vgprs`` includes AGPRs where the architecture has one vector register file (gfx90a and later).
    ``None`` means that the code object does not say.
    """

    name: str
    symbol: str
    arguments: tuple[KernelArgument, ...]
    kernarg_bytes: int
    kernarg_align: int
    lds_bytes: int
    scratch_bytes: int
    max_workgroup_size: int
    wavefront_size: int
    required_workgroup: tuple[int, ...] | None
    dynamic_stack: bool | None
    vgprs: int
    agprs: int | None
    sgprs: int
    vgpr_spills: int | None
    sgpr_spills: int | None
    workgroup_processor_mode: int | None
    uniform_workgroups: int | None
    descriptor: KernelDescriptor | None


@frozen(kw_only=True)
class CodeObject:
    """One device ELF. ``target`` is the target id, for example ``amdgcn-amd-amdhsa--gfx942:xnack-``."""

    target: str
    metadata_version: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    elf: bytes = attrs.field(repr=False)

    @property
    def architecture(self) -> str:
        """For example ``gfx942``."""
        return self.target.partition(":")[0].rpartition("-")[2]

    def kernel(self, symbol: str) -> Kernel | None:
        """The kernel with this descriptor symbol or name, or ``None``."""
        return next((k for k in self.kernels if symbol in {k.symbol, k.name}), None)


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
    return named or tuple(
        code for code in codes if _without_blanks(name) in (_without_blanks(code.demangled), code.symbol)
    )


def _without_blanks(name: str) -> str:
    """Demanglers differ in blanks only."""
    return "".join(name.split())
