"""Theoretical occupancy of a compiled kernel, from the registers and LDS that its metadata states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.occupancy import (
    LaunchShape,
    NoOccupancy,
    Occupancy,
    UsedRegisters,
    architecture_limits,
    theoretical_occupancy,
)
from rpl_core.errors import RplError

if TYPE_CHECKING:
    from rpl_codeobject.values import Kernel


@attrs.frozen
class LaunchAssumption:
    """What the code object can't know. Without a workgroup size the largest permitted one is taken."""

    workgroup_size: int | None = None
    dynamic_lds_bytes: int = 0


def kernel_occupancy(kernel: Kernel, architecture: str, launch: LaunchAssumption) -> Occupancy | NoOccupancy:
    """Waves per SIMD in hardware mode, or why there is no figure."""
    agprs = kernel.agprs or 0
    try:
        limits = architecture_limits(architecture)
        registers = UsedRegisters(
            arch_vgprs=kernel.vgprs - agprs if limits.has_accum_vgprs else kernel.vgprs,
            accum_vgprs=agprs,
            sgprs=kernel.sgprs,
        )
        shape = LaunchShape(
            workgroup_size=launch.workgroup_size or kernel.max_workgroup_size,
            lds_bytes=kernel.lds_bytes + launch.dynamic_lds_bytes,
            wave_size=kernel.wavefront_size,
        )
        return theoretical_occupancy(limits, registers, shape)
    except RplError as error:  # an architecture without limits, or counts that no device has
        return NoOccupancy(error.fact)
