"""What a code object offers to its host by name, and all that a GPU executes of it as one hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import attrs
from elftools.elf.sections import SymbolTableSection

from rpl_codeobject.reading.elf_file import (
    DESCRIPTOR_BYTES,
    Sections,
    guarded,
    metadata_note,
    open_elf,
    section_bytes,
)
from rpl_codeobject.values import CodeObject
from rpl_core.errors import BadDataError
from rpl_core.values import frozen

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


# What a GPU executes of its code objects, as one hash: equal code gives equal hashes wherever it was built.
#
# Not the whole ELF: its build id covers debug information, which names directories, and clang writes the
# unit id ``__hip_cuid_<hash of path and options>`` into the symbol table. So the hash covers what is loaded
# (code, constants, kernel descriptors, initial data, relocations), the AMDGPU metadata note, and the other
# dynamic symbols by name, kind, size and place in their section. What the source itself makes of its path
# (``__FILE__``) is part of the code and does change the hash.

_SHF_ALLOC = 0x2
#: Tables of the loader that only repeat names and addresses, and notes, of which one kind is taken.
_LINKAGE = ("SHT_STRTAB", "SHT_HASH", "SHT_GNU_HASH", "SHT_DYNAMIC", "SHT_DYNSYM", "SHT_NOTE")
#: Fills a page behind ``.dynamic``: its size follows from how long the names before it are.
_PADDING = ".relro_padding"


def code_digest(code_objects: Iterable[CodeObject]) -> str:
    """SHA-256 in hexadecimal over the code objects in the given order; ``BadDataError`` for a broken ELF."""
    digest = hashlib.sha256()
    for code in code_objects:
        for part in guarded(partial(_listed, code), "a code object"):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()


def _listed(code: CodeObject) -> list[bytes]:
    return list(_parts(code))


def _parts(code: CodeObject) -> Iterator[bytes]:
    elf = open_elf(code.elf)
    yield code.target.encode("utf-8", "surrogateescape")
    yield metadata_note(elf, "a code object")
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection) and section["sh_type"] == "SHT_DYNSYM":
            yield from sorted(_symbols(elf, section))
        loaded = section["sh_flags"] & _SHF_ALLOC and section["sh_type"] not in _LINKAGE
        if loaded and section.name != _PADDING:
            yield f"{section.name} {section['sh_type']} {section['sh_flags']} {section['sh_size']}".encode()
            yield section_bytes(section)


def _symbols(elf: Any, table: SymbolTableSection) -> Iterator[bytes]:
    sections = Sections(elf)
    for symbol in table.iter_symbols():
        if symbol.name.startswith(_UNIT_ID):
            continue
        index, value = symbol["st_shndx"], symbol["st_value"]
        if isinstance(index, int):
            section = sections[index]
            index, value = section.name, value - section["sh_addr"]
        kind = symbol["st_info"]
        yield f"{symbol.name} {kind['type']} {kind['bind']} {symbol['st_size']} {index} {value}".encode()
