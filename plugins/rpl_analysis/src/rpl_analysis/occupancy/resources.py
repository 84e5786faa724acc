"""One request in the units of the device, and the waves per SIMD that each resource alone leaves it.

The unit is a CU, or outside CU mode a workgroup processor of several CUs where the device has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.occupancy.launch import round_up
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.occupancy.launch import AllocatedRegisters, LaunchShape, UsedRegisters
    from rpl_analysis.occupancy.result import Mode
    from rpl_core.model.architecture import OccupancyLimits, RegisterFile

__all__ = [
    "Request",
    "lds_waves",
    "resolve",
    "sgpr_waves",
    "vgpr_waves",
    "workgroup_waves",
    "workgroups_per_unit",
]


@frozen(kw_only=True)
class Request:
    """A request that ``refusal`` let pass; ``simds``, ``lds_bytes_per_unit`` and slots are the unit's."""

    limits: OccupancyLimits
    mode: Mode
    file: RegisterFile
    vector_registers: int
    sgprs: int
    lds_bytes: int
    workgroup_size: int
    simds: int
    lds_bytes_per_unit: int
    workgroup_slots: int

    @property
    def wave_slots(self) -> int:
        """Waves that the unit can hold at the architectural maximum."""
        return self.limits.waves_per_simd * self.simds

    @property
    def waves_per_workgroup(self) -> int:
        """Waves of one workgroup, the last one perhaps partly filled."""
        return -(-self.workgroup_size // self.file.wave_size)

    @property
    def lds_granule_bytes(self) -> int:
        """Allocation step of LDS; clang 22 divides by the unrounded size."""
        return self.limits.lds_granule_bytes if self.mode == "hardware" else 1


def resolve(
    limits: OccupancyLimits,
    registers: UsedRegisters | AllocatedRegisters,
    launch: LaunchShape,
    mode: Mode,
) -> Request:
    """The request in the units of the device. Call only when ``refusal`` gave None."""
    file = limits.register_file(launch.wave_size)
    vector_registers = registers.vector_registers(limits)
    assert file is not None
    assert vector_registers is not None
    assert launch.lds_bytes is not None
    cus = 1 if launch.cumode else limits.cus_per_workgroup_processor
    return Request(
        limits=limits,
        mode=mode,
        file=file,
        vector_registers=vector_registers,
        sgprs=registers.sgprs or 0,
        lds_bytes=launch.lds_bytes,
        workgroup_size=launch.workgroup_size,
        simds=limits.simds_per_cu * cus,
        lds_bytes_per_unit=limits.lds_bytes_per_cu * cus,
        workgroup_slots=limits.workgroup_slots_per_cu * cus,
    )


def vgpr_waves(request: Request) -> int:
    """``min(W, max(1, T div roundup(max(n, 1), G)))``."""
    allocated = round_up(max(request.vector_registers, 1), request.file.granule)
    return min(request.limits.waves_per_simd, max(1, request.file.registers // allocated))


def sgpr_waves(request: Request) -> int:
    """The compiler's table in ``llvm`` mode, the scalar file in steps of its granule in ``hardware`` mode."""
    file = request.limits.scalar_file
    if file is None:
        return request.limits.waves_per_simd
    if request.mode == "llvm" and file.compiler_waves:
        fitting = (waves for most, waves in file.compiler_waves if request.sgprs <= most)
        return next(fitting, file.compiler_waves[-1][1])
    allocated = round_up(max(request.sgprs, 1), file.granule)
    return min(request.limits.waves_per_simd, max(1, file.registers // allocated))


def lds_waves(request: Request) -> int:
    """Waves of the fullest SIMD when only LDS bounds the number of workgroups."""
    if request.lds_bytes == 0:
        return request.limits.waves_per_simd
    return _waves_of_workgroups(request, _workgroups_in_lds(request))


def workgroup_waves(request: Request) -> int:
    """Waves of the fullest SIMD when only wave slots and workgroup slots bound the number of workgroups."""
    return _waves_of_workgroups(request, _workgroups_in_slots(request))


def workgroups_per_unit(request: Request) -> int:
    """Whole workgroups that fit with every resource counted; 0 when the registers do not hold one."""
    by_registers = (
        min(vgpr_waves(request), sgpr_waves(request)) * request.simds // request.waves_per_workgroup
    )
    in_lds = _workgroups_in_lds(request) if request.lds_bytes else by_registers
    return min(by_registers, in_lds, _workgroups_in_slots(request))


def _workgroups_in_lds(request: Request) -> int:
    return request.lds_bytes_per_unit // round_up(request.lds_bytes, request.lds_granule_bytes)


def _workgroups_in_slots(request: Request) -> int:
    by_waves = request.wave_slots // request.waves_per_workgroup
    # Where a workgroup of one wave needs no barrier, it takes no workgroup slot.
    free = request.waves_per_workgroup == 1 and not request.limits.slot_per_wave
    return by_waves if free else min(by_waves, request.workgroup_slots)


def _waves_of_workgroups(request: Request, workgroups: int) -> int:
    waves = max(1, workgroups) * request.waves_per_workgroup
    return min(request.limits.waves_per_simd, -(-waves // request.simds))
