"""What must shrink, and to what, for one more wave per SIMD."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.occupancy.resources import lds_waves, workgroup_waves
from rpl_analysis.occupancy.result import Threshold
from rpl_analysis.occupancy.rounding import round_down

if TYPE_CHECKING:
    from rpl_analysis.occupancy.resources import Request
    from rpl_analysis.occupancy.result import ResourceLimits

__all__ = ["next_thresholds"]


def next_thresholds(request: Request, limits: ResourceLimits, waves: int) -> tuple[Threshold, ...]:
    """One entry per resource that leaves no more than ``waves``; they must all be met together."""
    if waves >= limits.wave_slots:
        return ()
    found: list[Threshold] = []
    if limits.vgpr == waves:
        at_most = round_down(request.file.registers // (waves + 1), request.file.granule)
        found.append(Threshold(resource="vgpr", current=request.vector_registers, at_most=at_most))
    if limits.sgpr == waves:
        found.append(_sgpr_threshold(request, waves))
    # A smaller workgroup also shares LDS among fewer waves, so the LDS entry is for the size it ends up with.
    fitting = _fitting_workgroup(request, waves) if limits.workgroup == waves else request
    if fitting is not request:
        found.append(
            Threshold(resource="workgroup", current=request.workgroup_size, at_most=fitting.workgroup_size)
        )
    if lds_waves(fitting) <= waves:
        found.append(_lds_threshold(fitting, waves))
    return tuple(found)


def _sgpr_threshold(request: Request, waves: int) -> Threshold:
    file = request.limits.scalar_file
    assert file is not None, "only a shared scalar file can limit"
    if request.mode == "llvm" and file.compiler_waves:
        at_most = max(most for most, possible in file.compiler_waves if possible > waves)
    else:
        at_most = round_down(file.registers // (waves + 1), file.granule)
    return Threshold(resource="sgpr", current=request.sgprs, at_most=at_most)


def _fitting_workgroup(request: Request, waves: int) -> Request:
    """The request with the largest workgroup that gains a wave; single-wave workgroups always do."""
    wave_size = request.file.wave_size
    return next(
        smaller
        for count in range(request.waves_per_workgroup - 1, 0, -1)
        if workgroup_waves(smaller := attrs.evolve(request, workgroup_size=count * wave_size)) > waves
    )


def _lds_threshold(request: Request, waves: int) -> Threshold:
    # ceil(groups * waves_per_workgroup / simds) > waves  <=>  groups > waves * simds / waves_per_workgroup
    groups = waves * request.simds // request.waves_per_workgroup + 1
    at_most = round_down(request.lds_bytes_per_unit // groups, request.lds_granule_bytes)
    return Threshold(resource="lds", current=request.lds_bytes, at_most=at_most)
