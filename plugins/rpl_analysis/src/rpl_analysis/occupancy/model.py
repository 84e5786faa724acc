"""Theoretical occupancy: how many waves of one launch fit on a SIMD at once, and what stops the next one.

Formula: LLVM's (``AMDGPUBaseInfo``, ``getOccupancyWithWorkGroupSizes``), reproduced on every fact of the
clang 22.1.8 sweep. Whole workgroups are placed and the fullest SIMD counts: three 9-wave workgroups give 7
waves per SIMD (27 waves on 4 SIMDs). Spills are not seen here: a spilling kernel may show a high figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.occupancy.refusal import refusal
from rpl_analysis.occupancy.resources import (
    lds_waves,
    resolve,
    sgpr_waves,
    vgpr_waves,
    workgroup_waves,
    workgroups_per_unit,
)
from rpl_analysis.occupancy.result import NoOccupancy, Occupancy, ResourceLimits
from rpl_analysis.occupancy.thresholds import next_thresholds

if TYPE_CHECKING:
    from rpl_analysis.occupancy.launch import AllocatedRegisters, LaunchShape, UsedRegisters
    from rpl_analysis.occupancy.result import Mode
    from rpl_core.model.architecture import Architecture

__all__ = ["theoretical_occupancy"]


def theoretical_occupancy(
    architecture: Architecture,
    registers: UsedRegisters | AllocatedRegisters,
    launch: LaunchShape,
    *,
    mode: Mode = "hardware",
) -> Occupancy | NoOccupancy:
    """Waves per SIMD of ``launch`` on the architecture, with limiter and next threshold.

    Unknown counts and impossible requests give NoOccupancy with the reason, never a guess.
    """
    reason = refusal(architecture, registers, launch)
    if reason is not None:
        return NoOccupancy(reason)
    limits = architecture.occupancy
    assert limits is not None  # or refused
    request = resolve(limits, registers, launch, mode)
    workgroups = workgroups_per_unit(request)
    if workgroups == 0 and mode == "hardware":
        return NoOccupancy(
            f"{request.vector_registers} vector registers per wave leave no room for one workgroup of "
            f"{request.waves_per_workgroup} waves on {architecture.name}"
        )
    per_resource = ResourceLimits(
        vgpr=vgpr_waves(request),
        sgpr=sgpr_waves(request),
        lds=lds_waves(request),
        workgroup=workgroup_waves(request),
        wave_slots=limits.waves_per_simd,
    )
    limiter, waves = per_resource.lowest()
    return Occupancy(
        waves_per_simd=waves,
        max_waves_per_simd=limits.waves_per_simd,
        fraction=waves / limits.waves_per_simd,
        limiter=limiter,
        limits=per_resource,
        next_threshold=next_thresholds(request, per_resource, waves),
        workgroups_per_unit=workgroups,
        mode=mode,
    )
