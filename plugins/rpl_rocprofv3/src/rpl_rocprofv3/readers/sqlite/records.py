"""Integer and float columns out of the cells of table leaf pages, many rows at a time.

Record layout: https://www.sqlite.org/fileformat2.html, section 2.1. Serial types are taken as one byte up
to the last wanted column, which holds for tables whose long texts come last, as all rocpd tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_rocprofv3.readers.columns import few_groups
from rpl_rocprofv3.readers.sqlite.leaves import PADDING, UnsupportedLayoutError
from rpl_rocprofv3.readers.sqlite.record_values import NULL, WIDTHS, floats, integers, scattered, shared_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.columns import IntegerColumn
    from rpl_rocprofv3.readers.sqlite.record_values import Bytes, ColumnBatch, Rows

__all__ = ["Records"]

_LEAF = 13
_LEAF_HEADER = 8
_LONGEST_VARINT = 8
#: The largest byte that ends a varint, and so the largest serial type of one byte.
_LAST_BYTE = 0x7F
_LARGEST_INT32 = 0x7FFF_FFFF
#: Columns whose serial types differ between the rows of a batch, one byte of a 64-bit key each.
_MOST_VARIED = 8
#: Kinds of rows in a batch up to which reading kind by kind is faster than column by column (measured).
_MOST_LAYOUTS = 16


class Records:
    """The records of one batch of leaf pages, up to their column number ``column_count``.

    The buffer ends with ``PADDING`` bytes behind the last page. With ``long_last`` the last of these columns
    may be of any length, on overflow pages too; then it can be recognised but not read.
    """

    def __init__(
        self, buffer: Bytes, page_bytes: int, usable_bytes: int, column_count: int, *, long_last: bool = False
    ) -> None:
        self._buffer = buffer
        cells = self._cells(page_bytes)
        self._rowid_at = self._behind_varints(cells)
        payload = self._varints(cells, self._rowid_at)
        overflowing = payload > usable_bytes - 35
        if overflowing.any():
            if not long_last:
                raise UnsupportedLayoutError
            payload[overflowing] = (usable_bytes - 12) * 32 // 255 - 23  # what surely lies on this page
        self._head = self._behind_varints(self._rowid_at)
        self._types, self._kinds = self._serial_types(column_count, long_last=long_last)
        self._body = self._head + self._buffer[self._head]
        if len(cells) and int(((cells & (page_bytes - 1)) + payload).max()) > page_bytes:
            raise UnsupportedLayoutError

    def __len__(self) -> int:
        return len(self._head)

    @property
    def rowid(self) -> IntegerColumn:
        """The row ids, in row order."""
        values = self._varints(self._rowid_at, self._head)
        return values.astype(np.int32) if int(values.max(initial=0)) <= _LARGEST_INT32 else values

    def _cells(self, page_bytes: int) -> Int64Column:
        """Position of every cell in the buffer, in row order."""
        bases = np.arange(0, len(self._buffer) - PADDING, page_bytes, dtype=np.int64)
        if (self._buffer[bases] != _LEAF).any():
            raise UnsupportedLayoutError
        counts = self._short(bases + 3)
        if int(counts.max()) * 2 + _LEAF_HEADER > page_bytes:
            raise UnsupportedLayoutError
        # Page by page the positions of the cell pointers, two bytes each.
        at = np.arange(0, 2 * int(counts.sum()), 2)
        at += np.repeat(bases + _LEAF_HEADER - 2 * (np.cumsum(counts) - counts), counts)
        pointers = self._short(at)
        if len(pointers) and int(pointers.max()) >= page_bytes:
            raise UnsupportedLayoutError
        at &= -page_bytes  # the page that holds the pointer: sizes are powers of two
        at += pointers
        return at

    def _short(self, at: Int64Column) -> Int64Column:
        value = self._buffer[at].astype(np.int64)
        value <<= 8
        value |= self._buffer[at + 1]
        return value

    def _behind_varints(self, at: Int64Column) -> Int64Column:
        """The positions behind the varints at ``at``."""
        behind = at + 1
        byte = self._buffer[at]
        rows: Rows = slice(None)
        for _ in range(_LONGEST_VARINT):
            more = byte > _LAST_BYTE
            if not more.any():
                return behind
            if not more.all():
                # From here on only some of them are longer.
                rows = np.flatnonzero(more) if isinstance(rows, slice) else rows[more]
            byte = self._buffer[behind[rows]]
            behind[rows] += 1
        raise UnsupportedLayoutError  # a rowid beyond 2**56

    def _varints(self, at: Int64Column, behind: Int64Column) -> Int64Column:
        """The values of the varints from ``at`` to ``behind``."""
        length = behind - at
        shortest, longest = int(length.min(initial=1)), int(length.max(initial=1))
        value = (self._buffer[at] & 0x7F).astype(np.int64)
        for number in range(1, longest):
            rows = slice(None) if number < shortest else np.flatnonzero(length > number)
            value[rows] = (value[rows] << 7) | (self._buffer[at[rows] + number] & 0x7F)
        return value

    def _serial_types(self, column_count: int, *, long_last: bool) -> tuple[Bytes, list[int | None]]:
        """Serial types of each row, and of each column the one that all rows share or None.

        Needs headers of at least that many columns.
        """
        length = self._buffer[self._head]
        if len(length) and (int(length.max()) > _LAST_BYTE or int(length.min()) < column_count + 1):
            raise UnsupportedLayoutError
        width = -(-column_count // 8) * 8
        types = self._windows(self._head + 1, width)
        if not len(types):
            return types, [None] * column_count
        # Eight columns at a time: which bits any row has set, and in which the rows differ.
        words = types.view(np.uint64).T
        seen = np.array([np.bitwise_or.reduce(word) for word in words]).view(np.uint8)
        varied = np.array([np.bitwise_or.reduce(word ^ word[0]) for word in words]).view(np.uint8)
        certain = column_count - 1 if long_last else column_count
        if int(seen[:certain].max(initial=0)) > _LAST_BYTE:
            raise UnsupportedLayoutError
        first = types[0].tolist()
        return types, [None if varied[i] else first[i] for i in range(column_count)]

    def _windows(self, at: Int64Column, width: int) -> Bytes:
        """The ``width`` bytes at each position, one row each."""
        count = len(self._buffer) - width + 1
        if len(at) and int(at.max()) >= count:
            raise UnsupportedLayoutError
        windows = np.ndarray((count,), f"V{width}", self._buffer, strides=(1,))
        return np.asarray(windows[at].view(np.uint8).reshape(len(at), width))

    def columns(self, wanted: dict[int, bool]) -> dict[int, ColumnBatch]:
        """The columns at the given places; the value says whether a column is wanted as float."""
        layouts = self._layouts(max(wanted, default=0))
        if layouts is None:
            return {
                place: (floats if wanted[place] else integers)(types, self._words_at(at))
                for place, types, at in self.values()
                if place in wanted
            }
        parts = [(rows, self._uniform(rows, types, wanted)) for rows, types in layouts]
        if len(parts) == 1:
            return parts[0][1]
        return {place: scattered(len(self), [(r, found[place]) for r, found in parts]) for place in wanted}

    def _layouts(self, last: int) -> list[tuple[Rows, list[int]]] | None:
        """Rows that store their first columns alike, with the serial types up to column ``last``.

        None where there are so many kinds of rows that columns are better read one by one.
        """
        kinds = self._kinds[: last + 1]
        varied = [place for place, kind in enumerate(kinds) if kind is None]
        if not varied and len(self):
            return [(slice(None), [kind for kind in kinds if kind is not None])]
        if len(varied) > _MOST_VARIED or not len(self):
            return None
        key = np.zeros(len(self), np.uint64)
        for number, place in enumerate(varied):
            key |= self._types[:, place].astype(np.uint64) << np.uint64(8 * number)
        groups = few_groups(key, _MOST_LAYOUTS)
        if groups is None:
            return None
        return [(rows, self._types[rows[0], : last + 1].tolist()) for rows in groups]

    def _uniform(self, rows: Rows, types: list[int], wanted: dict[int, bool]) -> dict[int, ColumnBatch]:
        """Columns of ``rows``, all of whose values lie at the same distance from the begin of the record."""
        offsets = [0, *np.cumsum(WIDTHS[types]).tolist()]
        first, last = min(wanted, default=0), max(wanted, default=0)
        begin, width = offsets[first], offsets[last] - offsets[first] + 8
        body = self._body[rows]
        if width > PADDING - 8:
            raise UnsupportedLayoutError  # long texts between the columns: not worth a way of its own
        windows = self._windows(body + begin, width)
        return {n: shared_kind(types[n], windows, offsets[n] - begin, as_float=f) for n, f in wanted.items()}

    def values(self) -> Iterator[tuple[int, Bytes, Int64Column]]:
        """Place, serial types and positions of the values of each column, in stored order."""
        at = self._body.astype(np.int64)
        last = len(self._kinds) - 1
        for place, kind in enumerate(self._kinds):
            types = np.ascontiguousarray(self._types[:, place])
            yield place, types, at
            if place < last and len(types):
                at = at + (int(WIDTHS[kind]) if kind is not None else WIDTHS[types])

    def rowid_is_in(self, place: int) -> bool:
        """Whether the column stands for the row id, which then is not stored a second time."""
        return self._kinds[place] == NULL or not len(self)

    def text_key(self, rows: Int64Column, at: Int64Column, words: int) -> tuple[NDArray[np.uint64], ...]:
        """The first ``words`` times eight bytes at ``at[rows]``, as big-endian numbers."""
        return tuple(self._words_at(at[rows] + 8 * i).view(np.uint64) for i in range(words))

    def _words_at(self, at: Int64Column) -> Int64Column:
        # A value may end at the end of its page; the window there reaches into the next page or padding.
        return self._windows(at, 8).view(">i8").reshape(-1).astype(np.int64)
