"""Requests that no compute unit could hold, or that are not known well enough, with the reason in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.occupancy.launch import AllocatedRegisters
from rpl_analysis.occupancy.rounding import round_up

if TYPE_CHECKING:
    from rpl_analysis.occupancy.launch import LaunchShape, UsedRegisters
    from rpl_analysis.occupancy.limits import ArchitectureLimits, RegisterFile

__all__ = ["refusal"]

#: Most arch VGPRs that an instruction can name: 8 bits of encoding.
_ENCODABLE_VGPRS = 256


def refusal(
    limits: ArchitectureLimits, registers: UsedRegisters | AllocatedRegisters, launch: LaunchShape
) -> str | None:
    """Why no occupancy can be given for this request, or None if it can."""
    file = limits.register_file(launch.wave_size)
    if file is None:
        return f"{limits.name} has no waves of {launch.wave_size} lanes"
    if launch.workgroup_size > limits.max_workgroup_size:
        return (
            f"workgroup of {launch.workgroup_size} work-items exceeds the limit of "
            f"{limits.max_workgroup_size} on {limits.name}"
        )
    return _lds_refusal(limits, launch) or _register_refusal(limits, file, registers)


def _lds_refusal(limits: ArchitectureLimits, launch: LaunchShape) -> str | None:
    if launch.lds_bytes is None:
        return "LDS size per workgroup is unknown"
    if launch.lds_bytes > limits.max_lds_bytes_per_workgroup:
        return (
            f"{launch.lds_bytes} B of LDS per workgroup exceed the limit of "
            f"{limits.max_lds_bytes_per_workgroup} B on {limits.name}"
        )
    return None


def _register_refusal(
    limits: ArchitectureLimits, file: RegisterFile, registers: UsedRegisters | AllocatedRegisters
) -> str | None:
    if registers.arch_vgprs is None:
        return "arch VGPR count is unknown"
    if registers.arch_vgprs > round_up(_ENCODABLE_VGPRS, file.granule):
        return f"{registers.arch_vgprs} arch VGPRs exceed the {_ENCODABLE_VGPRS} that a wave can name"
    if not limits.has_accum_vgprs and registers.accum_vgprs:
        return f"{registers.accum_vgprs} AGPRs recorded, but {limits.name} has none"
    total = registers.vector_registers(unified=limits.has_accum_vgprs)
    if total is None:
        return "AGPR count is unknown"
    if total > round_up(file.most_used, file.granule):
        return f"{total} vector registers exceed the {file.most_used} that a wave can have on {limits.name}"
    if isinstance(registers, AllocatedRegisters) and limits.has_accum_vgprs:
        return _record_refusal(limits, file, registers, total) or _sgpr_refusal(limits, registers)
    return _sgpr_refusal(limits, registers)


def _record_refusal(
    limits: ArchitectureLimits, file: RegisterFile, registers: AllocatedRegisters, total: int
) -> str | None:
    # rocprofiler-sdk 7.0 takes gfx950 for an older device: (granulated + 1) * 4 VGPRs and no AGPRs, half of
    # the allocation. A later version may be right, and a record does not tell which one wrote it.
    if limits.dispatch_records_may_halve_vgprs and registers.accum_vgprs == 0:
        return (
            f"dispatch records of {limits.name} without AGPRs may show half of the allocated VGPRs "
            f"({total} recorded): take the counts from the code object"
        )
    if total % file.granule:
        return f"{total} vector registers are no allocation of {limits.name}, which steps by {file.granule}"
    return None


def _sgpr_refusal(limits: ArchitectureLimits, registers: UsedRegisters | AllocatedRegisters) -> str | None:
    if limits.scalar_file is None:
        return None
    if registers.sgprs is None:
        return "SGPR count is unknown"
    if registers.sgprs > limits.scalar_file.most_used:
        return f"{registers.sgprs} SGPRs exceed the {limits.scalar_file.most_used} that a wave can have"
    return None
