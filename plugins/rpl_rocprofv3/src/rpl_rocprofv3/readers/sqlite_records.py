"""Integer and float columns out of the cells of table leaf pages, many rows at a time.

Record layout: https://www.sqlite.org/fileformat2.html, section 2.1. Serial types are taken as one byte up
to the last wanted column, which holds for tables whose long texts come last, as all rocpd tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.sqlite_leaves import UnsupportedLayoutError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int64Column

    Bytes = NDArray[np.uint8]

__all__ = ["ColumnBatch", "Records"]

_LEAF = 13
_LEAF_HEADER = 8
_NULL, _REAL, _ZERO, _ONE, _FIRST_TEXT = 0, 7, 8, 9, 12
_WIDEST_INT32 = 4
_LONGEST_VARINT = 8
# Bytes of a value by its serial type; texts and blobs of up to 57 bytes fit one-byte serial types.
_WIDTHS = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((t - 12) // 2 for t in range(12, 128))], np.int64)
_IS_INT32 = np.isin(np.arange(128), (0, 1, 2, 3, 4, 8, 9))
# How far a big-endian word is shifted right to leave the integer, sign extended.
_SHIFTS = np.array([0, 56, 48, 40, 32, 16, 0, 0, *[0] * 120], np.int64)


@attrs.frozen(eq=False)
class ColumnBatch:
    """Values of one column in one batch: int32 or int64, or float64.

    ``unreadable`` values are neither number nor NULL.
    """

    values: NDArray[Any]
    unreadable: int


class Records:
    """The records of one batch of leaf pages, up to their column number ``column_count``.

    With ``long_last`` the last of these columns may be of any length, on overflow pages too; then it can
    be recognised but not read.
    """

    def __init__(
        self, buffer: Bytes, page_bytes: int, usable_bytes: int, column_count: int, *, long_last: bool = False
    ) -> None:
        self._buffer = buffer
        # Eight bytes from every byte on: a window without a copy.
        self._words = np.ndarray((len(buffer) - 8,), ">u8", buffer, strides=(1,))
        cells = self._cells(page_bytes)
        payload, after = self._varints(cells)
        overflowing = payload > usable_bytes - 35
        if overflowing.any():
            if not long_last:
                raise UnsupportedLayoutError
            payload[overflowing] = (usable_bytes - 12) * 32 // 255 - 23  # what surely lies on this page
        self.rowid, head = self._varints(after)
        self._types = self._serial_types(head, column_count, long_last=long_last)
        self._body = head + self._buffer[head]
        if len(head) and int((cells % page_bytes + payload).max()) > page_bytes:
            raise UnsupportedLayoutError

    def __len__(self) -> int:
        return len(self.rowid)

    def _cells(self, page_bytes: int) -> Int64Column:
        """Position of every cell in the buffer, in row order."""
        bases = np.arange(0, len(self._buffer) - page_bytes + 1, page_bytes, dtype=np.int64)
        if (self._buffer[bases] != _LEAF).any():
            raise UnsupportedLayoutError
        counts = self._short(bases + 3)
        if int(counts.max()) * 2 + _LEAF_HEADER > page_bytes:
            raise UnsupportedLayoutError
        base = np.repeat(bases, counts)
        within = np.arange(len(base)) - np.repeat(np.cumsum(counts) - counts, counts)
        pointers = self._short(base + _LEAF_HEADER + 2 * within)
        if len(pointers) and int(pointers.max()) >= page_bytes:
            raise UnsupportedLayoutError
        return base + pointers

    def _short(self, at: Int64Column) -> Int64Column:
        return (self._buffer[at].astype(np.int64) << 8) | self._buffer[at + 1]

    def _varints(self, at: Int64Column) -> tuple[Int64Column, Int64Column]:
        """The varints at ``at`` and the positions behind them."""
        byte = self._buffer[at]
        value = (byte & 0x7F).astype(np.int64)
        after = at + 1
        rows = np.flatnonzero(byte & 0x80)
        for _ in range(_LONGEST_VARINT - 1):
            if not len(rows):
                return value, after
            byte = self._buffer[after[rows]]
            value[rows] = (value[rows] << 7) | (byte & 0x7F)
            after[rows] += 1
            rows = rows[(byte & 0x80) != 0]
        if len(rows):
            raise UnsupportedLayoutError  # a rowid beyond 2**56
        return value, after

    def _serial_types(self, head: Int64Column, column_count: int, *, long_last: bool) -> Bytes:
        """Serial types as one row per column, which needs headers of at least that many columns."""
        length = self._buffer[head]
        if len(head) and (int(length.max()) > 0x7F or int(length.min()) < column_count + 1):
            raise UnsupportedLayoutError
        if len(head) and int(head.max()) + 1 + column_count > len(self._buffer):
            raise UnsupportedLayoutError
        window = np.ndarray(
            (len(self._buffer) - column_count,), f"V{column_count}", self._buffer, strides=(1,)
        )
        types = np.ascontiguousarray(window[head + 1]).view(np.uint8).reshape(-1, column_count)
        certain = types[:, : column_count - 1] if long_last else types
        if certain.size and int(certain.max()) > 0x7F:
            raise UnsupportedLayoutError
        return np.ascontiguousarray(types.T)

    def columns(self, wanted: dict[int, bool]) -> dict[int, ColumnBatch]:
        """The columns at the given places; the value says whether a column is wanted as float."""
        found: dict[int, ColumnBatch] = {}
        for place, types, at in self.values():
            if place in wanted:
                low, high = (int(types.min()), int(types.max())) if len(types) else (0, 0)
                read = self._floats if wanted[place] else self._integers
                found[place] = read(types, at, low, high)
        return found

    def values(self) -> Iterator[tuple[int, Bytes, Int64Column]]:
        """Place, serial types and positions of the values of each column, in stored order."""
        at = self._body.astype(np.int64)
        last = len(self._types) - 1
        for place, types in enumerate(self._types):
            yield place, types, at
            if place < last and len(types):
                low, high = int(types.min()), int(types.max())
                at = at + (int(_WIDTHS[low]) if low == high else _WIDTHS[types])

    def rowid_is_in(self, place: int) -> bool:
        """Whether the column stands for the row id, which then is not stored a second time."""
        return not self._types[place].any()

    def text_key(self, rows: Int64Column, at: Int64Column, words: int) -> tuple[NDArray[np.uint64], ...]:
        """The first ``words`` times eight bytes at ``at[rows]``, as big-endian numbers."""
        return tuple(self._words_at(at[rows] + 8 * i).view(np.uint64) for i in range(words))

    def _integers(self, types: Bytes, at: Int64Column, low: int, high: int) -> ColumnBatch:
        if low == high and low in (_NULL, _ZERO, _ONE):
            constant = {_NULL: NOT_RECORDED, _ZERO: 0, _ONE: 1}[low]
            return ColumnBatch(np.broadcast_to(np.int32(constant), len(types)), 0)
        _refuse_reserved(types)
        values = self._words_at(at)
        values >>= _SHIFTS[low] if low == high else _SHIFTS[types]
        if bool(_IS_INT32[types].all()) if high > _WIDEST_INT32 else True:
            values = values.astype(np.int32)
        if low == high and _NULL < low < _REAL:
            return ColumnBatch(values, 0)
        values[types == _ZERO] = 0
        values[types == _ONE] = 1
        other = (types == _REAL) | (types >= _FIRST_TEXT)
        values[(types == _NULL) | other] = NOT_RECORDED
        return ColumnBatch(values, int(other.sum()))

    def _floats(self, types: Bytes, at: Int64Column, low: int, high: int) -> ColumnBatch:
        words = self._words_at(at)
        if low == high == _REAL:
            return ColumnBatch(words.view(np.float64), 0)
        whole = self._integers(types, at, low, high)
        values = np.where(types == _REAL, words.view(np.float64), whole.values.astype(np.float64))
        text = types >= _FIRST_TEXT
        values[(types == _NULL) | text] = np.nan
        return ColumnBatch(values, int(text.sum()))

    def _words_at(self, at: Int64Column) -> Int64Column:
        # A value may end at the end of its page; the window there reaches into the next page or padding.
        if len(at) and int(at.max()) >= len(self._words):
            raise UnsupportedLayoutError
        return np.asarray(self._words[at].astype(np.uint64).view(np.int64))


def _refuse_reserved(types: Bytes) -> None:
    if ((types == 10) | (types == 11)).any():
        raise UnsupportedLayoutError  # never in a file that SQLite wrote
