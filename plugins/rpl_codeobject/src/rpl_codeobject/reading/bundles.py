"""Find the device code inside a file: bare ELF, clang offload bundle, or a host ELF that embeds bundles.

Layout of ``__CLANG_OFFLOAD_BUNDLE__``: clang's ``ClangOffloadBundler`` document. Compressed bundles are
unpacked first; offload-packager binaries are recognised and named, not unpacked.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import attrs

from rpl_codeobject.reading.compressed_bundle import COMPRESSED_MAGIC, unpack_bundle
from rpl_core.errors import BadDataError, ForeignFileError
from rpl_core.text.table import counted
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
PACKAGER_MAGIC = b"\x10\xff\x10\xad"
ELF_MAGIC = b"\x7fELF"
#: No bundle of a compiler has nearly as many entries; the count comes from the file.
_MAX_ENTRIES = 4096
_MAX_ID_BYTES = 4096
#: The most that all compressed bundles of one file may hold: as much as a file that is read at all.
MAX_UNPACKED_BYTES = 1 << 30


@frozen
class BundledCode:
    """``entry`` is the bundle's own name for the code, ``None`` for a bare code object."""

    entry: str | None
    code: bytes = attrs.field(repr=False)


def split_bundle(data: bytes, where: str) -> tuple[BundledCode, ...]:
    """The non-empty device entries of one bundle, compressed or not, that begins at ``data[0]``."""
    refuse_unreadable(data, where)
    if data.startswith(COMPRESSED_MAGIC):
        data = unpack_bundle(data, where, MAX_UNPACKED_BYTES).data
    if not data.startswith(BUNDLE_MAGIC):
        raise ForeignFileError(f"{where}: neither a code object nor an offload bundle")
    bundled = []
    entries = _entries(data, 0, where)
    if sum(size for _, size, _ in entries) > len(data):
        raise BadDataError(f"{where}: the bundle's entries are larger than it", cause="a truncated file")
    for offset, size, entry in entries:
        if entry.startswith("host") or size == 0:
            continue
        code = data[offset : offset + size]
        if len(code) != size:
            raise BadDataError(f"{where}: entry {entry} ends beyond the file", cause="a truncated file")
        bundled.append(BundledCode(entry, code))
    return tuple(bundled)


def split_section(data: bytes, where: str) -> tuple[BundledCode, ...]:
    """All bundles of a ``.hip_fatbin`` section, which holds one per translation unit."""
    refuse_unreadable(data, where)
    return tuple(code for bundle in _bundles(data, where) for code in split_bundle(bundle, where))


def _bundles(data: bytes, where: str) -> Iterator[bytes]:
    """The bundles of a section in order, the compressed ones unpacked."""
    bundles = _Beginnings(data)
    at, room = bundles.from_(0), MAX_UNPACKED_BYTES
    while at is not None:
        if data.startswith(COMPRESSED_MAGIC, at):
            unpacked = unpack_bundle(memoryview(data)[at:], where, room)
            room -= len(unpacked.data)
            yield unpacked.data
            # Compressed data may look like the next one's beginning, unless nobody knows where they end,
            at = bundles.from_(at + (unpacked.packed_bytes or len(COMPRESSED_MAGIC)))
        else:  # and so may code and the table of entries
            entries = _entries(data, at, where)
            table = len(BUNDLE_MAGIC) + 8 + sum(24 + len(name) for _, _, name in entries)
            begin, at = at, bundles.from_(at + max(table, *(offset + size for offset, size, _ in entries), 0))
            yield data[begin:at]


class _Beginnings:
    """Where bundles begin, for places that only grow: each kind is looked for once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._next = dict.fromkeys((BUNDLE_MAGIC, COMPRESSED_MAGIC), 0)

    def from_(self, start: int) -> int | None:
        for magic, place in self._next.items():
            if place >= 0 and (place < start or not self._data.startswith(magic, place)):
                self._next[magic] = self._data.find(magic, start)
        return min((place for place in self._next.values() if place >= 0), default=None)


def refuse_unreadable(data: bytes, where: str) -> None:
    """``ForeignFileError`` for containers that are known but not unpacked."""
    if data.startswith(PACKAGER_MAGIC):
        raise ForeignFileError(
            f"{where}: an offload-packager binary",
            cause="the program was built with clang's new offload driver",
            next_step="unpack it with `llvm-offload-binary`, then name the extracted code object",
        )


def _entries(data: bytes, start: int, where: str) -> list[tuple[int, int, str]]:
    """Offset (from ``start``), size and name of each entry of the bundle that begins at ``start``."""
    at = start + len(BUNDLE_MAGIC)
    entries = []
    try:
        (count,) = struct.unpack_from("<Q", data, at)
        if count > _MAX_ENTRIES:
            raise BadDataError(f"{where}: the bundle claims {counted(count, 'entry', 'entries')}")
        at += 8
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", data, at)
            at += 24
            if length > _MAX_ID_BYTES or at + length > len(data):
                raise BadDataError(f"{where}: an entry name of {length} bytes at offset {at}")
            entries.append((offset, size, data[at : at + length].decode("utf-8", "replace")))
            at += length
    except struct.error as error:
        raise BadDataError(
            f"{where}: the bundle header ends at offset {at}", cause="a truncated file"
        ) from error
    return entries
