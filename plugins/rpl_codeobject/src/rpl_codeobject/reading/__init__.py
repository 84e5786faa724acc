"""Read every code object of a file, whatever it is packed in, and those that a recording points to."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

import attrs

from rpl_codeobject.kernel_code import CodeObject
from rpl_codeobject.reading.elf_file import device_code_object, host_fatbin, is_device_elf
from rpl_core.errors import BadDataError, ForeignFileError, MissingError
from rpl_core.files import read_regular
from rpl_core.text import counted
from rpl_core.values import frozen

#: The largest file that is read; shipped GPU libraries reach a few hundred megabytes.
MAX_FILE_BYTES = 1 << 30


def read_code_objects(path: Path) -> tuple[CodeObject, ...]:
    """Code objects of ``path`` in file order, at least one.

    Takes ``.hsaco`` files, offload bundles (compressed ones too), and host programs or objects with a
    ``.hip_fatbin`` section. Raises ``MissingError`` without the file or without a decoder for zstd,
    ``ForeignFileError`` for other formats, ``BadDataError`` for damage.
    """
    if path.exists() and not path.is_file():
        raise BadDataError(f"{path} is no regular file", next_step="name a .hsaco or an executable")
    if not path.is_file():
        raise MissingError(f"no file at {path}", next_step="check the path")
    return code_objects_from(read_regular(path, MAX_FILE_BYTES), str(path))


def code_objects_from(data: bytes, where: str) -> tuple[CodeObject, ...]:
    """The same for bytes in memory; ``where`` names them in messages."""
    codes = _unpack(data, where)
    if not codes:
        raise BadDataError(f"{where}: no device code inside")
    return tuple(
        device_code_object(code.code, where if code.entry is None else f"{where} [{code.entry}]")
        for code in codes
    )


def _unpack(data: bytes, where: str) -> tuple[BundledCode, ...]:
    if data.startswith((BUNDLE_MAGIC, COMPRESSED_MAGIC)):
        return split_bundle(data, where)
    refuse_unreadable(data, where)
    if not data.startswith(ELF_MAGIC):
        raise ForeignFileError(
            f"{where}: neither an ELF file nor an offload bundle", next_step="name a .hsaco or an executable"
        )
    if is_device_elf(data, where):
        return (BundledCode(None, data),)
    section = host_fatbin(data, where)
    if section is None:
        raise ForeignFileError(
            f"{where}: a host program without device code", cause="it has no .hip_fatbin section"
        )
    return split_section(section, where)


# Code objects that a recording points to: files beside it, and the URIs that it holds.
#
# A URI is data of whoever made the recording. It is read as a file of this machine only, if that is a
# regular file, within a limit, and nothing of its content is shown.

#: The largest code object that is read without having been named by the user, and how many (chosen).
MAX_RECORDED_BYTES = 64 << 20
_MAX_FILES = 64
_MAX_LISTED = 20_000
_SUFFIXES = (".hsaco", ".co")
#: ``<prefix>_<gfx>_code_object_id_<id>.out``, which rocprofv3 leaves beside thread traces
#: (docs/reference/thread-trace.md, 2.1).
_OF_THREAD_TRACE = re.compile(r"(?:.*_)?code_object_id_\d{1,9}\.out")
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")


def code_beside(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Regular files right in ``folders`` named like code objects; links are not followed."""
    paths: list[Path] = []
    for folder in dict.fromkeys(folders):
        paths += [
            path
            for path in _listed(folder)
            if (path.name.endswith(_SUFFIXES) or _OF_THREAD_TRACE.fullmatch(path.name) is not None)
            and _is_small_file(path)
        ]
    return tuple(paths[:_MAX_FILES])


def read_uri(uri: str) -> tuple[bytes, str]:
    """The bytes that ``file:///path#offset=N&size=N`` names, and the name of the file.

    Raises ``ForeignFileError`` for other URIs, ``MissingError`` without the file, ``BadDataError`` where it
    is no regular file, too large or shorter than the URI says.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise ForeignFileError("a URI of a code object that can't be read") from None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise ForeignFileError(
            f"the code object was loaded from {parts.scheme or 'an unknown place'}, not from a file",
            next_step="give the file with --code-object",
        )
    path = Path(os.fsdecode(unquote_to_bytes(parts.path)))
    offset, size = _range(parts.fragment)
    return _read(path, offset, size), path.name


def _range(fragment: str) -> tuple[int, int | None]:
    given = dict(part.partition("=")[::2] for part in fragment.split("&"))
    for text in given.values():
        if text and _NUMBER.fullmatch(text) is None:
            raise BadDataError("the URI of a code object has an impossible offset or size")
    size = given.get("size")
    return int(given.get("offset") or "0", 0), int(size, 0) if size else None


def _read(path: Path, offset: int, size: int | None) -> bytes:
    try:
        # O_NONBLOCK: opening a pipe must not wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise MissingError(f"{path.name}: {reason}", next_step="give the file with --code-object") from None
    try:
        return os.pread(descriptor, _bytes_to_read(os.fstat(descriptor), path.name, offset, size), offset)
    finally:
        os.close(descriptor)


def _bytes_to_read(facts: os.stat_result, name: str, offset: int, size: int | None) -> int:
    """How many bytes to read. Raises ``BadDataError`` where they are not there or too many."""
    if not stat.S_ISREG(facts.st_mode):
        raise BadDataError(f"{name or 'a folder'} is no regular file")
    wanted = facts.st_size - offset if size is None else size
    if wanted > MAX_RECORDED_BYTES:
        raise BadDataError(
            f"{name} is larger than {MAX_RECORDED_BYTES >> 20} MiB", next_step="give it with --code-object"
        )
    if offset + wanted > facts.st_size or wanted <= 0:
        raise BadDataError(f"{name} ends before the code object does", cause="it was rebuilt")
    return wanted


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:_MAX_LISTED]
    except OSError:
        return []


def _is_small_file(path: Path) -> bool:
    try:
        facts = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_size <= MAX_RECORDED_BYTES


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
