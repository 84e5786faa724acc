"""What the captured launch writes, by the arguments that lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_vmreplay.capture.files import KERNARG
from rpl_vmreplay.compare.data_types import DataType, parameter_types
from rpl_vmreplay.interfaces.replayer import MemoryRange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.capture.ranges import Ranges

_POINTER_BYTES = 8


@frozen
class Output:
    """Written bytes behind one pointer. ``argument`` is its name, ``None`` where no argument leads there."""

    argument: str | None
    base: int
    kind: DataType
    ranges: tuple[MemoryRange, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.ranges)

    def address_of(self, element: int) -> int:
        offset = element * self.kind.size
        for one in self.ranges:
            if offset < one.size:
                return one.address + offset
            offset -= one.size
        raise IndexError(element)


@frozen
class _Pointer:
    name: str
    address: int
    kind: DataType


def outputs_of(capture: Capture, written: Ranges, unknown: DataType) -> tuple[Output, ...]:
    """``unknown`` is the type of what the kernel's name and metadata tell nothing about."""
    pointers = sorted(_pointers(capture, unknown), key=lambda one: one.address)
    found: dict[tuple[int, int], list[MemoryRange]] = {}
    owners: dict[tuple[int, int], _Pointer | None] = {}
    for one in written:
        region = next((r for r in capture.regions if r.base <= one.address < r.end), None)
        base = region.base if region else one.address
        owner = next((p for p in reversed(pointers) if base <= p.address <= one.address), None)
        key = (base, owner.address if owner else base)
        owners[key] = owner
        found.setdefault(key, []).append(one)
    return tuple(_output(key[1], owners[key], ranges, unknown) for key, ranges in found.items())


def variable_output(name: str, content: bytes, unknown: DataType) -> Output:
    """A variable of the module: places are counted from its own begin, since each code has it elsewhere."""
    kind = unknown if len(content) % unknown.size == 0 else DataType.BYTES
    return Output(f"variable {name}", 0, kind, (MemoryRange(0, len(content)),))


def _output(base: int, owner: _Pointer | None, ranges: list[MemoryRange], unknown: DataType) -> Output:
    kind = owner.kind if owner else unknown
    whole = all((one.address - base) % kind.size == 0 and one.size % kind.size == 0 for one in ranges)
    return Output(owner.name if owner else None, base, kind if whole else DataType.BYTES, tuple(ranges))


def _pointers(capture: Capture, unknown: DataType) -> Iterator[_Pointer]:
    """Arguments that are addresses of captured memory."""
    arguments = None if capture.extras is None else capture.extras.kernel.arguments
    kernarg = (capture.folder / KERNARG).read_bytes()
    types = parameter_types(capture.dispatch.demangled_name)
    explicit = [one for one in arguments or () if not one.value_kind.startswith("hidden_")]
    for index, argument in enumerate(explicit):
        if argument.size != _POINTER_BYTES or argument.offset + _POINTER_BYTES > len(kernarg):
            continue
        address = int.from_bytes(kernarg[argument.offset : argument.offset + _POINTER_BYTES], "little")
        if not any(region.base <= address < region.end for region in capture.regions):
            continue
        told = types[index] if len(types) == len(explicit) else unknown
        yield _Pointer(argument.name or f"argument {index}", address, told or unknown)
