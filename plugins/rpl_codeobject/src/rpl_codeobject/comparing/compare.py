"""Compare two builds of a program kernel by kernel: ABI first, then resources."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from rpl_codeobject.comparing.abi import abi_differences
from rpl_codeobject.comparing.difference import AbiDiff, Difference, Severity
from rpl_codeobject.occupancy import ArchitectureOf, LaunchAssumption, compiled_occupancy
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_codeobject.occupancy import LaunchedKernel
    from rpl_codeobject.values import CodeObject, Kernel
    from rpl_core.model.architecture import Architecture


# What a kernel costs: LDS, scratch, spills, registers, occupancy.


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


#: Target id, symbol, and the how-many-th of that name: translation units may repeat a symbol.
_Key = tuple[str, str, int]
_ORDER = (Severity.BREAKING, Severity.REGRESSION, Severity.INFORMATION)


def compare_code_objects(
    before: Iterable[CodeObject],
    after: Iterable[CodeObject],
    *,
    kernel: str | None = None,
    launch: LaunchAssumption | None = None,
    architecture_of: ArchitectureOf = lambda _: None,
) -> AbiDiff:
    """Differences of ``after`` against ``before``; ``kernel`` limits the comparison to one name or symbol.

    ``architecture_of`` knows the limits from which occupancies are counted.
    """
    old, new = _by_key(before, kernel), _by_key(after, kernel)
    launches = {
        key: same_launch(old[key], new[key], _architecture(key), launch or LaunchAssumption())
        for key in sorted(old.keys() & new.keys())
    }
    differences: list[Difference] = []
    unknown: list[str] = []
    for key in sorted(old.keys() | new.keys()):
        if key not in old or key not in new:
            differences.append(_one_sided(key, old.get(key)))
            continue
        differences += abi_differences(old[key], new[key])
        resources = resource_differences(launches[key], architecture_of(_architecture(key)))
        differences += resources.differences
        unknown += resources.unknown
    differences.sort(key=lambda d: _ORDER.index(d.severity))
    return AbiDiff(tuple(differences), len(launches), tuple(unknown))


def _architecture(key: _Key) -> str:
    return key[0].partition(":")[0].rpartition("-")[2]


def _by_key(objects: Iterable[CodeObject], name: str | None) -> dict[_Key, Kernel]:
    by_key: dict[_Key, Kernel] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for code_object in objects:
        for kernel in code_object.kernels:
            if name is not None and name not in {kernel.name, kernel.symbol}:
                continue
            place = (code_object.target, kernel.symbol)
            by_key[place + (seen[place],)] = kernel  # noqa: RUF005 - Python 3.10 has no star in an index
            seen[place] += 1
    return by_key


def _one_sided(key: _Key, before: Kernel | None) -> Difference:
    target, symbol, _ = key
    if before is not None:
        reason = f"the candidate has no {symbol} for {target}"
        return Difference(Severity.BREAKING, symbol, "kernel", "present", None, reason)
    reason = f"only the candidate has {symbol} for {target}"
    return Difference(Severity.INFORMATION, symbol, "kernel", None, "present", reason)
