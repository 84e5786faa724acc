"""Find the device code inside a file: bare ELF, clang offload bundle, or a host ELF that embeds bundles.

Layout of ``__CLANG_OFFLOAD_BUNDLE__``: clang's ``ClangOffloadBundler`` document. Compressed bundles
(magic ``CCOB``) and offload-packager binaries are recognised and named, not unpacked.
"""

from __future__ import annotations

import struct

import attrs

from rpl_core.errors import BadDataError, ForeignFileError

BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"
PACKAGER_MAGIC = b"\x10\xff\x10\xad"
ELF_MAGIC = b"\x7fELF"
#: No bundle of a compiler has nearly as many entries; the count comes from the file.
_MAX_ENTRIES = 4096
_MAX_ID_BYTES = 4096


@attrs.frozen
class BundledCode:
    """``entry`` is the bundle's own name for the code, ``None`` for a bare code object."""

    entry: str | None
    code: bytes = attrs.field(repr=False)


def split_bundle(data: bytes, where: str) -> tuple[BundledCode, ...]:
    """The non-empty device entries of one bundle that begins at ``data[0]``."""
    refuse_unreadable(data, where)
    if not data.startswith(BUNDLE_MAGIC):
        raise ForeignFileError(f"{where}: neither a code object nor an offload bundle")
    found = []
    for offset, size, entry in _entries(data, where):
        if entry.startswith("host") or size == 0:
            continue
        code = data[offset : offset + size]
        if len(code) != size:
            raise BadDataError(f"{where}: entry {entry} ends beyond the file", cause="a truncated file")
        found.append(BundledCode(entry, code))
    return tuple(found)


def split_section(data: bytes, where: str) -> tuple[BundledCode, ...]:
    """All bundles of a ``.hip_fatbin`` section, which holds one per translation unit."""
    refuse_unreadable(data, where)
    starts = _occurrences(data, BUNDLE_MAGIC)
    if not starts and (at := data.find(COMPRESSED_MAGIC)) >= 0:
        refuse_unreadable(data[at:], where)
    ends = [*starts[1:], len(data)]
    return tuple(c for s, e in zip(starts, ends, strict=True) for c in split_bundle(data[s:e], where))


def refuse_unreadable(data: bytes, where: str) -> None:
    """``ForeignFileError`` for containers that are known but not unpacked."""
    if data.startswith(COMPRESSED_MAGIC):
        raise ForeignFileError(
            f"{where}: a compressed offload bundle",
            cause="the program was built with --offload-compress",
            next_step="run `clang-offload-bundler --unbundle`, or build without --offload-compress",
        )
    if data.startswith(PACKAGER_MAGIC):
        raise ForeignFileError(
            f"{where}: an offload-packager binary",
            cause="the program was built with clang's new offload driver",
            next_step="unpack it with `llvm-offload-binary`, then name the extracted code object",
        )


def _entries(data: bytes, where: str) -> list[tuple[int, int, str]]:
    at = len(BUNDLE_MAGIC)
    entries = []
    try:
        (count,) = struct.unpack_from("<Q", data, at)
        if count > _MAX_ENTRIES:
            raise BadDataError(f"{where}: the bundle claims {count} entries")
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


def _occurrences(data: bytes, needle: bytes) -> list[int]:
    found = []
    at = data.find(needle)
    while at >= 0:
        found.append(at)
        at = data.find(needle, at + len(needle))
    return found
