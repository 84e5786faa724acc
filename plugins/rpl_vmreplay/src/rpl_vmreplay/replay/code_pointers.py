"""Pointers to the captured code in captured memory: functions to call, and tables of virtual functions.

They hold only where the code lies at its captured address. A kernel that calls what a pointer leads to says
so itself: its stack is dynamic (LLVM AMDGPUUsage, ``.uses_dynamic_stack``). Others are not looked at.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_vmreplay.capture.contents import blocks_with_data
from rpl_vmreplay.capture.files import KERNARG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_vmreplay.capture.folder import Capture
    from rpl_vmreplay.capture.plain_memory import PlainMemory
    from rpl_vmreplay.replay.captured_code import LaunchCode

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
        own = address - self.base
        inside = [one for one in self.symbols if one[0] <= own < one[0] + max(one[1], 1)]
        in_code = any(begin <= own < end for begin, end in self.executable)
        for begin, _, kind, name in inside:
            if kind == _FUNCTION and begin == own:
                return f"the function {name}"
            if kind == _OBJECT and not in_code:
                return None if name.endswith(".kd") else f"the table {name}"
        if in_code and any(kind == _FUNCTION for _, _, kind, _ in self.symbols):
            return None  # in the middle of a function
        return f"the code object at +0x{own:x}"


def image_of(capture: Capture, code: LaunchCode) -> CodeImage | None:
    """Where the captured code was; ``None`` where the capture does not tell."""
    import io

    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    elf = ELFFile(io.BytesIO(code.code.elf))
    loads = [one for one in elf.iter_segments() if one["p_type"] == "PT_LOAD"]
    places = [(one["p_vaddr"], one["p_vaddr"] + one["p_memsz"]) for one in loads]
    symbols = {
        (one["st_value"], one["st_size"], one["st_info"]["type"], one.name)
        for table in elf.iter_sections()
        if isinstance(table, SymbolTableSection)
        for one in table.iter_symbols()
        if one["st_info"]["type"] in (_FUNCTION, _OBJECT) and isinstance(one["st_shndx"], int)
    }
    base = None if capture.extras is None else capture.extras.code_object.load_base
    if base is None and capture.dispatch.kernel_object:
        descriptor = f"{capture.kernel_name}.kd"
        own = next((value for value, _, _, name in symbols if name == descriptor), None)
        base = None if own is None else capture.dispatch.kernel_object - own
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
    return [(one.address, one.address + one.size) for one in told if one.address is not None]


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
        found = np.unique(words[words - np.uint64(low) < np.uint64(size)])
        for address in found.tolist():
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
