"""A code object for gfx942 whose tables are what a test says, not what a linker writes.

ELF: System V ABI. Note, descriptor and symbols of AMD GPUs: LLVM ``AMDGPUUsage``.
"""

from __future__ import annotations

import struct

import msgpack

from rpl_core.values import frozen

__all__ = ["END_PROGRAM", "KERNEL", "CodeParts", "metadata_note"]

END_PROGRAM = struct.pack("<I", 0xBF810000)
KERNEL = {
    ".name": "k",
    ".symbol": "k.kd",
    ".kernarg_segment_size": 0,
    ".kernarg_segment_align": 8,
    ".group_segment_fixed_size": 0,
    ".private_segment_fixed_size": 0,
    ".max_flat_workgroup_size": 256,
    ".wavefront_size": 64,
    ".vgpr_count": 8,
    ".sgpr_count": 16,
}
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION_NAMES = b"\0.text\0.rodata\0.note\0.dynsym\0.dynstr\0.shstrtab\0"
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
_TEXT, _RODATA = 1, 2
_FUNCTION, _OBJECT = 0x12, 0x11


def metadata_note(content: bytes | None = None) -> bytes:
    """The note ``NT_AMDGPU_METADATA`` with these bytes, or with one kernel."""
    if content is None:
        target = {"amdhsa.version": [1, 2], "amdhsa.target": "amdgcn-amd-amdhsa--gfx942"}
        content = msgpack.packb({**target, "amdhsa.kernels": [KERNEL]})
    return struct.pack("<III", 7, len(content), 32) + b"AMDGPU\0\0" + content + bytes(-len(content) % 4)


@frozen
class CodeParts:
    """``functions`` and ``variables``: how many symbols more name all of the code, or the descriptor.

    ``loads`` and ``notes``: how many headers tell the same segment, and the same note.
    """

    text: bytes = END_PROGRAM
    note: bytes = metadata_note()
    functions: int = 0
    variables: int = 0
    name: bytes = b"f"
    loads: int = 1
    notes: int = 1
    relocations: int = 0

    def build(self) -> bytes:
        headers = self.loads + self.notes + 1
        whole = bytearray(-(-(64 + _SEGMENT.size * headers) // 256) * 256)
        text, descriptor = self._code(whole)
        note = _put(whole, self.note, 4)
        symbols, strings = self._symbols(text, descriptor)
        symbols_at, strings_at = _put(whole, symbols, 8), _put(whole, strings, 1)
        moved = _put(whole, struct.pack("<QQq", descriptor, 13, 0) * self.relocations, 8)
        dynamic = struct.pack("<8Q", 7, moved, 8, 24 * self.relocations, 6, symbols_at, 0, 0)
        dynamic_at = _put(whole, dynamic, 8)
        names_at, end = _put(whole, _SECTION_NAMES, 1), len(whole)
        sections = (
            (".text", 1, 6, text, len(self.text), 0, 0),
            (".rodata", 1, 2, descriptor, 64, 0, 0),
            (".note", 7, 2, note, len(self.note), 0, 0),
            (".dynsym", 11, 2, symbols_at, len(symbols), 5, 24),
            (".dynstr", 3, 2, strings_at, len(strings), 0, 0),
            (".shstrtab", 3, 0, names_at, len(_SECTION_NAMES), 0, 0),
        )
        table = _put(whole, b"".join((bytes(64), *(_section(*one) for one in sections))), 8)
        segments = [(_LOAD, 5, 0, end)] * self.loads + [(_NOTE, 4, note, len(self.note))] * self.notes
        segments.append((_DYNAMIC, 4, dynamic_at, len(dynamic)))
        packed = b"".join(
            _SEGMENT.pack(kind, flags, at, at, at, size, size, 4) for kind, flags, at, size in segments
        )
        counts = (64, 56, headers, 64, len(sections) + 1, len(sections))
        head = b"\x7fELF\x02\x01\x01\x40\x03" + bytes(7)
        head += struct.pack("<HHIQQQI6H", 3, 224, 1, 0, 64, table, 0x54C, *counts)
        whole[: len(head) + len(packed)] = head + packed
        return bytes(whole)

    def _code(self, whole: bytearray) -> tuple[int, int]:
        """Where the code is, and its descriptor."""
        text = _put(whole, self.text, 256)
        descriptor = _put(whole, bytes(64), 64)
        struct.pack_into("<q", whole, descriptor + 16, text - descriptor)
        struct.pack_into("<III", whole, descriptor + 44, 0, 0x00AF0001, 0x90)
        return text, descriptor

    def _symbols(self, text: int, descriptor: int) -> tuple[bytes, bytes]:
        strings = b"\0k\0k.kd\0" + self.name + b"\0"
        function = (_FUNCTION, 3, _TEXT, text, len(self.text))
        variable = (_OBJECT, 3, _RODATA, descriptor, 64)
        symbols = bytes(24) + _SYMBOL.pack(1, *function) + _SYMBOL.pack(3, *variable)
        return symbols + _SYMBOL.pack(8, *function) * self.functions + _SYMBOL.pack(
            8, *variable
        ) * self.variables, strings


def _put(whole: bytearray, content: bytes, align: int) -> int:
    whole += bytes(-len(whole) % align)
    at = len(whole)
    whole += content
    return at


def _section(name: str, kind: int, flags: int, at: int, size: int, link: int, entry: int) -> bytes:
    place = _SECTION_NAMES.index(name.encode() + b"\0")
    return _SECTION.pack(place, kind, flags, at, at, size, link, 0, 1, entry)
