"""What a kernel asks of a compute unit: registers in either of two forms, LDS, workgroup size, wave size.

Holds the inputs only. Which requests are impossible is ``refusal``'s, how many waves fit ``resources``'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.model.architecture import OccupancyLimits

__all__ = ["AllocatedRegisters", "LaunchShape", "UsedRegisters", "round_down", "round_up"]


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
        return round_up(self.arch_vgprs, limits.accum_offset_step) + self.accum_vgprs


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


def round_up(value: int, step: int) -> int:
    """The smallest multiple of ``step`` that is not below ``value``."""
    return -(-value // step) * step


def round_down(value: int, step: int) -> int:
    """The largest multiple of ``step`` that is not above ``value``."""
    return value // step * step
