"""Read one ELF with pyelftools: the metadata note, kernel descriptors, or a host's ``.hip_fatbin``.

Every failure inside the ELF library becomes a ``BadDataError``: the bytes are a stranger's.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from rpl_codeobject.reading.descriptor import DESCRIPTOR_BYTES, decode_descriptor
from rpl_codeobject.reading.metadata import decode_note, kernel_from, kernel_maps, metadata_version
from rpl_codeobject.values import CodeObject
from rpl_core.errors import BadDataError, RplError

if TYPE_CHECKING:
    from rpl_codeobject.values import KernelDescriptor

_T = TypeVar("_T")
_AMDGPU_MACHINE = ("EM_AMDGPU", 224)
#: NT_AMDGPU_METADATA (LLVM AMDGPUUsage, "Note Records").
_METADATA_NOTE = 32
#: As a value of Python a note takes some 20 times its bytes; ten thousand kernels take half of it.
_MAX_NOTE_BYTES = 32 << 20
_NOTE_HEADER, _SYMBOL_NAME = struct.Struct("<III"), struct.Struct("<I20x")
#: ELF64 (System V ABI): sizes of Elf64_Shdr and Elf64_Phdr; the most that 16-bit counts can name.
_SECTION_HEADER_BYTES, _PROGRAM_HEADER_BYTES, _MOST_HEADERS = 64, 56, 0xFFFF
#: Tables of a file may overlap and names share their text: how often all of them together may fill the file.
_MOST_PASSES, _ALWAYS = 16, 1 << 24
#: The most that a compressed section (debug information) may unpack to (chosen).
_MAX_UNPACKED_SECTION = 256 << 20
FATBIN_SECTION = ".hip_fatbin"


def is_device_elf(data: bytes, where: str) -> bool:
    """Whether the ELF is AMD GPU code (as opposed to a host program)."""
    return guarded(lambda: open_elf(data)["e_machine"] in _AMDGPU_MACHINE, where)


def host_fatbin(data: bytes, where: str) -> bytes | None:
    """The contents of ``.hip_fatbin``, or ``None`` when the host program has no such section."""

    def find() -> bytes | None:
        sections = (s for s in open_elf(data).iter_sections() if s.name == FATBIN_SECTION)
        return next(map(section_bytes, sections), None)

    return guarded(find, where)


def device_code_object(data: bytes, where: str) -> CodeObject:
    """The code object; ``BadDataError`` says what is missing or broken."""
    elf = guarded(lambda: open_elf(data), where)
    note = decode_note(guarded(lambda: metadata_note(elf, where), where), where)
    descriptors = guarded(lambda: _descriptors(elf, where), where)
    target = note.get("amdhsa.target")
    if not isinstance(target, str):
        raise BadDataError(
            f"{where}: the metadata names no target", cause="a code object older than version 4"
        )
    return CodeObject(
        target=target,
        metadata_version=metadata_version(note, where),
        kernels=tuple(_kernel(entry, descriptors, where) for entry in kernel_maps(note, where)),
        elf=data,
    )


def _kernel(entry: Mapping[str, Any], descriptors: Mapping[str, KernelDescriptor], where: str) -> Any:
    return kernel_from(entry, descriptors.get(str(entry.get(".symbol"))), where)


def open_elf(data: bytes) -> Any:
    """The ELF file of pyelftools; ``BadDataError`` where reading its tables would never end."""
    elf = ELFFile(io.BytesIO(data))
    # With entries of size 0 a table of any claimed length fits the file and would be walked forever.
    if elf["e_shnum"] and elf["e_shentsize"] != _SECTION_HEADER_BYTES:
        raise BadDataError(f"section headers of {elf['e_shentsize']} bytes")
    if elf["e_phnum"] and elf["e_phentsize"] != _PROGRAM_HEADER_BYTES:
        raise BadDataError(f"program headers of {elf['e_phentsize']} bytes")
    if elf.num_sections() > _MOST_HEADERS or elf.num_segments() > _MOST_HEADERS:
        raise BadDataError(f"{elf.num_sections()} sections and {elf.num_segments()} segments")
    if sum(_table_bytes(elf, data)) > _MOST_PASSES * len(data) + _ALWAYS:
        raise BadDataError("tables and names that overlap again and again")
    return elf


def _table_bytes(elf: Any, data: bytes) -> Iterator[int]:
    """Bytes of each table that is walked and of each name; it stops at what is too much."""
    left = _MOST_PASSES * len(data) + _ALWAYS
    sections = [elf._get_section_header(number) for number in range(elf.num_sections())]
    tables = [s for s in sections if s["sh_type"] in ("SHT_SYMTAB", "SHT_DYNSYM")]
    notes = [s["sh_size"] for s in sections if s["sh_type"] == "SHT_NOTE"]
    notes += [s["p_filesz"] for s in elf.iter_segments() if s["p_type"] == "PT_NOTE"]
    yield from notes
    names = sections[elf["e_shstrndx"]]["sh_offset"] if elf["e_shstrndx"] < len(sections) else 0
    for places in ([names + s["sh_name"] for s in sections], *(_names(t, sections, data) for t in tables)):
        for place in places:
            length = max(0, data.find(b"\0", place) - place) + 1
            yield length
            left -= length
            if left < 0:
                return


def _names(table: Any, sections: list[Any], data: bytes) -> Iterator[int]:
    """Where the names of the symbols begin."""
    if table["sh_link"] >= len(sections) or table["sh_entsize"] != _SYMBOL_NAME.size:
        raise BadDataError("a damaged table of symbols")
    strings = sections[table["sh_link"]]["sh_offset"]
    symbols = memoryview(data)[table["sh_offset"] : table["sh_offset"] + table["sh_size"]]
    whole = symbols[: len(symbols) // _SYMBOL_NAME.size * _SYMBOL_NAME.size]
    return (strings + name for (name,) in _SYMBOL_NAME.iter_unpack(whole))


def section_bytes(section: Any) -> bytes:
    """The content of a section of pyelftools; none where the file holds none, whatever size is claimed."""
    if section["sh_type"] == "SHT_NOBITS":
        return b""
    if section.compressed and section.data_size > _MAX_UNPACKED_SECTION:
        raise BadDataError(f"section {section.name!r} claims to hold {section.data_size} bytes")
    return bytes(section.data())


def metadata_note(elf: Any, where: str) -> bytes:
    """The bytes of the note ``NT_AMDGPU_METADATA``."""
    # Linked code objects have a PT_NOTE segment, relocatable ones only the section.
    places = [(s["p_offset"], s["p_filesz"]) for s in elf.iter_segments() if s["p_type"] == "PT_NOTE"]
    places += [(s["sh_offset"], s["sh_size"]) for s in elf.iter_sections() if s["sh_type"] == "SHT_NOTE"]
    for offset, size in places:
        elf.stream.seek(offset)
        note = _amdgpu_note(elf.stream.read(size))
        if note is None:
            continue
        if len(note) > _MAX_NOTE_BYTES:
            raise BadDataError(f"{where}: a metadata note of {len(note)} bytes")
        return note
    raise BadDataError(f"{where}: no NT_AMDGPU_METADATA note", cause="a truncated or stripped code object")


def _amdgpu_note(notes: bytes) -> bytes | None:
    at = 0
    while at + _NOTE_HEADER.size <= len(notes):
        name_bytes, size, kind = _NOTE_HEADER.unpack_from(notes, at)
        name = at + _NOTE_HEADER.size
        content = name + (name_bytes + 3) // 4 * 4
        if kind == _METADATA_NOTE and notes[name : name + name_bytes].rstrip(b"\0") == b"AMDGPU":
            return notes[content : content + size]
        at = content + (size + 3) // 4 * 4
    return None


class Sections(dict[int, Any]):
    """The sections of an ELF by number, each made once: that takes as long as its name is."""

    def __init__(self, elf: Any) -> None:
        super().__init__()
        self._elf = elf

    def __missing__(self, number: int) -> Any:
        self[number] = self._elf.get_section(number)
        return self[number]

    def part(self, symbol: Any, size: int) -> bytes:
        """Up to ``size`` bytes of what the symbol names; none where the file holds none."""
        section = self[symbol["st_shndx"]]
        begin = symbol["st_value"] - section["sh_addr"]
        if section["sh_type"] == "SHT_NOBITS" or not 0 <= begin <= section["sh_size"]:
            return b""
        if section.compressed:
            raise BadDataError(f"a symbol in the compressed section {section.name!r}")
        self._elf.stream.seek(section["sh_offset"] + begin)
        return bytes(self._elf.stream.read(min(size, section["sh_size"] - begin)))


def _descriptors(elf: Any, where: str) -> dict[str, KernelDescriptor]:
    descriptors: dict[str, KernelDescriptor] = {}
    sections = Sections(elf)
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for symbol in table.iter_symbols():
            if symbol.name.endswith(".kd") and isinstance(symbol["st_shndx"], int):
                content = sections.part(symbol, DESCRIPTOR_BYTES)
                descriptors[symbol.name] = decode_descriptor(content, f"{where}: {symbol.name}")
    return descriptors


def guarded(read: Callable[[], _T], where: str) -> _T:
    """``read()``; whatever goes wrong in it is a ``BadDataError`` that names ``where``."""
    try:
        return read()
    except RplError as error:
        if where in error.fact:
            raise
        raise BadDataError(f"{where}: {error.fact}", cause="a damaged file") from error
    except Exception as error:  # pyelftools raises many kinds on hostile bytes
        raise BadDataError(
            f"{where}: not a readable ELF ({type(error).__name__}: {error})",
            cause="a truncated or damaged file",
        ) from error
