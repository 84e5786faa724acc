"""Theoretical occupancy: how many waves of one launch fit on a SIMD at once, and what stops the next one.

The facts of an architecture, registers in use or as allocated and the launch's shape go in; an ``Occupancy``
or the reason for having none comes out (``theoretical_occupancy``). ``compiled_occupancy`` asks for a kernel
by what its code object states.

Formula: LLVM's (``AMDGPUBaseInfo``, ``getOccupancyWithWorkGroupSizes``), reproduced on every fact of the
clang 22.1.8 sweep. Whole workgroups are placed and the fullest SIMD counts: three 9-wave workgroups give 7
waves per SIMD (27 waves on 4 SIMDs). Spills are not seen here: a spilling kernel may show a high figure.
The unit of counting is a CU, or outside CU mode a workgroup processor of several CUs where there are such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs

from rpl_codeobject.kernel_code import Kernel
from rpl_core.errors import BadDataError, RplError
from rpl_core.model.device import Architecture, OccupancyLimits, RegisterFile
from rpl_core.values import frozen

__all__ = [
    "AllocatedRegisters",
    "ArchitectureOf",
    "CodeOccupancy",
    "LaunchAssumption",
    "LaunchShape",
    "LaunchedKernel",
    "Limiter",
    "Mode",
    "NoOccupancy",
    "Occupancy",
    "ResourceLimits",
    "Threshold",
    "UsedRegisters",
    "compiled_occupancy",
    "theoretical_occupancy",
    "used_registers",
]


# ------------------------------------------------------------------ what goes in


def _not_negative(instance: object, attribute: attrs.Attribute[int | None], value: int | None) -> None:
    if value is not None and value < 0:
        raise BadDataError(
            f"{type(instance).__name__}.{attribute.name} is {value}: a count can't be negative"
        )


def _at_least_one(instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 1:
        raise BadDataError(f"{type(instance).__name__}.{attribute.name} is {value}: it must be at least 1")


@frozen(kw_only=True)
class UsedRegisters:
    """Registers per wave as a code object's metadata counts them.

    ``sgprs`` is the total with VCC and its kin (``.sgpr_count``). Where ``.vgpr_count`` covers AGPRs too,
    ``arch_vgprs`` is ``.vgpr_count - .agpr_count``. None means unknown, not zero.
    """

    arch_vgprs: int | None = attrs.field(validator=_not_negative)
    accum_vgprs: int | None = attrs.field(validator=_not_negative)
    sgprs: int | None = attrs.field(validator=_not_negative)

    def vector_registers(self, limits: OccupancyLimits) -> int | None:
        """Registers of the vector file in use, before rounding to the granule; None if unknown."""
        if self.arch_vgprs is None:
            return None
        if not limits.has_accum_vgprs:
            return self.arch_vgprs
        if self.accum_vgprs is None:
            return None
        if self.accum_vgprs == 0:
            return self.arch_vgprs
        return _round_up(self.arch_vgprs, limits.accum_offset_step) + self.accum_vgprs


@frozen(kw_only=True)
class AllocatedRegisters:
    """Registers per wave as dispatch records give them: arch + accum is the allocation, granule included.

    A record of a kernel without AGPRs may still show some (4 + 4 for one using 4 VGPRs): the sum counts, the
    parts say nothing about use. None means unknown, which is not zero.
    """

    arch_vgprs: int | None = attrs.field(validator=_not_negative)
    accum_vgprs: int | None = attrs.field(validator=_not_negative)
    sgprs: int | None = attrs.field(validator=_not_negative)

    def vector_registers(self, limits: OccupancyLimits) -> int | None:
        """Registers of the vector file allocated; None if a part that counts is unknown."""
        if self.arch_vgprs is None:
            return None
        if not limits.has_accum_vgprs:
            return self.arch_vgprs
        return None if self.accum_vgprs is None else self.arch_vgprs + self.accum_vgprs


@frozen(kw_only=True)
class LaunchShape:
    """One launch: work-items and LDS bytes (static plus dynamic) per workgroup, wave size, CU mode.

    ``cumode`` keeps a workgroup inside one CU of a workgroup processor (``-mcumode``; LLVM's default is
    off); devices without such processors ignore it.
    """

    workgroup_size: int = attrs.field(validator=_at_least_one)
    lds_bytes: int | None = attrs.field(validator=_not_negative)
    wave_size: int = attrs.field(validator=_at_least_one)
    cumode: bool = False


def _round_up(value: int, step: int) -> int:
    """The smallest multiple of ``step`` that is not below ``value``."""
    return -(-value // step) * step


def _round_down(value: int, step: int) -> int:
    """The largest multiple of ``step`` that is not above ``value``."""
    return value // step * step


# ------------------------------------------------------------------ what comes out

#: ``hardware`` rounds LDS and SGPRs to the device's allocation steps; ``llvm`` repeats the compiler.
Mode = Literal["hardware", "llvm"]
#: ``workgroup``: whole workgroups leave wave slots empty. ``wave_slots``: the architectural maximum.
Limiter = Literal["vgpr", "sgpr", "lds", "workgroup", "wave_slots"]


@frozen(kw_only=True)
class ResourceLimits:
    """Waves per SIMD that each resource alone would leave."""

    vgpr: int
    sgpr: int
    lds: int
    workgroup: int
    wave_slots: int

    def lowest(self) -> tuple[Limiter, int]:
        """The tightest resource and its waves; a tie goes to the first in field order.

        ``wave_slots`` is named only when nothing else is below the architectural maximum.
        """
        ordered: tuple[tuple[Limiter, int], ...] = (
            ("vgpr", self.vgpr),
            ("sgpr", self.sgpr),
            ("lds", self.lds),
            ("workgroup", self.workgroup),
        )
        limiter, waves = min(ordered, key=lambda entry: entry[1])
        return (limiter, waves) if waves < self.wave_slots else ("wave_slots", self.wave_slots)


@frozen(kw_only=True)
class Threshold:
    """``resource`` holds ``current`` now and must come down to ``at_most`` for one more wave per SIMD.

    Units: vector registers per wave (arch + AGPR as laid out) for ``vgpr``, SGPRs per wave for ``sgpr``,
    bytes per workgroup for ``lds``, work-items for ``workgroup`` (with the same LDS per workgroup).
    """

    resource: Limiter
    current: int
    at_most: int


@frozen(kw_only=True)
class Occupancy:
    """Occupancy of one launch; ``fraction`` is ``waves_per_simd / max_waves_per_simd``, in 0..1.

    ``next_threshold`` lists what must shrink, all of it together, for one more wave; it is empty at the
    architectural maximum. ``workgroups_per_unit`` counts the whole workgroups that registers, LDS and slots
    admit on one CU (one WGP outside CU mode): with large workgroups it can leave fewer waves than
    ``waves_per_simd``, which bounds each resource by itself as the compiler does. ``wave_size`` is ``None``
    where it is unknown and makes no difference.
    """

    waves_per_simd: int
    max_waves_per_simd: int
    fraction: float
    limiter: Limiter
    limits: ResourceLimits
    next_threshold: tuple[Threshold, ...]
    workgroups_per_unit: int
    mode: Mode
    wave_size: int | None = None


@frozen
class NoOccupancy:
    """No figure, and why: an unknown count or a request that no compute unit could hold.

    ``between``: the least and the largest fraction, where only the wave size is unknown.
    """

    reason: str
    between: tuple[float, float] | None = None


# ------------------------------------------------------------------ the answer


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
    reason = _refusal(architecture, registers, launch)
    if reason is not None:
        return NoOccupancy(reason)
    limits = architecture.occupancy
    assert limits is not None  # or refused
    request = _resolve(limits, registers, launch, mode)
    # Whole workgroups that fit with every resource counted; 0 when the registers do not hold one.
    by_registers = (
        min(_vgpr_waves(request), _sgpr_waves(request)) * request.simds // request.waves_per_workgroup
    )
    in_lds = _workgroups_in_lds(request) if request.lds_bytes else by_registers
    workgroups = min(by_registers, in_lds, _workgroups_in_slots(request))
    if workgroups == 0 and mode == "hardware":
        return NoOccupancy(
            f"{request.vector_registers} vector registers per wave leave no room for one workgroup of "
            f"{request.waves_per_workgroup} waves on {architecture.name}"
        )
    per_resource = ResourceLimits(
        vgpr=_vgpr_waves(request),
        sgpr=_sgpr_waves(request),
        lds=_lds_waves(request),
        workgroup=_workgroup_waves(request),
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


# ------------------------------------------------------------------ requests that nothing can hold


def _refusal(
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
    if registers.arch_vgprs > _round_up(limits.encodable_vgprs, file.granule):
        return f"{registers.arch_vgprs} arch VGPRs exceed the {limits.encodable_vgprs} that a wave can name"
    if not limits.has_accum_vgprs and registers.accum_vgprs:
        return f"{registers.accum_vgprs} AGPRs recorded, but {name} has none"
    total = registers.vector_registers(limits)
    if total is None:
        return "AGPR count is unknown"
    if total > _round_up(file.most_used, file.granule):
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


# ------------------------------------------------------------------ what each resource alone leaves


@frozen(kw_only=True)
class _Request:
    """A request that ``_refusal`` let pass; ``simds``, ``lds_bytes_per_unit`` and slots are the unit's."""

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


def _resolve(
    limits: OccupancyLimits,
    registers: UsedRegisters | AllocatedRegisters,
    launch: LaunchShape,
    mode: Mode,
) -> _Request:
    """The request in the units of the device. Call only when ``_refusal`` gave None."""
    file = limits.register_file(launch.wave_size)
    vector_registers = registers.vector_registers(limits)
    assert file is not None
    assert vector_registers is not None
    assert launch.lds_bytes is not None
    cus = 1 if launch.cumode else limits.cus_per_workgroup_processor
    return _Request(
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


def _vgpr_waves(request: _Request) -> int:
    """``min(W, max(1, T div roundup(max(n, 1), G)))``."""
    allocated = _round_up(max(request.vector_registers, 1), request.file.granule)
    return min(request.limits.waves_per_simd, max(1, request.file.registers // allocated))


def _sgpr_waves(request: _Request) -> int:
    """The compiler's table in ``llvm`` mode, the scalar file in steps of its granule in ``hardware`` mode."""
    file = request.limits.scalar_file
    if file is None:
        return request.limits.waves_per_simd
    if request.mode == "llvm" and file.compiler_waves:
        fitting = (waves for most, waves in file.compiler_waves if request.sgprs <= most)
        return next(fitting, file.compiler_waves[-1][1])
    allocated = _round_up(max(request.sgprs, 1), file.granule)
    return min(request.limits.waves_per_simd, max(1, file.registers // allocated))


def _lds_waves(request: _Request) -> int:
    """Waves of the fullest SIMD when only LDS bounds the number of workgroups."""
    if request.lds_bytes == 0:
        return request.limits.waves_per_simd
    return _waves_of_workgroups(request, _workgroups_in_lds(request))


def _workgroup_waves(request: _Request) -> int:
    """Waves of the fullest SIMD when only wave slots and workgroup slots bound the number of workgroups."""
    return _waves_of_workgroups(request, _workgroups_in_slots(request))


def _workgroups_in_lds(request: _Request) -> int:
    return request.lds_bytes_per_unit // _round_up(request.lds_bytes, request.lds_granule_bytes)


def _workgroups_in_slots(request: _Request) -> int:
    by_waves = request.wave_slots // request.waves_per_workgroup
    # Where a workgroup of one wave needs no barrier, it takes no workgroup slot.
    free = request.waves_per_workgroup == 1 and not request.limits.slot_per_wave
    return by_waves if free else min(by_waves, request.workgroup_slots)


def _waves_of_workgroups(request: _Request, workgroups: int) -> int:
    waves = max(1, workgroups) * request.waves_per_workgroup
    return min(request.limits.waves_per_simd, -(-waves // request.simds))


# ------------------------------------------------------------------ what must shrink for one more wave


def _next_thresholds(request: _Request, limits: ResourceLimits, waves: int) -> tuple[Threshold, ...]:
    """One entry per resource that leaves no more than ``waves``; they must all be met together."""
    if waves >= limits.wave_slots:
        return ()
    thresholds: list[Threshold] = []
    if limits.vgpr == waves:
        at_most = _round_down(request.file.registers // (waves + 1), request.file.granule)
        thresholds.append(Threshold(resource="vgpr", current=request.vector_registers, at_most=at_most))
    if limits.sgpr == waves:
        thresholds.append(_sgpr_threshold(request, waves))
    # A smaller workgroup also shares LDS among fewer waves, so the LDS entry is for the size it ends up with.
    fitting = _fitting_workgroup(request, waves) if limits.workgroup == waves else request
    if fitting is not request:
        thresholds.append(
            Threshold(resource="workgroup", current=request.workgroup_size, at_most=fitting.workgroup_size)
        )
    if _lds_waves(fitting) <= waves:
        thresholds.append(_lds_threshold(fitting, waves))
    return tuple(thresholds)


def _sgpr_threshold(request: _Request, waves: int) -> Threshold:
    file = request.limits.scalar_file
    assert file is not None, "only a shared scalar file can limit"
    if request.mode == "llvm" and file.compiler_waves:
        at_most = max(most for most, possible in file.compiler_waves if possible > waves)
    else:
        at_most = _round_down(file.registers // (waves + 1), file.granule)
    return Threshold(resource="sgpr", current=request.sgprs, at_most=at_most)


def _fitting_workgroup(request: _Request, waves: int) -> _Request:
    """The request with the largest workgroup that gains a wave, or as it is where no smaller one does."""
    wave_size = request.file.wave_size
    smaller = (
        attrs.evolve(request, workgroup_size=count * wave_size)
        for count in range(request.waves_per_workgroup - 1, 0, -1)
    )
    return next((size for size in smaller if _workgroup_waves(size) > waves), request)


def _lds_threshold(request: _Request, waves: int) -> Threshold:
    # ceil(groups * waves_per_workgroup / simds) > waves  <=>  groups > waves * simds / waves_per_workgroup
    groups = waves * request.simds // request.waves_per_workgroup + 1
    at_most = _round_down(request.lds_bytes_per_unit // groups, request.lds_granule_bytes)
    return Threshold(resource="lds", current=request.lds_bytes, at_most=at_most)


# ------------------------------------------------------------------ compiled kernels

#: What is known of an instruction set by its name; ``None`` where nobody knows it.
ArchitectureOf = Callable[[str], Architecture | None]


@frozen
class LaunchAssumption:
    """What the code object can't know. Without a workgroup size the largest permitted one is taken."""

    workgroup_size: int | None = None
    dynamic_lds_bytes: int = 0

    def of(self, kernel: Kernel, architecture: str) -> LaunchedKernel:
        return LaunchedKernel(
            kernel,
            architecture,
            self.workgroup_size or kernel.max_workgroup_size,
            kernel.lds_bytes + self.dynamic_lds_bytes,
        )


@frozen
class LaunchedKernel:
    """A compiled kernel in one launch: work-items per workgroup, LDS per workgroup with the dynamic part."""

    kernel: Kernel
    architecture: str
    workgroup_size: int
    lds_bytes: int


@frozen
class CodeOccupancy:
    """Waves per SIMD with what limits them, or ``None`` with the reason."""

    waves_per_simd: int | None
    limiter: str | None = None
    reason: str | None = None


def used_registers(kernel: Kernel, architecture: Architecture) -> UsedRegisters:
    """What the metadata of ``kernel`` counts; its VGPRs hold the AGPRs too where both share a file."""
    limits, agprs = architecture.occupancy, kernel.agprs or 0
    counts_agprs_too = limits is not None and limits.has_accum_vgprs
    arch_vgprs = kernel.vgprs - agprs if counts_agprs_too else kernel.vgprs
    return UsedRegisters(arch_vgprs=arch_vgprs, accum_vgprs=agprs, sgprs=kernel.sgprs)


def compiled_occupancy(launched: LaunchedKernel, architecture: Architecture | None) -> CodeOccupancy:
    """Waves per SIMD in hardware mode, or why there is no figure."""
    known = architecture or Architecture(name=launched.architecture)
    kernel = launched.kernel
    try:
        registers = used_registers(kernel, known)
        shape = LaunchShape(
            workgroup_size=launched.workgroup_size,
            lds_bytes=launched.lds_bytes,
            wave_size=kernel.wavefront_size,
        )
        answer = theoretical_occupancy(known, registers, shape)
    except RplError as error:  # counts that no device has
        return CodeOccupancy(None, reason=error.fact)
    if isinstance(answer, NoOccupancy):
        return CodeOccupancy(None, reason=answer.reason)
    return CodeOccupancy(answer.waves_per_simd, answer.limiter)
