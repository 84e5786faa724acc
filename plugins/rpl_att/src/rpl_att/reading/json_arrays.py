"""Large arrays of integer rows in JSON files of any size, read without building Python lists."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
from numpy.typing import NDArray

from rpl_core.values import frozen

BLOCK_BYTES = 1 << 20
_ALLOWED = b"0123456789[], \t\r\n-"
_SPACES = b" \t\r\n"
#: Every number of so many characters fits into 63 bits.
_MAX_DIGITS = 18
_OPEN, _CLOSE, _COMMA = 0x5B, 0x5D, 0x2C

Rows = NDArray[np.int64]


class NotRowsError(ValueError):
    """The text is no array of rows of this width."""


@frozen
class Span:
    """Bytes ``[begin, end)`` of a stream that hold an array with its outer brackets."""

    begin: int
    end: int


def row_blocks(stream: IO[bytes], span: Span, width: int) -> Iterator[Rows]:
    """The rows of the array at ``span`` in blocks of about a megabyte of text.

    Raises ``NotRowsError`` for anything but integers of 18 digits or less in rows of ``width``.
    """
    stream.seek(span.begin + 1)
    left = span.end - span.begin - 2
    rest = b""
    while left > 0:
        block = stream.read(min(BLOCK_BYTES, left))
        if not block:
            raise NotRowsError("the array ends too early")
        left -= len(block)
        text = rest + block
        cut = text.rfind(b"]") + 1 if left else len(text)
        rest = text[cut:]
        if text[:cut].strip(_SPACES + b","):
            yield parse_rows(text[:cut], width)


def parse_rows(text: bytes, width: int) -> Rows:
    """Rows such as ``[1,2],[3,4]``; a comma before the first or behind the last row is accepted."""
    text = text.translate(None, _SPACES).strip(b",")
    if text.translate(None, _ALLOWED):
        raise NotRowsError("found something else than integers")
    _check_shape(text, width)
    numbers = text.translate(None, b"[]")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            flat = np.fromstring(numbers.decode("ascii"), dtype=np.int64, sep=",")
        except (DeprecationWarning, ValueError):
            raise NotRowsError("found a malformed number") from None
    if len(flat) % width:
        raise NotRowsError("rows are incomplete")
    return flat.reshape(-1, width)


def _check_shape(text: bytes, width: int) -> None:
    """Brackets alternate, and every row has ``width`` - 1 commas."""
    raw = np.frombuffer(text, np.uint8)
    separators = np.flatnonzero((raw == _OPEN) | (raw == _CLOSE) | (raw == _COMMA))
    if len(separators) and np.diff(separators).max(initial=0) > _MAX_DIGITS + 1:
        raise NotRowsError("a number has too many digits")
    places = np.flatnonzero((raw == _OPEN) | (raw == _CLOSE))
    kinds = raw[places]
    if len(kinds) % 2 or np.any(kinds[0::2] != _OPEN) or np.any(kinds[1::2] != _CLOSE):
        raise NotRowsError("rows are nested wrongly")
    commas = np.flatnonzero(raw == _COMMA)
    before_open = np.searchsorted(commas, places[0::2])
    before_close = np.searchsorted(commas, places[1::2])
    if np.any(before_close - before_open != width - 1):
        raise NotRowsError(f"a row has not {width} numbers")
    if np.any(before_open != np.arange(len(before_open)) * width):
        raise NotRowsError("rows are not separated by one comma")


# Find large arrays in a JSON file of any size and return what is left of the file without them.
#
# The file is read in blocks; memory is bounded by the block size and by ``MAX_SKELETON_BYTES``.

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
