"""What a kernel costs: LDS, scratch, spills, registers, occupancy.

Occupancy alone misleads: when registers run out the compiler spills to scratch and occupancy goes up
again, so spills and scratch are regressions of their own whatever the occupancy says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_codeobject.comparing.difference import Difference, Severity
from rpl_codeobject.occupancy import compiled_occupancy
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_codeobject.occupancy import LaunchAssumption, LaunchedKernel
    from rpl_codeobject.values import Kernel
    from rpl_core.model.architecture import Architecture

_COSTS = {
    "lds_bytes": "more LDS per workgroup",
    "scratch_bytes": "more scratch per work-item: registers or arrays went to memory",
    "vgpr_spills": "more vector registers spilled",
    "sgpr_spills": "more scalar registers spilled",
}
_COUNTS = ("vgprs", "agprs", "sgprs")


@frozen
class ResourceDifferences:
    """``unknown`` says which comparison could not be made and why."""

    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]


def same_launch(
    before: Kernel, after: Kernel, architecture: str, launch: LaunchAssumption
) -> tuple[LaunchedKernel, LaunchedKernel]:
    """Both builds with one workgroup size, else a changed limit would pass for a changed occupancy."""
    size = launch.workgroup_size or min(before.max_workgroup_size, after.max_workgroup_size)
    shape = attrs.evolve(launch, workgroup_size=size)
    return shape.of(before, architecture), shape.of(after, architecture)


def resource_differences(
    launches: tuple[LaunchedKernel, LaunchedKernel], architecture: Architecture | None
) -> ResourceDifferences:
    """Regressions and plain changes between two builds of one kernel, both in the same launch."""
    before, after = (launched.kernel for launched in launches)
    differences: list[Difference] = []
    unknown: list[str] = []
    for what, reason in _COSTS.items():
        old, new = getattr(before, what), getattr(after, what)
        if old is None or new is None:
            unknown.append(f"{before.symbol}: {what} is not recorded")
        elif old != new:
            severity = Severity.REGRESSION if new > old else Severity.INFORMATION
            text = reason if new > old else f"{what} shrank"
            differences.append(Difference(severity, before.symbol, what, str(old), str(new), text))
    for what in _COUNTS:
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            text = "register use changed"
            differences.append(
                Difference(Severity.INFORMATION, before.symbol, what, str(old), str(new), text)
            )
    if after.max_workgroup_size > before.max_workgroup_size:
        differences.append(_larger_workgroups(before, after))
    _compare_occupancy(launches, architecture, differences, unknown)
    return ResourceDifferences(tuple(differences), tuple(unknown))


def _larger_workgroups(before: Kernel, after: Kernel) -> Difference:
    return Difference(
        Severity.INFORMATION,
        before.symbol,
        "max_workgroup_size",
        str(before.max_workgroup_size),
        str(after.max_workgroup_size),
        "larger workgroups are permitted",
    )


def _compare_occupancy(
    launches: tuple[LaunchedKernel, LaunchedKernel],
    architecture: Architecture | None,
    differences: list[Difference],
    unknown: list[str],
) -> None:
    symbol, size = launches[0].kernel.symbol, launches[0].workgroup_size
    old, new = (compiled_occupancy(launched, architecture) for launched in launches)
    for side in (old, new):
        if side.waves_per_simd is None:
            unknown.append(f"{symbol}: occupancy: {side.reason}")
            return
    assert old.waves_per_simd is not None
    assert new.waves_per_simd is not None
    if old.waves_per_simd != new.waves_per_simd:
        fell = new.waves_per_simd < old.waves_per_simd
        differences.append(
            Difference(
                Severity.REGRESSION if fell else Severity.INFORMATION,
                symbol,
                "occupancy_waves_per_simd",
                str(old.waves_per_simd),
                str(new.waves_per_simd),
                f"occupancy {'fell' if fell else 'rose'} at {size} work-items per workgroup "
                f"(limited by {new.limiter})",
            )
        )
