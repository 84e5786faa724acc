"""Reads gzip files within bounds, so that a small hostile file can't fill memory or disk."""

from __future__ import annotations

import io
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import WriteableBuffer

__all__ = [
    "GZIP_ERRORS",
    "BoundedGzip",
    "hollow",
    "largest_unpacked_bytes",
    "refuse_bomb",
    "refuse_hollow",
    "stored_bytes",
    "unpack",
    "unpacked_head",
]

# Real traces shrink by 4 to 20; a database of zero pages by up to 1000. Small files may still be small
# databases with much padding, hence the floor.
_LARGEST_RATIO = 100
_FLOOR_BYTES = 64 << 20
_CEILING_BYTES = 16 << 30
_CHUNK_BYTES = 1 << 20
#: Of deflate itself: 258 bytes take two bits at least.
_HIGHEST_RATIO = 1032
#: Read at once: what a member leaves of it is copied for the next one.
_PACKED_BYTES = 1 << 14
_GZIP = 31  # wbits of zlib: a gzip header and its check sums
#: Parallel packers write members of 64 KiB and more.
_MEMBERS_AT_LEAST = 1000
_BYTES_PER_MEMBER = 1024
#: File systems that compress store a tenth at best of what profilers write.
_LARGEST_HOLE_RATIO = 1000
#: What damaged gzip data raises.
GZIP_ERRORS = (OSError, EOFError, zlib.error)


def largest_unpacked_bytes(path: Path) -> int:
    """How much may come out of ``path`` before it counts as a decompression bomb."""
    return min(max(_FLOOR_BYTES, path.stat().st_size * _LARGEST_RATIO), _CEILING_BYTES)


def stored_bytes(path: Path) -> int:
    """What a file takes on disk, for budgets: holes of a sparse file count nothing."""
    status = path.stat()
    return min(status.st_size, status.st_blocks * 512)


def hollow(path: Path) -> str | None:
    """Why a file that is almost nothing but a hole is not read, or None: reading it would take hours."""
    size, stored = path.stat().st_size, stored_bytes(path)
    if size <= _FLOOR_BYTES or size <= _LARGEST_HOLE_RATIO * stored:
        return None
    return f"the file is {size:,} bytes long and holds {stored:,} bytes of them; the rest is a hole"


def refuse_hollow(path: Path) -> None:
    """Raise ``BadDataError`` for a file that is almost nothing but a hole."""
    if problem := hollow(path):
        raise BadDataError(f"{path}: {problem}", next_step="copy the file again")


def refuse_bomb(path: Path) -> None:
    """Raise ``BadDataError`` for a gzip file out of which too much comes; reading that takes far longer."""
    if path.suffix != ".gz" or path.stat().st_size * _HIGHEST_RATIO <= _FLOOR_BYTES:
        return
    with suppress(*GZIP_ERRORS), BoundedGzip(path) as source:  # who reads it tells of damage
        while source.read(_CHUNK_BYTES):
            pass


def unpacked_head(path: Path, count: int) -> bytes:
    """The first ``count`` unpacked bytes; empty when the file is no readable gzip."""
    try:
        with io.BufferedReader(BoundedGzip(path)) as source:
            return source.read(count)
    except (*GZIP_ERRORS, BadDataError):
        return b""


def unpack(path: Path, target: Path) -> None:
    """Unpack ``path`` into ``target``. Raises ``BadDataError`` for damage or too much output."""
    try:
        with BoundedGzip(path) as source, target.open("wb") as sink:
            while chunk := source.read(_CHUNK_BYTES):
                sink.write(chunk)
    except GZIP_ERRORS as error:
        raise BadDataError(
            f"{path} can't be unpacked: {error}", next_step="copy the file again, or unpack it yourself"
        ) from error


class BoundedGzip(io.RawIOBase):
    """The unpacked bytes of a gzip file; ``BadDataError`` when more come out than is believable.

    Python's own reader loops over empty members without an end and without a word.
    """

    def __init__(self, path: Path) -> None:
        refuse_hollow(path)
        self._path = path
        self._file = path.open("rb")
        self._limit = self._left = largest_unpacked_bytes(path)
        self._members_left = _MEMBERS_AT_LEAST + path.stat().st_size // _BYTES_PER_MEMBER
        self._unpacker: zlib._Decompress | None = None
        self._packed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        data = b""
        while not data and self._in_member():
            data = self._some(len(target))
        target[: len(data)] = data
        self._left -= len(data)
        if self._left < 0:
            raise BadDataError(
                f"{self._path} unpacks to more than {self._limit >> 20} MiB",
                cause="it is not a recording but a decompression bomb",
                next_step="unpack it yourself if you trust it",
            )
        return len(data)

    def _in_member(self) -> bool:
        """Whether there is a member to go on with; zeros behind the last one are padding."""
        if self._unpacker is not None:
            return True
        while not (packed := self._packed.lstrip(b"\0")):
            self._packed = self._file.read(_PACKED_BYTES)
            if not self._packed:
                return False
        self._packed = packed
        self._members_left -= 1
        if self._members_left < 0:
            raise BadDataError(
                f"{self._path} can't be unpacked: it consists of countless tiny parts",
                cause="it is not a recording",
                next_step="unpack it yourself if you trust it",
            )
        self._unpacker = zlib.decompressobj(wbits=_GZIP)
        return True

    def _some(self, most: int) -> bytes:
        """At most so many bytes of the present member, none where it ends."""
        unpacker = self._unpacker
        assert unpacker is not None
        packed = self._packed or self._file.read(_PACKED_BYTES)
        if not packed:
            raise EOFError("it was cut off")
        data = unpacker.decompress(packed, most)
        self._packed = unpacker.unconsumed_tail
        if unpacker.eof:
            self._packed, self._unpacker = unpacker.unused_data, None
        return data

    def close(self) -> None:
        self._file.close()
        super().close()
