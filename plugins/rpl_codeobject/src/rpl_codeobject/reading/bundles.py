"""Find the device code inside a file: bare ELF, clang offload bundle, or a host ELF with bundles."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator

import attrs

from rpl_core.errors import BadDataError, ForeignFileError, MissingError
from rpl_core.text.table import counted
from rpl_core.values import frozen

COMPRESSED_MAGIC = b"CCOB"
_COMMON = struct.Struct("<4sHH")
#: Version -> what follows the common fields; the hash comes last.
_FIELDS = {1: struct.Struct("<IQ"), 2: struct.Struct("<IIQ"), 3: struct.Struct("<QQQ")}
_ZLIB, _ZSTD = 0, 1
#: zstd's own limit for decoders that are not told otherwise (ZSTD_WINDOWLOG_LIMIT_DEFAULT, 27).
_MAX_WINDOW_BYTES = 1 << 27
_BLOCK_BYTES = 1 << 20


@frozen
class Unpacked:
    """``data`` is the bundle. ``packed_bytes``: what it took of the input, ``None`` where it doesn't say."""

    data: bytes = attrs.field(repr=False)
    packed_bytes: int | None


def unpack_bundle(data: bytes | memoryview, where: str, limit_bytes: int) -> Unpacked:
    """The bundle that begins at ``data[0]``; no more than ``limit_bytes`` are ever unpacked.

    Raises ``BadDataError`` for damage and for more than the limit, ``ForeignFileError`` for a version or
    method of a later compiler, ``MissingError`` without a decoder for zstd.
    """
    header = _header(data, where)
    if header.unpacked_bytes > limit_bytes:
        raise BadDataError(f"{where}: a compressed bundle of {header.unpacked_bytes} bytes is not unpacked")
    if header.end is not None and not header.begin <= header.end <= len(data):
        raise BadDataError(f"{where}: the compressed bundle ends beyond the file", cause="a truncated file")
    decode = _from_zlib if header.method == _ZLIB else _from_zstd
    plain = decode(data[header.begin : header.end], header.unpacked_bytes, where)
    if len(plain) != header.unpacked_bytes or _low_md5(plain) != header.low_md5:
        raise BadDataError(f"{where}: the compressed bundle holds other bytes than it says", cause="damage")
    return Unpacked(plain, header.end)


@frozen
class _Header:
    method: int
    begin: int  # of the compressed data
    end: int | None  # of the whole; version 1 does not say
    unpacked_bytes: int
    low_md5: int


def _header(data: bytes | memoryview, where: str) -> _Header:
    try:
        _, version, method = _COMMON.unpack_from(data)
        if version not in _FIELDS or method not in (_ZLIB, _ZSTD):
            raise ForeignFileError(
                f"{where}: a compressed offload bundle of version {version}, method {method}",
                cause="a compiler later than rpl knows",
                next_step="run `clang-offload-bundler --unbundle`, or build without --offload-compress",
            )
        *sizes, low_md5 = _FIELDS[version].unpack_from(data, _COMMON.size)
    except struct.error as error:
        raise BadDataError(f"{where}: the compressed bundle has no whole header") from error
    begin = _COMMON.size + _FIELDS[version].size
    return _Header(method, begin, sizes[0] if len(sizes) == 2 else None, sizes[-1], low_md5)


def _from_zlib(packed: bytes | memoryview, expected_bytes: int, where: str) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, expected_bytes + 1)
    except zlib.error as error:
        raise BadDataError(f"{where}: the compressed bundle can't be unpacked ({error})") from error


def _from_zstd(packed: bytes | memoryview, expected_bytes: int, where: str) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise MissingError(
            f"{where}: a bundle compressed with zstd, and no decoder for it",
            next_step="pip install 'rpl-codeobject[zstd]', or build without --offload-compress",
        ) from None
    unpacked = bytearray()
    try:
        with zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).stream_reader(packed) as reader:
            while len(unpacked) <= expected_bytes and (block := reader.read(_BLOCK_BYTES)):
                unpacked += block
    except zstandard.ZstdError as error:
        raise BadDataError(f"{where}: the compressed bundle can't be unpacked ({error})") from error
    return bytes(unpacked)


def _low_md5(data: bytes) -> int:
    digest = hashlib.md5(data, usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "little")


# Find the device code inside a file: bare ELF, clang offload bundle, or a host ELF that embeds bundles.
#
# Layout of ``__CLANG_OFFLOAD_BUNDLE__``: clang's ``ClangOffloadBundler`` document. Compressed bundles are
# unpacked first; offload-packager binaries are recognised and named, not unpacked.

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
