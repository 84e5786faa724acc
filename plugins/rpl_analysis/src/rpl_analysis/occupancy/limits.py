"""What one compute unit of each architecture can hold: registers, LDS, waves, workgroups.

Figures per compute unit (CU); a workgroup processor of an RDNA device is two of them. The arithmetic on
these figures is in ``model``. Sources: LLVM AMDGPU back end (``AMDGPUBaseInfo``), confirmed by what
clang 22.1.8 reported for generated kernels (``llvm_facts.json``); LDS granules from the LLVM review of
``getLDSAllocGranule`` (2026-09); LDS and register file sizes also in ROCm's ``gpu-specs.rst``.
"""

from __future__ import annotations

import attrs

from rpl_core.errors import MissingError

__all__ = ["ARCHITECTURES", "ArchitectureLimits", "RegisterFile", "ScalarFile", "architecture_limits"]

_CDNA_SOURCE = "LLVM AMDGPU back end, confirmed by clang 22.1.8; ROCm gpu-specs.rst"
_RDNA_SOURCE = "LLVM AMDGPU back end, confirmed by clang 22.1.8"


@attrs.frozen(kw_only=True)
class RegisterFile:
    """Registers one SIMD can hand to waves of one size.

    ``registers`` counts per lane (512 means 512 registers of ``wave_size`` lanes), ``granule`` is the
    allocation step, ``most_used`` what one wave may name, AGPRs included where the file is shared.
    """

    wave_size: int
    registers: int
    granule: int
    most_used: int


@attrs.frozen(kw_only=True)
class ScalarFile:
    """SGPRs of one SIMD, their allocation step, and the most that one wave can be given."""

    registers: int
    granule: int
    most_used: int


@attrs.frozen(kw_only=True)
class ArchitectureLimits:
    """Occupancy limits of one architecture, per compute unit unless the name says otherwise."""

    name: str
    register_files: tuple[RegisterFile, ...]
    #: None where every wave owns a full set of SGPRs.
    scalar_file: ScalarFile | None
    has_accum_vgprs: bool
    #: Some profiler versions record half of the allocated VGPRs and no AGPRs: see ``refusal``.
    dispatch_records_may_halve_vgprs: bool
    waves_per_simd: int
    simds_per_cu: int
    cus_per_workgroup_processor: int
    workgroup_slots_per_cu: int
    lds_bytes_per_cu: int
    lds_granule_bytes: int
    max_lds_bytes_per_workgroup: int
    max_workgroup_size: int
    source: str

    def register_file(self, wave_size: int) -> RegisterFile | None:
        """The file as waves of ``wave_size`` lanes see it; None if there are no such waves."""
        return next((file for file in self.register_files if file.wave_size == wave_size), None)


def _cdna(
    name: str, lds_bytes: int, lds_granule_bytes: int, *, halved_records: bool = False
) -> ArchitectureLimits:
    return ArchitectureLimits(
        name=name,
        register_files=(RegisterFile(wave_size=64, registers=512, granule=8, most_used=512),),
        has_accum_vgprs=True,
        # 102 addressable and 6 for VCC and its kin, in steps of 16.
        scalar_file=ScalarFile(registers=800, granule=16, most_used=112),
        dispatch_records_may_halve_vgprs=halved_records,
        waves_per_simd=8,
        simds_per_cu=4,
        cus_per_workgroup_processor=1,
        workgroup_slots_per_cu=16,
        lds_bytes_per_cu=lds_bytes,
        lds_granule_bytes=lds_granule_bytes,
        max_lds_bytes_per_workgroup=lds_bytes,
        max_workgroup_size=1024,
        source=_CDNA_SOURCE,
    )


def _rdna(name: str, wave32_registers: int, wave32_granule: int) -> ArchitectureLimits:
    return ArchitectureLimits(
        name=name,
        register_files=(
            RegisterFile(wave_size=32, registers=wave32_registers, granule=wave32_granule, most_used=256),
            RegisterFile(
                wave_size=64, registers=wave32_registers // 2, granule=wave32_granule // 2, most_used=256
            ),
        ),
        has_accum_vgprs=False,
        scalar_file=None,
        dispatch_records_may_halve_vgprs=False,
        waves_per_simd=16,
        simds_per_cu=2,
        cus_per_workgroup_processor=2,
        workgroup_slots_per_cu=16,
        lds_bytes_per_cu=65536,
        lds_granule_bytes=1024,
        max_lds_bytes_per_workgroup=65536,
        max_workgroup_size=1024,
        source=_RDNA_SOURCE,
    )


#: The built-in architectures in name order. A device plugin may build its own ``ArchitectureLimits``.
ARCHITECTURES: tuple[ArchitectureLimits, ...] = (
    _rdna("gfx1030", wave32_registers=1024, wave32_granule=16),
    _rdna("gfx1100", wave32_registers=1536, wave32_granule=24),
    _rdna("gfx1201", wave32_registers=1536, wave32_granule=24),
    _cdna("gfx90a", lds_bytes=65536, lds_granule_bytes=512),
    _cdna("gfx942", lds_bytes=65536, lds_granule_bytes=512),
    _cdna("gfx950", lds_bytes=163840, lds_granule_bytes=1280, halved_records=True),
)


def architecture_limits(name: str) -> ArchitectureLimits:
    """Limits of the architecture ``name`` (as in ``gfx942``); MissingError names the known ones."""
    for limits in ARCHITECTURES:
        if limits.name == name:
            return limits
    known = ", ".join(limits.name for limits in ARCHITECTURES)
    raise MissingError(
        f"no occupancy limits for architecture {name!r}",
        cause=f"the known architectures are {known}",
        next_step="a device plugin can supply an ArchitectureLimits of its own",
    )
