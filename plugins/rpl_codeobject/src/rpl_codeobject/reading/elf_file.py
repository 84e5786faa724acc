"""Read one ELF with pyelftools: the metadata note, kernel descriptors, or a host's ``.hip_fatbin``.

Every failure inside the ELF library becomes a ``BadDataError``: the bytes are a stranger's.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

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
_MAX_NOTE_BYTES = 64 << 20
#: ELF64 (System V ABI): sizes of Elf64_Shdr and Elf64_Phdr; the most that 16-bit counts can name.
_SECTION_HEADER_BYTES, _PROGRAM_HEADER_BYTES, _MOST_HEADERS = 64, 56, 0xFFFF
#: The most that a compressed section (debug information) may unpack to (chosen).
_MAX_UNPACKED_SECTION = 256 << 20
FATBIN_SECTION = ".hip_fatbin"


def is_device_elf(data: bytes, where: str) -> bool:
    """Whether the ELF is AMD GPU code (as opposed to a host program)."""
    return guarded(lambda: open_elf(data)["e_machine"] in _AMDGPU_MACHINE, where)


def host_fatbin(data: bytes, where: str) -> bytes | None:
    """The contents of ``.hip_fatbin``, or ``None`` when the host program has no such section."""

    def find() -> bytes | None:
        section = open_elf(data).get_section_by_name(FATBIN_SECTION)
        return None if section is None else section_bytes(section)

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
    return elf


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
    places = [s for s in elf.iter_segments() if s["p_type"] == "PT_NOTE"]
    places += [s for s in elf.iter_sections() if isinstance(s, NoteSection)]
    for place in places:
        for note in place.iter_notes():
            if note["n_name"] == "AMDGPU" and note["n_type"] == _METADATA_NOTE:
                found = bytes(note["n_descdata"])
                if len(found) > _MAX_NOTE_BYTES:
                    raise BadDataError(f"{where}: a metadata note of {len(found)} bytes")
                return found
    raise BadDataError(f"{where}: no NT_AMDGPU_METADATA note", cause="a truncated or stripped code object")


def _descriptors(elf: Any, where: str) -> dict[str, KernelDescriptor]:
    found: dict[str, KernelDescriptor] = {}
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for symbol in table.iter_symbols():
            if symbol.name.endswith(".kd") and isinstance(symbol["st_shndx"], int):
                found[symbol.name] = decode_descriptor(_symbol_bytes(elf, symbol), f"{where}: {symbol.name}")
    return found


def _symbol_bytes(elf: Any, symbol: Any) -> bytes:
    section = elf.get_section(symbol["st_shndx"])
    start = symbol["st_value"] - section["sh_addr"]
    if start < 0:
        return b""
    return section_bytes(section)[start : start + DESCRIPTOR_BYTES]


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
