"""Arrays of integer rows in JSON text, parsed block by block into numpy without building Python lists.

Knows nothing of traces: ``[[1,2],[3,4]]`` at a place in a stream becomes arrays of shape (n, width).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
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
