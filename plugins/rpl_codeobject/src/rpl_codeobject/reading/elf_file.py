"""One ELF: its kernels by metadata and descriptors, what it exports, one hash of what a GPU executes."""

from __future__ import annotations

import hashlib
import io
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import attrs
import msgpack
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from rpl_codeobject.kernel_code import CodeObject, Kernel, KernelArgument, KernelDescriptor
from rpl_core.errors import BadDataError, ForeignFileError, RplError
from rpl_core.values import frozen

DESCRIPTOR_BYTES = 64
#: group, private, kernarg sizes; 4 reserved; entry offset; 20 reserved; rsrc3, rsrc1, rsrc2; properties;
#: kernarg preload; 4 reserved.
_LAYOUT = struct.Struct("<III4xq20xIIIHH4x")


def decode_descriptor(data: bytes, where: str) -> KernelDescriptor:
    """The descriptor in ``data`` (exactly 64 bytes); ``BadDataError`` when it is shorter or longer."""
    if len(data) != DESCRIPTOR_BYTES:
        raise BadDataError(f"{where}: a kernel descriptor of {len(data)} bytes, expected {DESCRIPTOR_BYTES}")
    group, private, kernarg, entry, rsrc3, rsrc1, _rsrc2, properties, preload = _LAYOUT.unpack(data)
    return KernelDescriptor(
        group_segment_bytes=group,
        private_segment_bytes=private,
        kernarg_bytes=kernarg,
        entry_offset=entry,
        vgpr_granules=(rsrc1 & 0x3F) + 1,
        sgpr_granules=(rsrc1 >> 6 & 0xF) + 1,
        accum_offset=((rsrc3 & 0x3F) + 1) * 4,  # meaningful on gfx90a and gfx94x only
        wavefront_size32=bool(properties >> 10 & 1),
        dynamic_stack=bool(properties >> 11 & 1),
        kernarg_preload=preload,
    )


# Turn the msgpack note ``NT_AMDGPU_METADATA`` into kernels; total: what is wrong is said by key.
#
# Keys and which of them are required: LLVM ``AMDGPUUsage``, "Code Object V3 Metadata" and its successors.

_Container = TypeVar("_Container")
_SUPPORTED_MAJOR = 1
#: Lists and maps take far more memory than their bytes; a kernel has one for each argument.
_MOST_CONTAINERS = 2_000_000


def decode_note(data: bytes, where: str) -> Mapping[str, Any]:
    """The note as a mapping; msgpack bounds every container by the length of ``data``."""
    count = itertools.count(1)

    def counted(container: _Container) -> _Container:
        if next(count) > _MOST_CONTAINERS:
            raise BadDataError(f"{where}: a metadata note of more than {_MOST_CONTAINERS} lists and maps")
        return container

    try:
        note = msgpack.unpackb(data, raw=False, list_hook=counted, object_hook=counted)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise BadDataError(f"{where}: the metadata note is not msgpack ({type(error).__name__})") from error
    if not isinstance(note, Mapping):
        raise BadDataError(f"{where}: the metadata note is a {type(note).__name__}, expected a map")
    return note


def metadata_version(note: Mapping[str, Any], where: str) -> tuple[int, ...]:
    """``amdhsa.version``; another major version is refused."""
    version = note.get("amdhsa.version")
    if not isinstance(version, list) or not version or not all(isinstance(v, int) for v in version):
        raise BadDataError(f"{where}: amdhsa.version is {version!r}")
    if version[0] != _SUPPORTED_MAJOR:
        raise ForeignFileError(f"{where}: metadata version {version[0]} is not known (expected 1)")
    return tuple(version)


def kernel_maps(note: Mapping[str, Any], where: str) -> list[Mapping[str, Any]]:
    """The entries of ``amdhsa.kernels`` in file order; a code object without kernels has none."""
    kernels = note.get("amdhsa.kernels", [])
    if not isinstance(kernels, list) or not all(isinstance(k, Mapping) for k in kernels):
        raise BadDataError(f"{where}: amdhsa.kernels is not a list of maps")
    return kernels


def kernel_from(entry: Mapping[str, Any], descriptor: KernelDescriptor | None, where: str) -> Kernel:
    """One kernel; ``BadDataError`` names the missing or misshapen key."""
    fields = _Fields(entry, where)
    here = f"{where}: kernel {fields.text('.name')}"
    fields = _Fields(entry, here)
    return Kernel(
        name=fields.text(".name"),
        symbol=fields.text(".symbol"),
        arguments=_arguments(fields, here),
        kernarg_bytes=fields.number(".kernarg_segment_size"),
        kernarg_align=fields.number(".kernarg_segment_align"),
        lds_bytes=fields.number(".group_segment_fixed_size"),
        scratch_bytes=fields.number(".private_segment_fixed_size"),
        max_workgroup_size=fields.number(".max_flat_workgroup_size"),
        wavefront_size=fields.number(".wavefront_size"),
        required_workgroup=_workgroup(fields, here),
        dynamic_stack=fields.optional(".uses_dynamic_stack", bool),
        vgprs=fields.number(".vgpr_count"),
        agprs=fields.optional(".agpr_count", int),
        sgprs=fields.number(".sgpr_count"),
        vgpr_spills=fields.optional(".vgpr_spill_count", int),
        sgpr_spills=fields.optional(".sgpr_spill_count", int),
        workgroup_processor_mode=fields.optional(".workgroup_processor_mode", int),
        uniform_workgroups=fields.optional(".uniform_work_group_size", int),
        descriptor=descriptor,
    )


def _workgroup(fields: _Fields, where: str) -> tuple[int, ...] | None:
    sizes = fields.optional(".reqd_workgroup_size", list)
    if sizes is None:
        return None
    if not all(isinstance(size, int) for size in sizes):
        raise BadDataError(f"{where}: .reqd_workgroup_size is {sizes!r}")
    return tuple(sizes)


def _arguments(fields: _Fields, where: str) -> tuple[KernelArgument, ...]:
    entries = fields.optional(".args", list) or []
    arguments = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise BadDataError(f"{where}: argument {index} is not a map")
        argument = _Fields(entry, f"{where}, argument {index}")
        arguments.append(
            KernelArgument(
                offset=argument.number(".offset"),
                size=argument.number(".size"),
                value_kind=argument.text(".value_kind"),
                address_space=argument.optional(".address_space", str),
                name=argument.optional(".name", str),
            )
        )
    return tuple(arguments)


class _Fields:
    """Checked look-ups in one map of the note."""

    def __init__(self, entry: Mapping[str, Any], where: str) -> None:
        self._entry = entry
        self._where = where

    def number(self, key: str) -> int:
        value = self._entry.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise BadDataError(f"{self._where}: {key} is {value!r}, expected a count")
        return value

    def text(self, key: str) -> str:
        value = self._entry.get(key)
        if not isinstance(value, str):
            raise BadDataError(f"{self._where}: {key} is {value!r}, expected a string")
        return value

    def optional(self, key: str, kind: type) -> Any:
        value = self._entry.get(key)
        if value is not None and not isinstance(value, kind):
            raise BadDataError(f"{self._where}: {key} is {value!r}, expected {kind.__name__}")
        return value


# Read one ELF with pyelftools: the metadata note, kernel descriptors, or a host's ``.hip_fatbin``.
#
# Every failure inside the ELF library becomes a ``BadDataError``: the bytes are a stranger's.

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
_TABLE_PASSES, _ALWAYS = 16, 1 << 24
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
    if sum(_table_bytes(elf, data)) > _TABLE_PASSES * len(data) + _ALWAYS:
        raise BadDataError("tables and names that overlap again and again")
    return elf


def _table_bytes(elf: Any, data: bytes) -> Iterator[int]:
    """Bytes of each table that is walked and of each name; it stops at what is too much."""
    left = _TABLE_PASSES * len(data) + _ALWAYS
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


# What a code object offers to its host by name, and all that a GPU executes of it as one hash.


#: ``kernel_code_entry_byte_offset``: how far the code lies from the descriptor (LLVM ``AMDGPUUsage``).
_ENTRY_OFFSET: Final = slice(16, 24)
#: A variable that only names the compilation unit; its name is the id.
_UNIT_ID: Final = "__hip_cuid_"
#: Variables may overlap; so often all of them together may fill the file (chosen; those of compilers don't).
_SYMBOL_PASSES: Final = 4


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
    exported, left = {}, _SYMBOL_PASSES * elf.stream_len
    sections = Sections(elf)
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection) or table["sh_type"] != "SHT_DYNSYM":
            continue
        for symbol in table.iter_symbols():
            if isinstance(symbol["st_shndx"], int) and not symbol.name.startswith(_UNIT_ID):
                exported[symbol.name] = entry = _symbol(sections, symbol)
                left -= len(entry.content or b"")
            if left < 0:
                raise BadDataError("variables that overlap again and again")
    return exported


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
