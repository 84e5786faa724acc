"""The bytes of a region, block by block: holes are passed over, packed ones are unpacked within bounds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCK_BYTES = 1 << 20
PACKED_SUFFIX = ".zst"
#: What a packed byte stands for at most: a block of 4 bytes is one byte 128 KiB long (RFC 8878, 3.1.1.2).
_LARGEST_RATIO = (128 << 10) // 4
_FRAME_BYTES = 64
#: Larger windows are for archives; the capture tool's are far smaller.
_LARGEST_WINDOW = 128 << 20


def blocks_with_data(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each block of ``BLOCK_BYTES`` that may hold something; the others are zeros.

    Raises BadDataError for a packed file that holds other than ``size`` bytes.
    """
    if path.suffix == PACKED_SUFFIX:
        yield from _unpacked(path, size)
        return
    with path.open("rb") as stream:
        for offset in _offsets_with_data(stream.fileno(), size):
            stream.seek(offset)
            yield offset, stream.read(min(BLOCK_BYTES, size - offset))


def packed_size_problem(path: Path, size: int) -> str | None:
    """Why the packed file can't hold ``size`` bytes, told without unpacking it."""
    most = (path.stat().st_size + _FRAME_BYTES) * _LARGEST_RATIO
    return None if size <= most else f"{path.name} is far too small to hold {size} bytes"


def _offsets_with_data(descriptor: int, size: int) -> Iterator[int]:
    offset = 0
    while offset < size:
        try:
            data = os.lseek(descriptor, offset, os.SEEK_DATA)
        except OSError:  # nothing but holes up to the end
            return
        offset = data // BLOCK_BYTES * BLOCK_BYTES
        if offset >= size:
            return
        yield offset
        offset += BLOCK_BYTES


def _unpacked(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise MissingError(
            f"{path.name} is packed, and this Python can't unpack it",
            next_step="pip install 'rpl-vmreplay[zstd]'",
        ) from None
    offset = 0
    unpacker = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    try:
        with path.open("rb") as packed, unpacker.stream_reader(packed, read_across_frames=True) as reader:
            while block := _filled(reader, min(BLOCK_BYTES, size - offset) or 1):
                if offset >= size:
                    raise BadDataError(f"{path.name} holds more than {size} bytes")
                yield offset, block
                offset += len(block)
    except zstandard.ZstdError as error:
        raise BadDataError(f"{path.name} can't be unpacked: {error}") from None
    if offset != size:
        raise BadDataError(f"{path.name} holds {offset} bytes, {size} are said to be in it")


def _filled(reader: object, size: int) -> bytes:
    """``size`` bytes, or what is left."""
    parts = []
    while size and (part := reader.read(size)):  # type: ignore[attr-defined]
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
