"""What the captured launch writes, by the arguments that lead there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture
from rpl_vmreplay.capture.layout import KERNARG
from rpl_vmreplay.capture.records import Argument
from rpl_vmreplay.compare.data_types import (
    UNKNOWN,
    DataType,
    Element,
    element_of,
    parameter_elements,
)
from rpl_vmreplay.interfaces.replayer import MemoryRange
from rpl_vmreplay.replay.captured_code import captured_code

if TYPE_CHECKING:
    from rpl_codeobject.values import KernelArgument
    from rpl_vmreplay.capture.accesses import Ranges

_POINTER_BYTES = 8


@frozen
class Output:
    """Written bytes behind one pointer. ``argument`` is its name, ``None`` where no argument leads there."""

    argument: str | None
    base: int
    kind: DataType
    ranges: tuple[MemoryRange, ...]
    element: Element = UNKNOWN  # integers too, where whole ones were written

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
    element: Element


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


def is_record(output: Output) -> bool:
    """Its elements are known, so that they can change their places."""
    return output.kind is not DataType.BYTES or output.element.signed is not None


def as_set(outputs: Sequence[tuple[Output, bytes]]) -> bytes:
    """Records in an order of their own: of outputs with as many elements together, so that what belongs
    together stays together."""
    import numpy as np

    found = []
    rows: dict[int, list[Any]] = {}
    for output, content in outputs:
        size = max(output.element.record, output.element.size)
        size = size if len(content) % size == 0 else output.element.size
        table = np.frombuffer(content, np.uint8).reshape(-1, size)
        rows.setdefault(len(table), []).append(table)
    for count in sorted(rows):
        table = np.ascontiguousarray(np.hstack(rows[count]))
        found.append(np.sort(table.view(f"S{table.shape[1]}").ravel()).tobytes())
    return b"".join(found)


def name_of(output: Output) -> str:
    return f"values behind {output.argument}" if output.argument else f"bytes at 0x{output.base:x}"


def _output(base: int, owner: _Pointer | None, ranges: list[MemoryRange], unknown: DataType) -> Output:
    element = owner.element if owner else element_of(unknown)
    size = element.size
    if not all((one.address - base) % size == 0 and one.size % size == 0 for one in ranges):
        element = UNKNOWN
    return Output(owner.name if owner else None, base, element.kind, tuple(ranges), element)


def _pointers(capture: Capture, unknown: DataType) -> Iterator[_Pointer]:
    """Arguments that are addresses of captured memory."""
    extras = capture.extras
    arguments: Sequence[Argument | KernelArgument] = (extras and extras.kernel.arguments) or ()
    if not arguments:  # other tools leave it to the code object to tell them
        arguments = captured_code(capture).kernel.arguments
    kernarg = (capture.folder / KERNARG).read_bytes()
    types = parameter_elements(capture.dispatch.demangled_name)
    explicit = [one for one in arguments if not one.value_kind.startswith("hidden_")]
    for index, argument in enumerate(explicit):
        if argument.size != _POINTER_BYTES or argument.offset + _POINTER_BYTES > len(kernarg):
            continue
        address = int.from_bytes(kernarg[argument.offset : argument.offset + _POINTER_BYTES], "little")
        if not any(region.base <= address < region.end for region in capture.regions):
            continue
        told = types[index] if len(types) == len(explicit) else None
        yield _Pointer(argument.name or f"argument {index}", address, told or element_of(unknown))
