"""Find large arrays in a JSON file of any size and return what is left of the file without them.

The file is read in blocks; memory is bounded by the block size and by ``MAX_SKELETON_BYTES``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import IO

import numpy as np

from rpl_att.reading.numeric_rows import BLOCK_BYTES, Span
from rpl_core.values import frozen

MAX_SKELETON_BYTES = 8 << 20
#: Longer than any key with its colon and brackets, so that none is missed at a block's end.
_OVERLAP = 256
_END_OF_ROWS = re.compile(rb"\]\s{0,64}\]")


class SkeletonError(ValueError):
    """The file has no end to an array, or is too large without its arrays."""


@frozen
class Skeleton:
    """The text with each array replaced by ``null``, and where the arrays are, by key."""

    text: bytes
    arrays: dict[str, Span]


def split_arrays(stream: IO[bytes], rows: Sequence[str], nested: Sequence[str] = ()) -> Skeleton:
    """Cut the non-empty array of arrays behind each key out of the text; keys are regular expressions.

    Arrays of ``rows`` hold rows of numbers, so that the first two closing brackets in a row end them; those
    of ``nested`` may be deeper, and their brackets are counted.
    """
    keys = (*rows, *nested)
    pattern = re.compile(rb'"(' + b"|".join(key.encode("ascii") for key in keys) + rb')"\s*:\s*(?=\[\s*\[)')
    stream.seek(0)
    window = _Window(stream)
    kept = bytearray()
    arrays: dict[str, Span] = {}
    while True:
        match = pattern.search(window.data)
        if match is None:
            kept += window.pass_on(_OVERLAP)
        else:
            key = match[1].decode("ascii")
            kept += window.take(match.end()) + b"null"
            span = Span(window.offset, window.skip_array() if key in nested else window.skip_rows())
            if key in arrays:
                raise SkeletonError(f"{key} occurs twice")
            arrays[key] = span
        if len(kept) > MAX_SKELETON_BYTES:
            raise SkeletonError(f"more than {MAX_SKELETON_BYTES >> 20} MiB beside its arrays")
        if window.done:
            return Skeleton(bytes(kept + window.data), arrays)


class _Window:
    """A moving part of the stream. ``offset`` is the place of its first byte in the stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.data = stream.read(BLOCK_BYTES)
        self.offset = 0
        self.done = False

    def take(self, count: int) -> bytes:
        taken, self.data = self.data[:count], self.data[count:]
        self.offset += count
        return taken

    def pass_on(self, overlap: int) -> bytes:
        """Everything but the last ``overlap`` bytes, replaced by the next block."""
        block = self._stream.read(BLOCK_BYTES)
        if not block:
            self.done = True
            return b""
        taken = self.take(max(0, len(self.data) - overlap))
        self.data += block
        return taken

    def skip_rows(self) -> int:
        """Move behind the array of flat rows that begins here."""
        while (match := _END_OF_ROWS.search(self.data)) is None:
            tail = self.data[-_OVERLAP:]
            self.offset += len(self.data) - len(tail)
            block = self._stream.read(BLOCK_BYTES)
            if not block:
                raise SkeletonError("an array does not end")
            self.data = tail + block
        self.take(match.end())
        return self.offset

    def skip_array(self) -> int:
        """Move behind the array that begins here; returns the offset behind its last bracket."""
        depth = 0
        while True:
            raw = np.frombuffer(self.data, np.uint8)
            steps = (raw == 0x5B).astype(np.int32) - (raw == 0x5D)
            depths = depth + np.cumsum(steps)
            ends = np.flatnonzero((depths == 0) & (steps < 0))
            if len(ends):
                self.take(int(ends[0]) + 1)
                return self.offset
            depth = int(depths[-1]) if len(depths) else depth
            self.offset += len(self.data)
            self.data = self._stream.read(BLOCK_BYTES)
            if not self.data:
                raise SkeletonError("an array does not end")
