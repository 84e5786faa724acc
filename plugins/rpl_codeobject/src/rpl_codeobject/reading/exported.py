"""What a code object offers to its host by name: kernels, their descriptors, variables with their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
from elftools.elf.sections import SymbolTableSection

from rpl_codeobject.reading.descriptor import DESCRIPTOR_BYTES
from rpl_codeobject.reading.elf_file import Sections, guarded, open_elf
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_codeobject.values import CodeObject

#: ``kernel_code_entry_byte_offset``: how far the code lies from the descriptor (LLVM ``AMDGPUUsage``).
_ENTRY_OFFSET: Final = slice(16, 24)
#: A variable that only names the compilation unit; its name is the id.
_UNIT_ID: Final = "__hip_cuid_"
#: Variables may overlap; so often all of them together may fill the file (chosen; those of compilers don't).
_MOST_PASSES: Final = 4


@frozen
class Exported:
    """One symbol. ``content``: initial bytes of a variable or descriptor, a descriptor's entry offset as 0.

    ``None`` for code.
    """

    size: int
    content: bytes | None = attrs.field(default=None, repr=False)


def exported_symbols(code_object: CodeObject) -> dict[str, Exported]:
    """Symbols that the host can look up, by name. ``BadDataError`` for an ELF that can't be read."""
    where = f"code object for {code_object.target}"
    return guarded(lambda: _exported(open_elf(code_object.elf)), where)


def _exported(elf: Any) -> dict[str, Exported]:
    found, left = {}, _MOST_PASSES * elf.stream_len
    sections = Sections(elf)
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection) or table["sh_type"] != "SHT_DYNSYM":
            continue
        for symbol in table.iter_symbols():
            if isinstance(symbol["st_shndx"], int) and not symbol.name.startswith(_UNIT_ID):
                found[symbol.name] = one = _symbol(sections, symbol)
                left -= len(one.content or b"")
            if left < 0:
                raise BadDataError("variables that overlap again and again")
    return found


def _symbol(sections: Sections, symbol: Any) -> Exported:
    size = symbol["st_size"]
    if symbol["st_info"]["type"] == "STT_FUNC":
        return Exported(size)
    content = sections.part(symbol, size)
    if symbol.name.endswith(".kd") and size == DESCRIPTOR_BYTES:
        masked = bytearray(content)
        masked[_ENTRY_OFFSET] = bytes(8)
        content = bytes(masked)
    return Exported(size, content)
