"""What two builds of a program differ in: ABI first, then resources, then code that was to stay as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum

import attrs

from rpl_codeobject.disassembly import Instruction, disassemble_all
from rpl_codeobject.kernel_code import CodeObject, Kernel, KernelArgument
from rpl_codeobject.occupancy import ArchitectureOf, LaunchAssumption, LaunchedKernel, compiled_occupancy
from rpl_codeobject.reading.elf_file import exported_symbols
from rpl_core.model.device import Architecture
from rpl_core.text import counted
from rpl_core.values import frozen


class Severity(str, Enum):
    """``breaking``: the host's launches no longer fit. ``regression``: they fit and cost more."""

    BREAKING = "breaking"
    REGRESSION = "regression"
    INFORMATION = "information"


@frozen
class Difference:
    """``what`` names the compared property; both values as text, ``None`` where there is none."""

    severity: Severity
    kernel: str | None
    what: str
    before: str | None
    after: str | None
    reason: str


@frozen
class AbiDiff:
    """All differences, breaking ones first. ``compared`` counts the kernels found on both sides."""

    differences: tuple[Difference, ...]
    compared: int
    unknown: tuple[str, ...] = ()  # comparisons that could not be made, with the reason

    @property
    def compatible(self) -> bool:
        """Whether every launch that fits the baseline also fits the candidate."""
        return not self.of(Severity.BREAKING)

    def of(self, severity: Severity) -> tuple[Difference, ...]:
        return tuple(d for d in self.differences if d.severity is severity)


# What a host program relies on when it launches a kernel: any change here breaks its launches.

#: Property -> why a change breaks launches.
_FIXED = {
    "kernarg_bytes": "the host fills a kernarg segment of another size",
    "kernarg_align": "the host aligns the kernarg segment otherwise",
    "wavefront_size": "lane arithmetic and masks assume another wave size",
    "required_workgroup": "launches of the former workgroup shape would fail",
    "uniform_workgroups": "grids that the workgroup size does not divide would be treated otherwise",
    "workgroup_processor_mode": "workgroups would be placed otherwise, and LDS limits change",
}


def abi_differences(before: Kernel, after: Kernel) -> list[Difference]:
    """Breaking differences between two builds of one kernel."""
    differences = [*_arguments(before, after)]
    for what, reason in _FIXED.items():
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            differences.append(_breaking(before, what, _text_or_none(old), _text_or_none(new), reason))
    if after.max_workgroup_size < before.max_workgroup_size:
        reason = "launches with larger workgroups than the candidate permits would fail"
        differences.append(
            _breaking(
                before, "max_workgroup_size", before.max_workgroup_size, after.max_workgroup_size, reason
            )
        )
    if _stack(after) and not _stack(before):
        reason = "the runtime can't know the scratch size of a dynamic stack"
        differences.append(_breaking(before, "dynamic_stack", _text_or_none(_stack(before)), "True", reason))
    return differences + _descriptor(before, after)


def _arguments(before: Kernel, after: Kernel) -> list[Difference]:
    differences = []
    for what, hidden in (("arguments", False), ("hidden_arguments", True)):
        old = [a for a in before.arguments if a.hidden is hidden]
        new = [a for a in after.arguments if a.hidden is hidden]
        for index in range(max(len(old), len(new))):
            left = _slot(old[index]) if index < len(old) else None
            right = _slot(new[index]) if index < len(new) else None
            if left != right:
                reason = (
                    "the kernarg layout differs" if not hidden else "the runtime fills other hidden slots"
                )
                differences.append(_breaking(before, f"{what}[{index}]", left, right, reason))
    return differences


def _slot(argument: KernelArgument) -> str:
    # Names are left out: renaming a parameter changes no layout.
    space = f" {argument.address_space}" if argument.address_space else ""
    return f"offset {argument.offset}, {argument.size} bytes, {argument.value_kind}{space}"


def _descriptor(before: Kernel, after: Kernel) -> list[Difference]:
    if before.descriptor is None and after.descriptor is None:
        return []
    if before.descriptor is None or after.descriptor is None:
        there, here = before.descriptor is not None, after.descriptor is not None
        reason = "only one side has a kernel descriptor"
        return [_breaking(before, "descriptor", _text_or_none(there), _text_or_none(here), reason)]
    differences = []
    for what in ("kernarg_bytes", "wavefront_size32"):
        old, new = getattr(before.descriptor, what), getattr(after.descriptor, what)
        if old != new:
            reason = "the packet processor would set up the wave otherwise"
            differences.append(
                _breaking(before, f"descriptor.{what}", _text_or_none(old), _text_or_none(new), reason)
            )
    return differences


def _stack(kernel: Kernel) -> bool:
    # Note and descriptor both say it; either is enough.
    return bool(kernel.dynamic_stack) or (kernel.descriptor is not None and kernel.descriptor.dynamic_stack)


def _breaking(kernel: Kernel, what: str, before: object, after: object, reason: str) -> Difference:
    return Difference(
        Severity.BREAKING, kernel.symbol, what, _text_or_none(before), _text_or_none(after), reason
    )


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


# What a kernel costs: LDS, scratch, spills, registers, occupancy.


_COSTS = {
    "lds_bytes": "more LDS per workgroup",
    "scratch_bytes": "more scratch per work-item: registers or arrays went to memory",
    "vgpr_spills": "more vector registers spilled",
    "sgpr_spills": "more scalar registers spilled",
}
_COUNTS = ("vgprs", "agprs", "sgprs")
#: What a ``Difference`` of waves per SIMD is about.
OCCUPANCY = "occupancy_waves_per_simd"


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
        differences.append(
            Difference(
                Severity.INFORMATION,
                before.symbol,
                "max_workgroup_size",
                str(before.max_workgroup_size),
                str(after.max_workgroup_size),
                "larger workgroups are permitted",
            )
        )
    _compare_occupancy(launches, architecture, differences, unknown)
    return ResourceDifferences(tuple(differences), tuple(unknown))


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
                OCCUPANCY,
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


# What changed between two builds beside the kernel that was meant to: nothing may, or a launch breaks.
#
# The host finds kernels and variables by name when it runs, so one that is missing is no error of any
# compiler.


def other_code_changes(
    before: Sequence[CodeObject], after: Sequence[CodeObject], intended: Callable[[str], bool]
) -> tuple[str, ...]:
    """Sentences about what is missing or different in ``after`` although it is not ``intended``, by name.

    Compares code objects of one target in their order: symbols that the host can look up, machine code of
    every function, descriptors (but for where the code lies) and initial bytes of variables. What is new does
    no harm.
    """
    changes: list[str] = []
    for target in dict.fromkeys(code.target for code in before):
        old, new = ([code for code in codes if code.target == target] for codes in (before, after))
        if len(old) != len(new):
            changes.append(f"there are {counted(len(new), 'code object')} for {target}, not {len(old)}")
            continue
        for code, candidate in zip(old, new, strict=True):
            changes += _symbol_changes(code, candidate, intended)
            changes += _code_changes(code, candidate, intended)
    return tuple(dict.fromkeys(changes))


def position_free(code: Sequence[Instruction]) -> list[tuple[str, str]]:
    """The instructions without the distances to data, which move when another kernel grows.

    Such a distance is the literal of the two additions behind ``s_getpc_b64``.
    """
    shapes, relative = [], 0
    for instruction in code:
        operands = instruction.operands
        if relative and instruction.mnemonic in {"s_add_u32", "s_addc_u32"}:
            operands = operands.rpartition(",")[0]
        relative = 2 if instruction.mnemonic == "s_getpc_b64" else max(0, relative - 1)
        shapes.append((instruction.mnemonic, operands))
    return shapes


def _symbol_changes(before: CodeObject, after: CodeObject, intended: Callable[[str], bool]) -> Iterator[str]:
    new = exported_symbols(after)
    for name, symbol in exported_symbols(before).items():
        if name not in new:
            yield f"{name} is missing"
        elif symbol.content is not None and symbol != new[name] and not intended(name.removesuffix(".kd")):
            what = "the descriptor" if name.endswith(".kd") else "the initial value"
            yield f"{what} of {name.removesuffix('.kd')} changed"


def _code_changes(before: CodeObject, after: CodeObject, intended: Callable[[str], bool]) -> Iterator[str]:
    new = disassemble_all(after)
    for name, code in disassemble_all(before).items():
        # One that is gone was taken into its callers, whose code tells.
        if name in new and not intended(name) and position_free(code) != position_free(new[name]):
            yield f"the code of {name} changed"
