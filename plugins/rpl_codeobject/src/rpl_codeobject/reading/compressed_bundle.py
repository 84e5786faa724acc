"""Unpack a compressed offload bundle (magic ``CCOB``), as ``--offload-compress`` writes it.

Layout, all little-endian: LLVM, ``clang/lib/Driver/OffloadBundler.cpp``, ``RawCompressedBundleHeader``:
magic, version (u16), method (u16: 0 zlib, 1 zstd, as ``llvm::compression::Format``); version 1 goes on with
the unpacked size (u32), versions 2 (u32) and 3 (u64) with the whole size and the unpacked size; then the low
half of the MD5 of the unpacked bytes, then the data.
"""

from __future__ import annotations

import hashlib
import struct
import zlib

import attrs

from rpl_core.errors import BadDataError, ForeignFileError, MissingError
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
