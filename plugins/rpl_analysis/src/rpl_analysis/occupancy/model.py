"""Theoretical occupancy: how many waves of one launch fit on a SIMD at once, and what stops the next one.

Formula: LLVM's (``AMDGPUBaseInfo``, ``getOccupancyWithWorkGroupSizes``), reproduced on every fact of the
clang 22.1.8 sweep. Whole workgroups are placed and the fullest SIMD counts: three 9-wave workgroups give 7
waves per SIMD (27 waves on 4 SIMDs). Spills are not seen here: a spilling kernel may show a high figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.occupancy.launch import round_down
from rpl_analysis.occupancy.refusal import refusal
from rpl_analysis.occupancy.resources import (
    lds_waves,
    resolve,
    sgpr_waves,
    vgpr_waves,
    workgroup_waves,
    workgroups_per_unit,
)
from rpl_analysis.occupancy.result import NoOccupancy, Occupancy, ResourceLimits, Threshold

if TYPE_CHECKING:
    from rpl_analysis.occupancy.launch import AllocatedRegisters, LaunchShape, UsedRegisters
    from rpl_analysis.occupancy.resources import Request
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
        next_threshold=_next_thresholds(request, per_resource, waves),
        workgroups_per_unit=workgroups,
        mode=mode,
        wave_size=launch.wave_size,
    )


def _next_thresholds(request: Request, limits: ResourceLimits, waves: int) -> tuple[Threshold, ...]:
    """One entry per resource that leaves no more than ``waves``; they must all be met together."""
    if waves >= limits.wave_slots:
        return ()
    thresholds: list[Threshold] = []
    if limits.vgpr == waves:
        at_most = round_down(request.file.registers // (waves + 1), request.file.granule)
        thresholds.append(Threshold(resource="vgpr", current=request.vector_registers, at_most=at_most))
    if limits.sgpr == waves:
        thresholds.append(_sgpr_threshold(request, waves))
    # A smaller workgroup also shares LDS among fewer waves, so the LDS entry is for the size it ends up with.
    fitting = _fitting_workgroup(request, waves) if limits.workgroup == waves else request
    if fitting is not request:
        thresholds.append(
            Threshold(resource="workgroup", current=request.workgroup_size, at_most=fitting.workgroup_size)
        )
    if lds_waves(fitting) <= waves:
        thresholds.append(_lds_threshold(fitting, waves))
    return tuple(thresholds)


def _sgpr_threshold(request: Request, waves: int) -> Threshold:
    file = request.limits.scalar_file
    assert file is not None, "only a shared scalar file can limit"
    if request.mode == "llvm" and file.compiler_waves:
        at_most = max(most for most, possible in file.compiler_waves if possible > waves)
    else:
        at_most = round_down(file.registers // (waves + 1), file.granule)
    return Threshold(resource="sgpr", current=request.sgprs, at_most=at_most)


def _fitting_workgroup(request: Request, waves: int) -> Request:
    """The request with the largest workgroup that gains a wave, or as it is where no smaller one does."""
    wave_size = request.file.wave_size
    smaller = (
        attrs.evolve(request, workgroup_size=count * wave_size)
        for count in range(request.waves_per_workgroup - 1, 0, -1)
    )
    return next((one for one in smaller if workgroup_waves(one) > waves), request)


def _lds_threshold(request: Request, waves: int) -> Threshold:
    # ceil(groups * waves_per_workgroup / simds) > waves  <=>  groups > waves * simds / waves_per_workgroup
    groups = waves * request.simds // request.waves_per_workgroup + 1
    at_most = round_down(request.lds_bytes_per_unit // groups, request.lds_granule_bytes)
    return Threshold(resource="lds", current=request.lds_bytes, at_most=at_most)
