"""What a host program relies on when it launches a kernel: any change here breaks its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_codeobject.comparing.difference import Difference, Severity

if TYPE_CHECKING:
    from rpl_codeobject.values import Kernel, KernelArgument

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
            differences.append(_breaking(before, what, _text(old), _text(new), reason))
    if after.max_workgroup_size < before.max_workgroup_size:
        reason = "launches with larger workgroups than the candidate permits would fail"
        differences.append(
            _breaking(
                before, "max_workgroup_size", before.max_workgroup_size, after.max_workgroup_size, reason
            )
        )
    if _stack(after) and not _stack(before):
        reason = "the runtime can't know the scratch size of a dynamic stack"
        differences.append(_breaking(before, "dynamic_stack", _text(_stack(before)), "True", reason))
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
        return [_breaking(before, "descriptor", _text(there), _text(here), reason)]
    differences = []
    for what in ("kernarg_bytes", "wavefront_size32"):
        old, new = getattr(before.descriptor, what), getattr(after.descriptor, what)
        if old != new:
            reason = "the packet processor would set up the wave otherwise"
            differences.append(_breaking(before, f"descriptor.{what}", _text(old), _text(new), reason))
    return differences


def _stack(kernel: Kernel) -> bool:
    # Note and descriptor both say it; either is enough.
    return bool(kernel.dynamic_stack) or (kernel.descriptor is not None and kernel.descriptor.dynamic_stack)


def _breaking(kernel: Kernel, what: str, before: object, after: object, reason: str) -> Difference:
    return Difference(Severity.BREAKING, kernel.symbol, what, _text(before), _text(after), reason)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
