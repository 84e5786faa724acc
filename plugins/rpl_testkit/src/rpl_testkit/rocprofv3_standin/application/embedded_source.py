"""The source that a program's device code was built from: rpl's stand-in for hipcc keeps it in the bundle."""

from __future__ import annotations

import mmap
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rpl_testkit.hipcc_standin.bundle import sources_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["embedded_source"]

_SECTION: Final = b".hip_fatbin"
_BUNDLE: Final = b"__CLANG_OFFLOAD_BUNDLE__"  # a file for ``hipModuleLoad``
#: ELF64, little-endian (System V ABI): e_shoff and e_shentsize, e_shnum, e_shstrndx; fields of Elf64_Shdr.
_MAGIC: Final = b"\x7fELF\x02\x01"
_TABLE_OFFSET: Final = struct.Struct("<Q")
_TABLE_SHAPE: Final = struct.Struct("<HHH")
_HEADER: Final = struct.Struct("<IIQQQQ")


def embedded_source(command: Sequence[str]) -> bytes | None:
    """The sources in the first file that `command` names and that has some; None when no word names such."""
    for word in command:
        program = shutil.which(word) if word == command[0] else word
        if program and Path(program).is_file():
            source = _source_of(Path(program))
            if source is not None:
                return source
    return None


def _source_of(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            section = data[:] if data[: len(_BUNDLE)] == _BUNDLE else b""
            if data[: len(_MAGIC)] == _MAGIC:
                section = next((content for name, content in _sections(data) if name == _SECTION), b"")
            return b"\0".join(sources_in(section)) or None
    except (OSError, ValueError, struct.error):
        return None  # unreadable, empty or cut off: not a program of the stand-in


def _sections(data: mmap.mmap) -> Iterator[tuple[bytes, bytes]]:
    (table,) = _TABLE_OFFSET.unpack_from(data, 0x28)
    size, count, names_at = _TABLE_SHAPE.unpack_from(data, 0x3A)
    headers = [_HEADER.unpack_from(data, table + size * i) for i in range(count)]
    names = headers[names_at][4] if count else 0
    for name, _kind, _flags, _address, offset, length in headers:
        begin = names + name
        yield data[begin : data.find(b"\0", begin)], data[offset : offset + length]
