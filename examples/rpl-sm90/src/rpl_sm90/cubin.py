"""The device code of a CUDA program: fat binaries of the host's file, cubins in them, and what these say.

Read off files that nvcc 13.0 wrote and compared with ``ptxas -v`` and ``cuobjdump``; NVIDIA documents neither
format. A fat binary is a header of 16 bytes (magic, version, header size, size) and entries with a header of
their own: kind (1 PTX, 2 cubin), header size, payload size, and the size of what is packed. A cubin is an ELF
file: ``.text.NAME`` per function, ``.nv.shared.NAME``, ``.nv.constant0.NAME`` (parameters), and ``.nv.info``,
records of a format byte, a key and a value (the ``EIATTR`` names that cuobjdump prints).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from rpl_core.errors import BadDataError
from rpl_core.files import read_regular
from rpl_core.values import frozen

if TYPE_CHECKING:
    from elftools.elf.sections import Section

MOST_BYTES = 1 << 30
_MAGIC = 0xBA55ED50
_FILE, _ENTRY = struct.Struct("<IHHQ"), struct.Struct("<HHIQI")
_CUBIN = 2
_CUDA = 190  # e_machine
_ALLOCATED = 0x2
_FRAME_SIZE, _REGISTERS = 0x11, 0x2F
#: Of a kernel's own records those that its launch depends on: parameters, and limits of the block's size.
_OF_LAUNCHES = {
    0x05: "largest block",
    0x0A: "bank of parameters",
    0x10: "required block",
    0x17: "parameter",
    0x19: "size of parameters",
}
_SIZED = 0x04


@frozen
class Function:
    """``registers`` per thread, ``frame_bytes`` of local memory per thread, ``shared_bytes`` per block.

    ``place`` counts the bytes of code before it. ``launched``: what its launch depends on, by kind of record.
    """

    name: str
    kernel: bool
    code: bytes = attrs.field(repr=False)
    place: int
    registers: int | None
    frame_bytes: int | None
    shared_bytes: int
    launched: Mapping[str, tuple[bytes, ...]]

    @property
    def largest_block(self) -> int | None:
        """What ``__launch_bounds__`` says; ``None`` without."""
        records = self.launched.get("largest block", ())
        return struct.unpack("<3I", records[0])[0] if records and len(records[0]) == 12 else None


@frozen
class Cubin:
    """``rest`` are all loaded sections but those of one function, by name: a digest each."""

    architecture: str
    functions: Mapping[str, Function]
    sections: Mapping[str, bytes] = attrs.field(repr=False)
    elf: bytes = attrs.field(repr=False)

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(name for name, function in self.functions.items() if function.kernel)

    def digest(self) -> bytes:
        """Of everything that the GPU is given."""
        parts = sorted(self.sections.items())
        return hashlib.sha256(repr((self.architecture, parts)).encode()).digest()


def cubins_of(path: Path) -> tuple[Cubin, ...]:
    """Those in a program, library or object of nvcc that hold functions, in file order; none elsewhere.

    Raises ``BadDataError`` for a damaged file, and for packed cubins.
    """
    content = read_regular(path, MOST_BYTES)
    if not content.startswith(b"\x7fELF"):
        return ()
    try:
        sections = {section.name: section.data() for section in ELFFile(BytesIO(content)).iter_sections()}
        found = [_cubin(elf) for elf in _elves(sections.get(".nv_fatbin", b""), path)]
    except (ELFError, struct.error, UnicodeDecodeError, KeyError, IndexError, ValueError) as error:
        raise BadDataError(f"{path.name} holds damaged device code: {error}") from error
    return tuple(cubin for cubin in found if cubin.functions)


def _elves(packed: bytes, path: Path) -> Iterator[bytes]:
    at = 0
    while at + _FILE.size <= len(packed):
        magic, _, header, size = _FILE.unpack_from(packed, at)
        if magic != _MAGIC:  # filled up to the next multiple of 8
            at += 8
            continue
        entry, end = at + header, at + header + size
        if end > len(packed):
            raise ValueError("a fat binary ends behind its section")
        while entry + _ENTRY.size <= end:
            kind, _, own, payload, squeezed = _ENTRY.unpack_from(packed, entry)
            if not own or entry + own + payload > end:
                raise ValueError("an entry of a fat binary ends behind it")
            if kind == _CUBIN and squeezed:
                raise BadDataError(
                    f"{path.name} holds compressed machine code", next_step="compile with nvcc --no-compress"
                )
            if kind == _CUBIN:
                yield packed[entry + own : entry + own + payload]
            entry += own + payload
        at = end


def _cubin(elf: bytes) -> Cubin:
    file = ELFFile(BytesIO(elf))
    if file["e_machine"] not in (_CUDA, "EM_CUDA"):
        raise ValueError("a cubin is for another machine than a GPU of NVIDIA")
    sections = [section for section in file.iter_sections() if section.name]
    table = file.get_section_by_name(".symtab")
    symbols = [] if table is None else list(table.iter_symbols())
    by_name = {section.name: section for section in sections}
    registers, frames = dict[str, int](), dict[str, int]()
    for key, value in _records(by_name.get(".nv.info")):
        if key in (_REGISTERS, _FRAME_SIZE) and len(value) == 8:
            index, count = struct.unpack("<2I", value)
            (registers if key == _REGISTERS else frames)[symbols[index].name] = count
    functions, place = dict[str, Function](), 0
    for section in sections:
        name = section.name.removeprefix(".text.")
        if name == section.name:
            continue
        shared = by_name.get(f".nv.shared.{name}")
        functions[name] = Function(
            name=name,
            kernel=f".nv.constant0.{name}" in by_name,  # its parameters
            code=section.data(),
            place=place,
            registers=registers.get(name),
            frame_bytes=frames.get(name),
            shared_bytes=0 if shared is None else shared["sh_size"],
            launched=_launched(by_name.get(f".nv.info.{name}")),
        )
        place += section["sh_size"]
    kept = {section.name: _loaded(section) for section in sections if _matters(section)}
    return Cubin(f"sm_{_sm(file)}", functions, kept, elf)


def _sm(file: ELFFile) -> int:
    """CUDA 13 keeps the architecture in the second byte of the flags, earlier ones in the first."""
    flags = file["e_flags"]
    return flags >> 8 & 0xFF if file["e_ident"]["EI_ABIVERSION"] >= 8 else flags & 0xFF


def _records(section: Section | None) -> Iterator[tuple[int, bytes]]:
    data, at = (b"" if section is None else section.data()), 0
    while at + 4 <= len(data):
        form, key, value = struct.unpack_from("<BBH", data, at)
        size = value if form == _SIZED else 0
        yield key, (data[at + 4 : at + 4 + size] if size else struct.pack("<H", value))
        at += 4 + size


def _launched(section: Section | None) -> dict[str, tuple[bytes, ...]]:
    found: dict[str, list[bytes]] = {}
    for key, value in _records(section):
        if key in _OF_LAUNCHES:
            # The bank of parameters begins with the index of a symbol.
            found.setdefault(_OF_LAUNCHES[key], []).append(value[4:] if key == 0x0A else value)
    return {name: tuple(values) for name, values in found.items()}


def _matters(section: Section) -> bool:
    own = section.name.startswith((".nv.info", ".rela.text.", ".rel.text.", ".nv.callgraph"))
    return own or bool(section["sh_flags"] & _ALLOCATED)


def _loaded(section: Section) -> bytes:
    size = str(section["sh_size"]).encode()
    return size if section["sh_type"] == "SHT_NOBITS" else hashlib.sha256(section.data()).digest()
