"""Code objects, kernels, arguments and descriptors as values; how they are read is left to others."""

from __future__ import annotations

import attrs

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
