"""Compare two builds of a program kernel by kernel: ABI first, then resources."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rpl_codeobject.comparing.abi import abi_differences
from rpl_codeobject.comparing.difference import AbiDiff, Difference, Severity
from rpl_codeobject.comparing.resources import resource_differences, same_launch
from rpl_codeobject.occupancy import ArchitectureOf, LaunchAssumption

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rpl_codeobject.values import CodeObject, Kernel

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
