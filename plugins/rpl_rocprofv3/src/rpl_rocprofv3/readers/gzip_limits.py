"""Reads gzip files within bounds, so that a small hostile file can't fill memory or disk."""

from __future__ import annotations

import gzip
import io
import zlib
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


def unpacked_head(path: Path, count: int) -> bytes:
    """The first ``count`` unpacked bytes; empty when the file is no readable gzip."""
    try:
        with gzip.open(path, "rb") as source:
            return source.read(count)
    except GZIP_ERRORS:
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
    """The unpacked bytes of a gzip file; ``BadDataError`` when more come out than is believable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source = gzip.open(path, "rb")  # noqa: SIM115 - closed by close()
        self._limit = self._left = largest_unpacked_bytes(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._source.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise BadDataError(
                f"{self._path} unpacks to more than {self._limit >> 20} MiB",
                cause="it is not a recording but a decompression bomb",
                next_step="unpack it yourself if you trust it",
            )
        return count

    def close(self) -> None:
        self._source.close()
        super().close()
