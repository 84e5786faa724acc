"""Requests that no compute unit could hold, or that are not known well enough, with the reason in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.occupancy.launch import AllocatedRegisters, round_up

if TYPE_CHECKING:
    from rpl_analysis.occupancy.launch import LaunchShape, UsedRegisters
    from rpl_core.model.architecture import Architecture, OccupancyLimits, RegisterFile

__all__ = ["refusal"]


def refusal(
    architecture: Architecture, registers: UsedRegisters | AllocatedRegisters, launch: LaunchShape
) -> str | None:
    """Why no occupancy can be given for this request, or None if it can."""
    name, limits = architecture.name, architecture.occupancy
    if limits is None:
        return f"no occupancy limits for architecture {name!r}"
    file = limits.register_file(launch.wave_size)
    if file is None:
        return f"{name} has no waves of {launch.wave_size} lanes"
    if launch.workgroup_size > limits.max_workgroup_size:
        return (
            f"workgroup of {launch.workgroup_size} work-items exceeds the limit of "
            f"{limits.max_workgroup_size} on {name}"
        )
    return (
        _lds_refusal(name, limits, launch)
        or _vector_refusal(name, limits, file, registers)
        or _record_refusal(architecture, limits, file, registers)
        or _scalar_refusal(limits, registers)
    )


def _lds_refusal(name: str, limits: OccupancyLimits, launch: LaunchShape) -> str | None:
    if launch.lds_bytes is None:
        return "LDS size per workgroup is unknown"
    if launch.lds_bytes > limits.max_lds_bytes_per_workgroup:
        return (
            f"{launch.lds_bytes} B of LDS per workgroup exceed the limit of "
            f"{limits.max_lds_bytes_per_workgroup} B on {name}"
        )
    return None


def _vector_refusal(
    name: str, limits: OccupancyLimits, file: RegisterFile, registers: UsedRegisters | AllocatedRegisters
) -> str | None:
    if registers.arch_vgprs is None:
        return "arch VGPR count is unknown"
    if registers.arch_vgprs > round_up(limits.encodable_vgprs, file.granule):
        return f"{registers.arch_vgprs} arch VGPRs exceed the {limits.encodable_vgprs} that a wave can name"
    if not limits.has_accum_vgprs and registers.accum_vgprs:
        return f"{registers.accum_vgprs} AGPRs recorded, but {name} has none"
    total = registers.vector_registers(limits)
    if total is None:
        return "AGPR count is unknown"
    if total > round_up(file.most_used, file.granule):
        return f"{total} vector registers exceed the {file.most_used} that a wave can have on {name}"
    return None


def _record_refusal(
    architecture: Architecture,
    limits: OccupancyLimits,
    file: RegisterFile,
    registers: UsedRegisters | AllocatedRegisters,
) -> str | None:
    if not isinstance(registers, AllocatedRegisters) or not limits.has_accum_vgprs:
        return None
    name, total = architecture.name, registers.vector_registers(limits)
    assert total is not None  # or refused before
    if architecture.record_quirks.vgprs_may_be_halved and registers.accum_vgprs == 0:
        return (
            f"dispatch records of {name} without AGPRs may show half of the allocated VGPRs "
            f"({total} recorded): take the counts from the code object"
        )
    if total % file.granule:
        return f"{total} vector registers are no allocation of {name}, which steps by {file.granule}"
    return None


def _scalar_refusal(limits: OccupancyLimits, registers: UsedRegisters | AllocatedRegisters) -> str | None:
    if limits.scalar_file is None:
        return None
    if registers.sgprs is None:
        return "SGPR count is unknown"
    if registers.sgprs > limits.scalar_file.most_used:
        return f"{registers.sgprs} SGPRs exceed the {limits.scalar_file.most_used} that a wave can have"
    return None
