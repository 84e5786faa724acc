"""Integer and float columns out of the cells of table leaf pages, many rows at a time.

Record layout: https://www.sqlite.org/fileformat2.html, section 2.1. Serial types are taken as one byte up
to the last wanted column, which holds for tables whose long texts come last, as all rocpd tables.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.trace import NOT_RECORDED, distinct_values
from rpl_core.values import frozen
from rpl_rocprofv3.readers.columns import few_groups, is_constant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.database import PassingHash

    Bytes = NDArray[np.uint8]
    Rows = slice | Int64Column
    from rpl_rocprofv3.readers.columns import IntegerColumn

# The leaf pages of a table B-tree, found through its interior pages.
#
# Layout: https://www.sqlite.org/fileformat2.html, section 1.6. Anything unexpected ends the walk with
# ``UnsupportedLayoutError``; the caller then reads through SQLite.

_INTERIOR, _LEAF = 5, 13
_INTERIOR_HEADER = 12
#: Levels of a tree that SQLite itself follows (BTCURSOR_MAX_DEPTH).
_DEEPEST = 20
# What is computed of a batch at a time should stay in the caches of a core (1 to 4 MiB measured alike).
_BATCH_BYTES = 2 << 20


#: Bytes behind the last page of a batch that can be read, so that windows may begin at any byte of it.
PADDING = 256


class UnsupportedLayoutError(Exception):
    """The table holds something that only SQLite itself should interpret."""


class PageFile:
    """Read access to the pages of a database file that nobody writes."""

    def __init__(self, descriptor: int, page_bytes: int, passing: PassingHash | None = None) -> None:
        self._descriptor = descriptor
        self._passing = passing
        self.page_bytes = page_bytes
        self.page_count = os.fstat(descriptor).st_size // page_bytes

    def leaves(self, root: int) -> Int64Column:
        """Page numbers of all leaves below ``root``, in row order."""
        level = np.array([root], np.int64)
        for _ in range(_DEEPEST):
            if not len(level) or level.min() < 1 or level.max() > self.page_count:
                break
            if len(distinct_values(level)) < len(level):
                break  # every page of a tree has one parent
            if self._page(int(level[0]))[0] == _LEAF:
                return level
            level = np.concatenate([self._children(int(page)) for page in level])
        raise UnsupportedLayoutError

    def _page(self, number: int) -> NDArray[np.uint8]:
        start = (number - 1) * self.page_bytes
        page = np.frombuffer(os.pread(self._descriptor, self.page_bytes, start), np.uint8)
        if len(page) != self.page_bytes:
            raise UnsupportedLayoutError
        return page

    def _children(self, number: int) -> Int64Column:
        page = self._page(number)
        if page[0] != _INTERIOR:
            raise UnsupportedLayoutError
        cells = int(page[3:5].view(">u2")[0])
        end = _INTERIOR_HEADER + 2 * cells
        if end > self.page_bytes:
            raise UnsupportedLayoutError
        pointers = page[_INTERIOR_HEADER:end].view(">u2").astype(np.int64)
        if len(pointers) and int(pointers.max()) + 4 > self.page_bytes:
            raise UnsupportedLayoutError
        children = page[pointers[:, None] + np.arange(4)].view(">u4").astype(np.int64).reshape(-1)
        rightmost = page[8:12].view(">u4").astype(np.int64)
        return np.concatenate([children, rightmost])

    def batches(self, leaves: Int64Column) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """The bytes of the leaves, many pages at a time, with padding behind them, and how many pages.

        One buffer serves all batches: take what is needed before asking for the next.
        """
        pages_per_batch = max(_BATCH_BYTES // self.page_bytes, 1)
        buffer = np.zeros(min(pages_per_batch, len(leaves)) * self.page_bytes + PADDING, np.uint8)
        for first in range(0, len(leaves), pages_per_batch):
            pages = leaves[first : first + pages_per_batch]
            self._gather(pages, buffer)
            yield buffer[: len(pages) * self.page_bytes + PADDING], len(pages)

    def _gather(self, pages: Int64Column, buffer: NDArray[np.uint8]) -> None:
        size = self.page_bytes
        breaks = np.flatnonzero(np.diff(pages) != 1) + 1
        for begin, end in zip([0, *breaks.tolist()], [*breaks.tolist(), len(pages)], strict=True):
            target, at = buffer[begin * size : end * size].data, int(pages[begin] - 1) * size
            if os.preadv(self._descriptor, [target], at) != len(target):
                raise UnsupportedLayoutError
            if self._passing is not None:
                self._passing.saw(self._descriptor, at, target)


# Values out of the bytes of SQLite records: by one serial type that all share, or by the type of each.
#
# Serial types: https://www.sqlite.org/fileformat2.html, section 2.1.

NULL = 0
_REAL, _CONSTANT_0, _CONSTANT_1, _FIRST_TEXT = 7, 8, 9, 12
_WIDEST_INT32 = 4
_CONSTANTS = {NULL: NOT_RECORDED, _CONSTANT_0: 0, _CONSTANT_1: 1}
#: Bytes of a value by its serial type; texts and blobs of up to 57 bytes fit one-byte serial types.
WIDTHS = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((t - 12) // 2 for t in range(12, 128))], np.int64)
_IS_INT32 = np.isin(np.arange(128), (0, 1, 2, 3, 4, 8, 9))
# How far a big-endian word is shifted right to leave the integer, sign extended.
_SHIFTS = np.array([0, 56, 48, 40, 32, 16, 0, 0, *[0] * 120], np.int64)
# By serial type: the number that begins at the value, and how far it is shifted right.
_STORED = {1: (">i1", 0), 2: (">i2", 0), 3: (">i4", 8), 4: (">i4", 0), 5: (">i8", 16), 6: (">i8", 0)}


@frozen(eq=False)
class ColumnBatch:
    """Values of one column in one batch: int32 or int64, or float64.

    ``unreadable`` values are neither number nor NULL.
    """

    values: NDArray[Any]
    unreadable: int


def shared_kind(kind: int, windows: Bytes, offset: int, *, as_float: bool) -> ColumnBatch:
    """Values of one serial type that begin at ``offset`` in each of ``windows``, shape (n, bytes)."""
    _refuse_reserved(kind in (10, 11))
    count, width = windows.shape
    if kind == _REAL and as_float:
        return ColumnBatch(np.ndarray((count,), ">f8", windows, offset, (width,)).astype(np.float64), 0)
    if kind >= _FIRST_TEXT or kind == _REAL or (kind == NULL and as_float):
        unknown = np.broadcast_to(np.nan, count) if as_float else _repeated(NOT_RECORDED, count)
        return ColumnBatch(unknown, count if kind != NULL else 0)
    values: NDArray[Any]
    if kind in _CONSTANTS:
        values = _repeated(_CONSTANTS[kind], count)
    else:
        number, shift = _STORED[kind]
        stored = np.ndarray((count,), number, windows, offset, (width,))
        values = stored.astype(np.int32 if kind <= _WIDEST_INT32 else np.int64)
        values >>= shift
    return ColumnBatch(values.astype(np.float64) if as_float else values, 0)


def _repeated(number: int, count: int) -> NDArray[np.int32]:
    """``np.broadcast_to``, which takes several times as long as most columns of a batch."""
    repeated: NDArray[np.int32] = np.ndarray((count,), np.int32, np.int32(number).tobytes(), 0, (0,))
    return repeated


def scattered(size: int, parts: Sequence[tuple[Rows, ColumnBatch]]) -> ColumnBatch:
    """One column of ``size`` rows out of parts that hold some of them each."""
    unreadable = sum(batch.unreadable for _, batch in parts)
    columns = [batch.values for _, batch in parts]
    first = columns[0]
    if all(is_constant(column) and column[0] == first[0] for column in columns):
        return ColumnBatch(np.broadcast_to(first[0], size), unreadable)
    values = np.empty(size, np.result_type(*columns))
    for rows, batch in parts:
        values[rows] = batch.values
    return ColumnBatch(values, unreadable)


def integers(types: Bytes, words: Int64Column) -> ColumnBatch:
    """Values of any serial types, given the eight bytes that begin at each as big-endian numbers."""
    _refuse_reserved(bool(((types == 10) | (types == 11)).any()))
    values = words >> _SHIFTS[types]
    if bool(_IS_INT32[types].all()):
        values = values.astype(np.int32)
    values[types == _CONSTANT_0] = 0
    values[types == _CONSTANT_1] = 1
    other = (types == _REAL) | (types >= _FIRST_TEXT)
    values[(types == NULL) | other] = NOT_RECORDED
    return ColumnBatch(values, int(other.sum()))


def floats(types: Bytes, words: Int64Column) -> ColumnBatch:
    """The same as float64, NaN where there is no number."""
    whole = integers(types, words)
    values = np.where(types == _REAL, words.view(np.float64), whole.values.astype(np.float64))
    text = types >= _FIRST_TEXT
    values[(types == NULL) | text] = np.nan
    return ColumnBatch(values, int(text.sum()))


def _refuse_reserved(reserved: bool) -> None:
    if reserved:
        raise UnsupportedLayoutError  # never in a file that SQLite wrote


_LEAF_HEADER = 8
_WORD_BYTES = 8
_LONGEST_VARINT = 8
#: The largest byte that ends a varint, and so the largest serial type of one byte.
_LAST_BYTE = 0x7F
_LARGEST_INT32 = 0x7FFF_FFFF
# Bytes of a word by bit: what ends a varint has a clear highest bit.
_ONE = np.uint64(1)
_LOWEST_BITS = np.uint64(0x0101_0101_0101_0101)
_HIGHEST_BITS = np.uint64(0x8080_8080_8080_8080)
#: Columns whose serial types differ between the rows of a batch, one byte of a 64-bit key each.
_MOST_VARIED = 8
#: Kinds of rows in a batch up to which reading kind by kind is faster than column by column (measured).
_MOST_LAYOUTS = 16


class Records:
    """The records of one batch of leaf pages, up to their column number ``column_count``.

    The buffer ends with ``PADDING`` bytes behind the last page. With ``long_last`` the last of these columns
    may be of any length, on overflow pages too; then it can be recognised but not read. ``only`` is the place
    of a column and serial types: the other rows are left out.
    """

    def __init__(
        self,
        buffer: Bytes,
        page_bytes: int,
        usable_bytes: int,
        column_count: int,
        *,
        long_last: bool = False,
        only: tuple[int, Sequence[int]] | None = None,
    ) -> None:
        self._buffer = buffer
        cells = self._cells(page_bytes)
        header_bytes = -(-(column_count + 1) // 8) * 8  # whole words, compared eight columns at a time
        payload, self._rowid_at, self._head, headers = self._fronts(cells, header_bytes)
        overflowing = payload > usable_bytes - 35
        if overflowing.any():
            if not long_last:
                raise UnsupportedLayoutError
            payload[overflowing] = (usable_bytes - 12) * 32 // 255 - 23  # what surely lies on this page
        if len(cells) and int(((cells & (page_bytes - 1)) + payload).max()) > page_bytes:
            raise UnsupportedLayoutError
        self._headers = headers
        self._require_short_headers(column_count, long_last=long_last)
        if only is not None:
            self._keep(*only)
        self._body = self._head + self._headers[:, 0]
        self._kinds = self._shared_types(column_count)

    def __len__(self) -> int:
        return len(self._head)

    @property
    def rowid(self) -> IntegerColumn:
        """The row ids, in row order."""
        values = self._consecutive_rowids()
        if values is None:
            values = self._rowids(slice(None))
        return values.astype(np.int32) if int(values.max(initial=0)) <= _LARGEST_INT32 else values

    def _rowids(self, rows: Rows) -> Int64Column:
        at = self._rowid_at[rows]
        return _varints(self._words_at(at, "<u8"), self._head[rows] - at)

    def _consecutive_rowids(self) -> Int64Column | None:
        """The row ids where those of each page follow each other, as they do unless rows were deleted.

        They ascend within a page (file format, 1.6), so that the first and the last one tell.
        """
        counts = self._counts[self._counts > 0]
        if int(counts.sum()) != len(self):
            return None  # some rows were left out
        behind = np.cumsum(counts)
        first, last = self._rowids(behind - counts), self._rowids(behind - 1)
        if not np.array_equal(last - first, counts - 1):
            return None
        values: Int64Column = np.repeat(first - (behind - counts), counts)
        values += np.arange(len(values))
        return values

    def _cells(self, page_bytes: int) -> Int64Column:
        """Position of every cell in the buffer, in row order."""
        pages = self._buffer[: len(self._buffer) - PADDING].reshape(-1, page_bytes)
        if (pages[:, 0] != _LEAF).any():
            raise UnsupportedLayoutError
        self._counts = counts = pages[:, 3].astype(np.int64) << 8 | pages[:, 4]
        most = int(counts.max())
        if most * 2 + _LEAF_HEADER > page_bytes:
            raise UnsupportedLayoutError
        listed = np.arange(most) < counts[:, None]
        pointers = pages[:, _LEAF_HEADER : _LEAF_HEADER + 2 * most].view(np.uint16)[listed].view(">u2")
        at = pointers.astype(np.int64)
        if len(at) and int(at.max()) >= page_bytes:
            raise UnsupportedLayoutError
        at += np.repeat(np.arange(0, pages.size, page_bytes), counts)
        return at

    def _fronts(
        self, cells: Int64Column, header_bytes: int
    ) -> tuple[Int64Column, Int64Column, Int64Column, Bytes]:
        """Payload bytes of each cell, positions of its row id and of its header, and how that begins.

        Headers stand behind two varints, whose last bytes alone have a clear highest bit.
        """
        fronts = self._windows(cells, _WORD_BYTES + header_bytes)
        words = np.ascontiguousarray(fronts.view("<u8")[:, 0])
        if len(words):
            # As a rule: the rows of a batch are of some size, and their numbers of as many digits.
            ends = ~words[:1] & _HIGHEST_BITS
            size, both = _bytes_up_to_first(np.append(ends, ends & (ends - _ONE))).tolist()
            varied = int(np.bitwise_or.reduce(words) ^ np.bitwise_and.reduce(words)) & int(_HIGHEST_BITS)
            if both < _LONGEST_VARINT and not varied & ((1 << 8 * both) - 1):
                # Copied as one value a row: bytes of two axes take forty times as long.
                headers = np.ndarray(
                    (len(words),), f"V{header_bytes}", fronts, both, (_WORD_BYTES + header_bytes,)
                ).copy()
                return _varints(words, size), cells + size, cells + both, _rows_of_bytes(headers)
        ends = ~words & _HIGHEST_BITS
        rowid_at = cells + _bytes_up_to_first(ends)
        ends &= ends - _ONE
        if ends.all():
            head = cells + _bytes_up_to_first(ends)
        else:  # more than eight bytes
            rowid_at = self._behind_varints(cells)
            head = self._behind_varints(rowid_at)
        return _varints(words, rowid_at - cells), rowid_at, head, self._windows(head, header_bytes)

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

    def _require_short_headers(self, column_count: int, *, long_last: bool) -> None:
        """Of each row its header's length and the serial types of the columns are one byte each."""
        headers = self._headers
        if len(headers):
            seen = np.array([np.bitwise_or.reduce(word) for word in headers.view(np.uint64).T]).view(np.uint8)
            certain = column_count if long_last else column_count + 1
            if int(seen[:certain].max()) > _LAST_BYTE or int(headers[:, 0].min()) < column_count + 1:
                raise UnsupportedLayoutError

    def _keep(self, place: int, types: Sequence[int]) -> None:
        stored = np.ascontiguousarray(self._headers[:, 1 + place])
        # A few comparisons of bytes beat a look-up per row.
        rows = np.flatnonzero(np.logical_or.reduce([stored == kind for kind in sorted(set(types))]))
        self._rowid_at, self._head = self._rowid_at.take(rows), self._head.take(rows)
        self._headers = self._headers.take(rows, axis=0)

    def _shared_types(self, column_count: int) -> list[int | None]:
        """Of each column the serial type that all rows share, or None."""
        if not len(self._headers):
            return [None] * column_count
        words = self._headers.view(np.uint64).T
        varied = np.array([np.bitwise_or.reduce(word ^ word[0]) for word in words]).view(np.uint8).tolist()
        first = self._headers[0].tolist()
        return [None if varied[i] else first[i] for i in range(1, column_count + 1)]

    def _windows(self, at: Int64Column, width: int) -> Bytes:
        """The ``width`` bytes at each position, one row each."""
        count = len(self._buffer) - width + 1
        if len(at) and int(at.max()) >= count:
            raise UnsupportedLayoutError
        return _rows_of_bytes(np.ndarray((count,), f"V{width}", self._buffer, strides=(1,))[at])

    def columns(self, wanted: dict[int, bool]) -> dict[int, ColumnBatch]:
        """The columns at the given places; the value says whether a column is wanted as float."""
        layouts = self._layouts(max(wanted, default=0))
        if layouts is None:
            return {
                place: (floats if wanted[place] else integers)(
                    types, self._words_at(at, ">i8").astype(np.int64)
                )
                for place, types, at in self.values()
                if place in wanted
            }
        parts = [(rows, self._uniform(rows, types, wanted)) for rows, types in layouts]
        if len(parts) == 1:
            return parts[0][1]
        return {place: scattered(len(self), [(r, part[place]) for r, part in parts]) for place in wanted}

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
            key |= self._headers[:, 1 + place].astype(np.uint64) << np.uint64(8 * number)
        groups = few_groups(key, _MOST_LAYOUTS)
        if groups is None:
            return None
        return [(rows, self._headers[rows[0], 1 : last + 2].tolist()) for rows in groups]

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
            types = np.ascontiguousarray(self._headers[:, 1 + place])
            yield place, types, at
            if place < last and len(types):
                at = at + (int(WIDTHS[kind]) if kind is not None else WIDTHS[types])

    def rowid_is_in(self, place: int) -> bool:
        """Whether the column stands for the row id, which then is not stored a second time."""
        return self._kinds[place] == NULL or not len(self)

    def text_words(self, at: Int64Column, words: int) -> NDArray[np.uint64]:
        """The ``words`` times eight bytes at each position as big-endian numbers, shape (n, words)."""
        # A value may end at the end of its page; the window there reaches into the next page or padding.
        return self._windows(at, 8 * words).view(">u8").astype(np.uint64)

    def _words_at(self, at: Int64Column, kind: str) -> NDArray[Any]:
        return self._windows(at, 8).view(kind).reshape(-1)


def _rows_of_bytes(values: NDArray[Any]) -> Bytes:
    return np.asarray(values.view(np.uint8).reshape(len(values), values.itemsize))


def _varints(words: NDArray[np.uint64], length: int | Int64Column) -> Int64Column:
    """The values of the varints of ``length`` bytes with which each little-endian word begins."""
    shortest = length if isinstance(length, int) else int(length.min(initial=1))
    longest = length if isinstance(length, int) else int(length.max(initial=1))
    signed = words.view(np.int64)
    value: Int64Column = signed & np.int64(0x7F)
    for number in range(1, longest):
        rows = slice(None) if number < shortest else np.flatnonzero(length > number)
        value[rows] = (value[rows] << 7) | ((signed[rows] >> (8 * number)) & 0x7F)
    return value


def _bytes_up_to_first(bits: NDArray[np.uint64]) -> Int64Column:
    """Bytes up to and with the one that holds the lowest of ``bits``; 8 where there is none."""
    through = bits ^ (bits - _ONE)
    through &= _LOWEST_BITS
    through *= _LOWEST_BITS  # their sum stands in the highest byte
    through >>= np.uint64(56)
    count: Int64Column = through.view(np.int64)
    return count
