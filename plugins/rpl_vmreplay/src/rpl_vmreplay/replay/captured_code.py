"""The code of a launch: the captured kernel or one that takes its place, and pointers to it in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_vmreplay.capture.folder import Capture, blocks_with_data
from rpl_vmreplay.capture.layout import CODE_OBJECT, KERNARG
from rpl_vmreplay.interfaces import Failure, ReplayError

if TYPE_CHECKING:
    from rpl_codeobject.kernel_code import CodeObject, Kernel, KernelArgument
    from rpl_vmreplay.capture.plain_memory import PlainMemory


_WORD_BYTES = 8
_MOST = 1000
_MOST_NAMED = 3
_FUNCTION, _OBJECT = "STT_FUNC", "STT_OBJECT"


@frozen
class CodeImage:
    """The captured code object in the captured process: ``base`` is what its own addresses are added to."""

    base: int
    begin: int
    end: int
    executable: tuple[tuple[int, int], ...]
    #: Begin, size, type and name of each symbol with an address, ascending; empty in one that was stripped.
    symbols: tuple[tuple[int, int, str, str], ...]

    def name_of(self, address: int) -> str | None:
        """What lies at an address of the process; ``None`` where no pointer of a program leads."""
        offset = address - self.base
        inside = [symbol for symbol in self.symbols if symbol[0] <= offset < symbol[0] + max(symbol[1], 1)]
        in_code = any(begin <= offset < end for begin, end in self.executable)
        for begin, _, kind, name in inside:
            if kind == _FUNCTION and begin == offset:
                return f"the function {name}"
            if kind == _OBJECT and not in_code:
                return None if name.endswith(".kd") else f"the table {name}"
        if in_code and any(kind == _FUNCTION for _, _, kind, _ in self.symbols):
            return None  # in the middle of a function
        return f"the code object at +0x{offset:x}"


def image_of(capture: Capture, code: LaunchCode) -> CodeImage | None:
    """Where the captured code was; ``None`` where the capture does not tell."""
    import io

    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    elf = ELFFile(io.BytesIO(code.code.elf))
    loads = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
    places = [(load["p_vaddr"], load["p_vaddr"] + load["p_memsz"]) for load in loads]
    symbols = {
        (symbol["st_value"], symbol["st_size"], symbol["st_info"]["type"], symbol.name)
        for table in elf.iter_sections()
        if isinstance(table, SymbolTableSection)
        for symbol in table.iter_symbols()
        if symbol["st_info"]["type"] in (_FUNCTION, _OBJECT) and isinstance(symbol["st_shndx"], int)
    }
    base = None if capture.extras is None else capture.extras.code_object.load_base
    if base is None and capture.dispatch.kernel_object:
        descriptor = f"{capture.kernel_name}.kd"
        value_of_descriptor = next((value for value, _, _, name in symbols if name == descriptor), None)
        base = None if value_of_descriptor is None else capture.dispatch.kernel_object - value_of_descriptor
    if base is None or base < 0 or not places:
        return None
    executable = tuple(
        place
        for place, one in zip(places, loads, strict=True)
        if one["p_flags"] & 1  # PF_X
    )
    begin, end = min(first for first, _ in places), max(last for _, last in places)
    return CodeImage(base, begin, end, executable, tuple(sorted(symbols)))


def may_call_pointers(code: LaunchCode) -> bool:
    return code.kernel.dynamic_stack is not False


def code_pointers(memory: PlainMemory, image: CodeImage) -> tuple[str, ...]:
    """What pointers in captured memory, variables and arguments lead to, by name, each once."""
    variables = _variables(memory.capture)
    names = {
        name: None
        for address in islice(_words(memory, image), _MOST)
        if not any(begin <= address < end for begin, end in variables)
        and (name := image.name_of(address)) is not None
    }
    return tuple(names)


def _variables(capture: Capture) -> list[tuple[int, int]]:
    """Captured pointers to them lead to copies, wherever the code is."""
    told = () if capture.extras is None else capture.extras.module_variables
    return [
        (variable.address, variable.address + variable.size)
        for variable in told
        if variable.address is not None
    ]


def told_names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _words(memory: PlainMemory, image: CodeImage) -> Iterator[int]:
    """Values of aligned words that are addresses in the image, each once."""
    import numpy as np

    seen: set[int] = set()
    low, size = image.base + image.begin, image.end - image.begin
    for content in _contents(memory):
        words = np.frombuffer(content[: len(content) // _WORD_BYTES * _WORD_BYTES], np.uint64)
        inside = np.unique(words[words - np.uint64(low) < np.uint64(size)])
        for address in inside.tolist():
            if address not in seen:
                seen.add(address)
                yield address


def _contents(memory: PlainMemory) -> Iterator[bytes]:
    """Blocks of captured bytes, each from an address that is a multiple of a word's size."""
    capture = memory.capture
    yield (capture.folder / KERNARG).read_bytes()
    for variable in capture.variables:
        yield (capture.folder / variable.blob).read_bytes()
    for region in capture.regions:
        shift = -region.base % _WORD_BYTES
        for _, block in blocks_with_data(memory.path_of(region), region.size):
            yield block[shift:]  # blocks begin at multiples of their size


# The code of a launch: the kernel in the captured code object, or in one that takes its place.

#: Hidden arguments that lead to objects of the captured process
#: (https://llvm.org/docs/AMDGPUUsage.html, "Code Object V5 Metadata").
_STALE = frozenset({
    "hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_multigrid_sync_arg", "hidden_heap_v1",
    "hidden_default_queue", "hidden_completion_action", "hidden_queue_ptr",
})  # fmt: skip


#: Hidden arguments that the launch itself tells, and those that hold nothing (the same document).
_TOLD = frozenset({
    *(f"hidden_{what}_{axis}" for what in ("block_count", "group_size", "remainder", "global_offset")
      for axis in "xyz"),
    "hidden_grid_dims", "hidden_none",
})  # fmt: skip
#: What differs when the compiler leaves out hidden arguments that the kernel does not read, or adds some.
_OF_HIDDEN_ARGUMENTS = ("hidden_arguments[", "kernarg_bytes", "descriptor.kernarg_bytes")


@frozen
class LaunchCode:
    """A plain code object and the kernel of it."""

    code: CodeObject
    kernel: Kernel


def captured_code(capture: Capture) -> LaunchCode:
    """Raises BadDataError when the captured code object is none, or has no such kernel."""
    return _code_in(capture.folder / CODE_OBJECT, capture.kernel_name)


def other_code(capture: Capture, path: Path) -> LaunchCode:
    """What takes the place of the captured code. Raises BadDataError when launches of the captured kernel
    don't fit it, as `rpl abi-diff` judges."""
    from rpl_codeobject.comparing import Severity, compare_code_objects

    name = capture.kernel_name
    before, after = captured_code(capture), _code_in(path, name)
    breaking = compare_code_objects([before.code], [after.code], kernel=name).of(Severity.BREAKING)
    breaking = tuple(
        difference
        for difference in breaking
        if not takes_launch(capture, difference.what, before.kernel, after.kernel)
    )
    same_target = before.code.architecture == after.code.architecture
    if same_target and breaking:
        first = breaking[0]
        raise BadDataError(
            f"{path} takes other arguments than the captured launch has: {first.what},"
            f" {first.before} -> {first.after}",
            cause=first.reason,
            next_step=f"rpl abi-diff {capture.folder / CODE_OBJECT} {path} names all differences",
        )
    return after


def takes_launch(capture: Capture, what: str, before: Kernel, after: Kernel) -> bool:
    """Whether a difference named ``what``, which breaks some launches, leaves ``after`` fit for the captured
    one: its workgroups are within the limit that ``after`` states, or its hidden arguments can be given."""
    items = math.prod(max(1, extent) for extent in capture.dispatch.block)
    if what == "max_workgroup_size":
        return items <= after.max_workgroup_size
    return _of_known_arguments(what, before, after)


def _of_known_arguments(what: str, before: Kernel, after: Kernel) -> bool:
    """Whether a difference named ``what`` is only of hidden arguments that a replay can give ``after``: those
    of ``before`` where they were, and those that the launch tells (``fitting_arguments``)."""
    if not what.startswith(_OF_HIDDEN_ARGUMENTS):
        return False
    told_by_caller = [argument for argument in after.arguments if not argument.hidden]
    explicit = max((argument.offset + argument.size for argument in told_by_caller), default=0)
    added = _added(before, after)
    return all(
        argument.value_kind in _TOLD and argument.size <= _WORD_BYTES and argument.offset >= explicit
        for argument in added
    )


def _added(before: Kernel, after: Kernel) -> list[KernelArgument]:
    there = {(argument.offset, argument.size, argument.value_kind) for argument in before.arguments}
    return [
        argument
        for argument in after.arguments
        if argument.hidden and (argument.offset, argument.size, argument.value_kind) not in there
    ]


def fitting_arguments(capture: Capture, *codes: LaunchCode) -> bytes | None:
    """The arguments of the launch for all these codes, where the captured ones lack hidden arguments that
    these read; ``None`` where the captured ones serve. They lie elsewhere than the captured ones then."""
    before = captured_code(capture).kernel
    content = bytearray((capture.folder / KERNARG).read_bytes())
    added = [argument for code in codes for argument in _added(before, code.kernel)]
    longest = max((code.kernel.kernarg_bytes for code in codes), default=0)
    if not added and len(content) >= longest:
        return None
    content.extend(bytes(max(0, longest - len(content))))
    told = _told_by_launch(capture)
    for argument in added:
        content[argument.offset : argument.offset + argument.size] = told[argument.value_kind].to_bytes(
            argument.size, "little"
        )
    return bytes(content)


def _told_by_launch(capture: Capture) -> dict[str, int]:
    """As the HIP runtime fills them: whole workgroups are counted, what is left of the grid is the
    remainder."""
    launch = capture.dispatch
    told = dict.fromkeys(_TOLD, 0)
    for axis, items, size in zip("xyz", launch.grid, launch.block, strict=True):
        told[f"hidden_block_count_{axis}"] = items // size
        told[f"hidden_group_size_{axis}"] = size
        told[f"hidden_remainder_{axis}"] = items % size
    told["hidden_grid_dims"] = max(
        (number for number, items in enumerate(launch.grid, 1) if items > 1), default=1
    )
    return told


def _code_in(path: Path, name: str) -> LaunchCode:
    from rpl_codeobject.reading import read_code_objects

    for code in read_code_objects(path):
        kernel = code.kernel(name)
        if kernel is not None:
            return LaunchCode(code, kernel)
    raise BadDataError(f"{path} has no kernel {name}", next_step="the kernel must keep its name")


def elsewhere(memory: PlainMemory, path: Path) -> str | None:
    """What captured pointers lead to in the captured code, where the code at ``path`` may call it.

    ``None`` where there are none, or the code is the captured one. Raises BadDataError.
    """

    captured, other = captured_code(memory.capture), _code_in(path, memory.capture.kernel_name)
    image = image_of(memory.capture, captured)
    if captured.code.elf == other.code.elf or image is None or not may_call_pointers(other):
        return None
    return told_names(code_pointers(memory, image)) or None


def pointers_fail(names: str, *, code: str) -> Failure:
    """``code`` is what would be called through them."""
    return Failure(
        ReplayError.LAYOUT_CLASH,
        f"captured pointers lead to {names}, and {code}",
        cause="function pointers or objects with virtual functions in memory, which the kernel may call",
        next_step="replay the captured code in the emulator: --device gfx942-emu",
    )


def target_of(capture: Capture, path: Path) -> str:
    """For what ``path``, which takes the place of the captured code, is compiled. Raises BadDataError."""
    return _code_in(path, capture.kernel_name).code.target


def stale_arguments(capture: Capture, code: LaunchCode) -> dict[str, tuple[int, int]]:
    """Hidden arguments that hold an address in the captured process: name -> offset and size."""
    arguments = (capture.folder / KERNARG).read_bytes()
    return {
        argument.value_kind: (argument.offset, argument.size)
        for argument in code.kernel.arguments
        if argument.value_kind in _STALE and any(arguments[argument.offset : argument.offset + argument.size])
    }
