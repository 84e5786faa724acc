"""Columns of SQLite tables, from the pages of the file where their layout is known for certain.

SQLite hands out every value as a Python object, which costs most of the time and memory of a large
recording; decoding pages with numpy costs a fraction. It is done for plain tables of a file that nobody
writes (``open_database`` copies those with a log), and given up for anything else, which SQLite then reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.database import Database, Table, quoted, read_header
from rpl_rocprofv3.readers.columns import group_keys, is_constant, mixed_key
from rpl_rocprofv3.readers.sqlite.records import PageFile, Records, UnsupportedLayoutError

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from rpl_core.model.trace import Float64Column, Int32Column, Int64Column
    from rpl_rocprofv3.readers.columns import IntegerColumn

    Bytes = NDArray[np.uint8]

# A column that arrives batch by batch and is kept once: no pieces that have to be joined at the end.
#
# Many columns of a recording hold one number for all rows (process, GPU, queue). Those cost no memory per
# row, here or in what is computed from them (``row_groups.is_constant``).

_GROWTH = 1.125


class GrowingColumn:
    """int32 while all numbers are, else int64; or float64. ``expected`` is about how many rows will come."""

    def __init__(self, kind: type[np.generic], expected: int) -> None:
        self._expected = expected
        self._length = 0
        self._dtype = np.dtype(kind)
        self._constant: Any = None
        self._stored: NDArray[Any] | None = None

    def extend(self, values: NDArray[Any]) -> None:
        """Append ``values``, whose memory may be used again afterwards."""
        if not len(values):
            return
        self._dtype = np.promote_types(self._dtype, values.dtype)
        if self._stored is None and self._stays_constant(values):
            self._length += len(values)
            return
        end = self._length + len(values)
        self._room(end)[self._length : end] = values
        self._length = end

    def finished(self) -> NDArray[Any]:
        """The column; read-only where all rows hold the same number."""
        if self._stored is None:
            constant = self._dtype.type(0 if self._constant is None else self._constant)
            return np.broadcast_to(constant, self._length)
        # Given back to the system in place: nothing else refers to the memory yet.
        self._stored.resize(self._length, refcheck=False)
        return self._stored

    def _stays_constant(self, values: NDArray[Any]) -> bool:
        if self._dtype.kind == "f":
            return False
        first = values[0]
        if self._length and first != self._constant:
            return False
        if not is_constant(values) and (values[-1] != first or not bool((values == first).all())):
            return False
        self._constant = first
        return True

    def _room(self, end: int) -> NDArray[Any]:
        """The memory of the column, with room for ``end`` rows of the type that is needed by now."""
        stored = self._stored
        if stored is None:
            # Memory that is never written to is never taken from the system.
            stored = np.empty(max(self._expected, end), self._dtype)
            if self._length:
                stored[: self._length] = self._constant
        elif stored.dtype != self._dtype:
            wide = np.empty(len(stored), self._dtype)
            wide[: self._length] = stored[: self._length]
            stored = wide
        if len(stored) < end:
            stored.resize(max(end, int(len(stored) * _GROWTH)), refcheck=False)
        self._stored = stored
        return stored


@frozen(eq=False)
class PageColumns:
    """Columns in the asked order; NULL is -1 or NaN, and so are the ``unreadable`` values.

    Integers are int32 where the file stores all of them in 32 bits, else int64.
    """

    integers: tuple[IntegerColumn, ...]
    floats: tuple[Float64Column, ...]
    unreadable: int

    def __len__(self) -> int:
        return len((*self.integers, *self.floats)[0])


@frozen
class TableLayout:
    """Where a table begins and in which place each column is stored, and which one is the row id."""

    root: int
    places: dict[str, int]
    rowid: str | None


@contextmanager
def open_pages(database: Database) -> Iterator[tuple[PageFile, int]]:
    """The pages of the file that is read, and the usable bytes of each."""
    header = read_header(database.file)
    if header is None:
        raise UnsupportedLayoutError
    descriptor = os.open(database.file, os.O_RDONLY)
    try:
        pages = PageFile(descriptor, header.page_bytes, database.passing)
        yield pages, header.page_bytes - header.reserved_bytes
    finally:
        os.close(descriptor)


def read_pages(
    database: Database, table: str, integers: Sequence[str], floats: Sequence[str] = ()
) -> PageColumns | None:
    """Read whole columns of a table, None where only SQLite can."""
    try:
        layout = table_layout(database.connection, table)
        with open_pages(database) as (pages, usable_bytes):
            return _decode(pages, usable_bytes, layout, integers, floats)
    except (UnsupportedLayoutError, KeyError):
        return None


def table_layout(connection: sqlite3.Connection, table: str) -> TableLayout:
    """The layout of a plain table. Raises ``UnsupportedLayoutError`` for views and special tables."""
    query = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?"
    row = connection.execute(query, (table,)).fetchone()
    if row is None or not isinstance(row[0], int) or row[0] < 2:
        raise UnsupportedLayoutError
    places: dict[str, int] = {}
    rowid = None
    for number, name, kind, _, _, key, hidden in connection.execute(f"PRAGMA table_xinfo({quoted(table)})"):
        if hidden:
            raise UnsupportedLayoutError  # generated columns are not stored in order
        places[name] = number
        if key == 1 and str(kind).upper() == "INTEGER":
            rowid = name
    return TableLayout(row[0], places, rowid)


def _decode(
    pages: PageFile, usable_bytes: int, layout: TableLayout, integers: Sequence[str], floats: Sequence[str]
) -> PageColumns:
    wanted = {layout.places[n]: False for n in integers} | {layout.places[n]: True for n in floats}
    rowid = layout.places[layout.rowid] if layout.rowid in (*integers, *floats) else None
    stored = {place: as_float for place, as_float in wanted.items() if place != rowid}
    leaves = pages.leaves(layout.root)
    columns: dict[int, GrowingColumn] = {}
    unreadable = 0
    for buffer, page_count in pages.batches(leaves):
        records = Records(buffer, pages.page_bytes, usable_bytes, max(wanted, default=0) + 1)
        if rowid is not None and not records.rowid_is_in(rowid):
            raise UnsupportedLayoutError  # an integer primary key that is not the row id
        if not columns:
            expected = len(records) * len(leaves) // page_count
            columns = {n: GrowingColumn(np.float64 if f else np.int32, expected) for n, f in wanted.items()}
        if rowid is not None:
            columns[rowid].extend(records.rowid)
        for place, batch in records.columns(stored).items():
            columns[place].extend(batch.values)
            unreadable += batch.unreadable
    finished = {place: column.finished() for place, column in columns.items()}
    return PageColumns(
        tuple(finished[layout.places[n]] for n in integers),
        tuple(finished[layout.places[n]] for n in floats),
        unreadable,
    )


# Whole integer columns of an SQLite table as numpy arrays.
#
# Values that are no integers become -1; NULL silently, anything else counted, since ids and times of a
# sound recording are integers. The direct page reader is tried first; SQL is the general way.

_CHUNK_ROWS = 1 << 16


@frozen(eq=False)
class IntegerColumns:
    """Columns by name (int32 where all values fit), and how many values were neither integer nor NULL."""

    values: Mapping[str, IntegerColumn]
    unreadable: int

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __getitem__(self, name: str) -> IntegerColumn:
        return self.values[name]

    def wide(self, name: str) -> Int64Column:
        """The column as int64."""
        return self.values[name].astype(np.int64, copy=False)


@frozen(eq=False)
class NumberColumns:
    """Integer columns and one float column, NaN where that holds no number."""

    integers: IntegerColumns
    values: Float64Column


def read_integers(database: Database, table: Table, columns: Sequence[str]) -> IntegerColumns:
    """Read ``columns`` of all rows in order of the row id; a column that the table lacks is all -1."""
    present = [c for c in columns if c in table.columns]
    pages = read_pages(database, table.name, present) if present and table.guid is None else None
    if pages is not None:
        values = dict(zip(present, pages.integers, strict=True))
        return _completed(columns, values, len(pages), pages.unreadable)
    # Without any of the columns there are still rows to count; SQL gives NULL for an absent column.
    asked = present or list(columns[:1])
    return _from_blocks(columns, asked, list(_blocks(database, table, asked)))


def read_numbers(database: Database, table: Table, columns: Sequence[str], value: str) -> NumberColumns:
    """Read integer ``columns`` and the float column ``value`` of all rows in order of the row id."""
    present = [c for c in columns if c in table.columns]
    pages = read_pages(database, table.name, present, [value]) if table.guid is None else None
    if pages is not None:
        values = dict(zip(present, pages.integers, strict=True))
        return NumberColumns(_completed(columns, values, len(pages), pages.unreadable), pages.floats[0])
    parts, floats = [], [np.empty(0, np.float64)]
    for rows in _chunks(database, table, [*present, value]):
        parts.append(_block([row[:-1] for row in rows], len(present)))
        numeric = (v if isinstance(v, (int, float)) else np.nan for *_, v in rows)
        floats.append(np.fromiter(numeric, np.float64, len(rows)))
    return NumberColumns(_from_blocks(columns, present, parts), np.concatenate(floats))


def _completed(
    columns: Sequence[str], values: Mapping[str, IntegerColumn], length: int, unreadable: int
) -> IntegerColumns:
    absent = np.broadcast_to(np.int32(NOT_RECORDED), length)
    return IntegerColumns({c: values.get(c, absent) for c in columns}, unreadable)


def _from_blocks(
    columns: Sequence[str], present: Sequence[str], parts: Sequence[tuple[Int64Column, int]]
) -> IntegerColumns:
    whole = np.concatenate([np.empty((0, len(present)), np.int64), *(block for block, _ in parts)])
    values = {c: np.ascontiguousarray(whole[:, i]) for i, c in enumerate(present)}
    return _completed(columns, values, len(whole), sum(bad for _, bad in parts))


def _chunks(database: Database, table: Table, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    cursor = table.rows(database.connection, columns)
    while rows := list(islice(cursor, _CHUNK_ROWS)):
        yield rows


def _blocks(database: Database, table: Table, columns: Sequence[str]) -> Iterator[tuple[Int64Column, int]]:
    for rows in _chunks(database, table, columns):
        yield _block(rows, len(columns))


def _block(rows: Sequence[tuple[Any, ...]], width: int) -> tuple[Int64Column, int]:
    """Rows as an array of -1 for what is no integer, and how many of those were not NULL."""
    types = set(map(type, chain.from_iterable(rows)))
    values = chain.from_iterable(rows)
    if types <= {int}:
        return np.fromiter(values, np.int64, len(rows) * width).reshape(-1, width), 0
    integers = (v if isinstance(v, int) else NOT_RECORDED for v in values)
    bad = sum(not isinstance(v, int) and v is not None for v in chain.from_iterable(rows))
    return np.fromiter(integers, np.int64, len(rows) * width).reshape(-1, width), bad


# Arguments of API calls by name, in bulk: ``rocpd_arg`` holds one row of text per argument.
#
# A recording has millions of these rows and few distinct texts. As with number columns the database pages
# are decoded directly where that is certain, and SQL is the general way.

_COLUMNS = ("event_id", "name", "value")
_WORD_BYTES = 8
# Longer texts are no pointers and no numbers; they count as one text that says nothing.
_LONGEST_TEXT = 24
_LONG = "(long text)"
_FIRST_TEXT_TYPE = 13
_TOO_LONG = _LONGEST_TEXT + 1
#: Length of a text by the first byte of its serial type, which has a second byte for long texts.
_LENGTHS = np.full(256, _TOO_LONG)
_LENGTHS[:_FIRST_TEXT_TYPE] = _LENGTHS[_FIRST_TEXT_TYPE + 1 : 0x80 : 2] = -1
_LENGTHS[_FIRST_TEXT_TYPE:0x80:2] = np.minimum(np.arange(58), _TOO_LONG)
#: By length which bytes of the words belong to the text: none of one that is too long, or no text (last).
_OWN_BYTES = np.zeros((_TOO_LONG + 2, _LONGEST_TEXT), np.uint8)
_OWN_BYTES[:_TOO_LONG] = np.where(np.tri(_TOO_LONG, _LONGEST_TEXT, -1), 0xFF, 0)
_OWN_WORDS = _OWN_BYTES.view(">u8").astype(np.uint64)


@frozen(eq=False)
class ArgumentTexts:
    """All arguments of one name: the event of each, and its text as ``texts[code]``."""

    event_id: IntegerColumn
    code: Int32Column
    texts: tuple[object, ...]


def read_arguments(database: Database, table: Table, names: Sequence[str]) -> dict[str, ArgumentTexts]:
    """The arguments called one of ``names`` (at most eight letters), in order of the row id."""
    if table.guid is None:
        try:
            return _by_pages(database, table.name, names)
        except (UnsupportedLayoutError, KeyError):
            pass
    return _by_sql(database, table, names)


def _by_sql(database: Database, table: Table, names: Sequence[str]) -> dict[str, ArgumentTexts]:
    events: dict[str, list[int]] = {name: [] for name in names}
    codes: dict[str, list[int]] = {name: [] for name in names}
    texts: dict[str, dict[object, int]] = {name: {} for name in names}
    # The names are constants of the calling module.
    condition = f"name IN ({', '.join(repr(name) for name in names)})"
    for event, name, value in table.rows(database.connection, _COLUMNS, condition):
        if isinstance(event, int):
            events[name].append(event)
            codes[name].append(texts[name].setdefault(value, len(texts[name])))
    return {
        name: ArgumentTexts(
            np.array(events[name], np.int64), np.array(codes[name], np.int32), tuple(texts[name])
        )
        for name in names
    }


def _by_pages(database: Database, table: str, names: Sequence[str]) -> dict[str, ArgumentTexts]:
    layout = table_layout(database.connection, table)
    event, name_place, value = (layout.places[column] for column in _COLUMNS)
    encoding = database.connection.execute("PRAGMA encoding").fetchone()
    if not event < name_place < value or encoding != ("UTF-8",):
        raise UnsupportedLayoutError
    collecting = {name: _Collected() for name in names}
    with open_pages(database) as (pages, usable_bytes):
        for buffer, _ in pages.batches(pages.leaves(layout.root)):
            records = Records(
                *(buffer, pages.page_bytes, usable_bytes, value + 1),
                long_last=True,
                only=(name_place, [_text_type(name) for name in names]),  # most arguments have other names
            )
            columns = {place: (types, at) for place, types, at in records.values()}
            ids = records.columns({event: False})[event].values
            types, at = columns[name_place]
            called = records.text_words(at, 1)[:, 0]
            length, words = _texts(records, *columns[value])
            for name, collected in collecting.items():
                rows = np.flatnonzero(_equal(called, types, name))
                collected.add(ids[rows], length.take(rows), words.take(rows, axis=0))
    return {name: collected.finished() for name, collected in collecting.items()}


def _text_type(text: str) -> int:
    return _FIRST_TEXT_TYPE + 2 * len(text)


def _equal(words: NDArray[np.uint64], types: Bytes, text: str) -> NDArray[np.bool_]:
    """Whether values that begin with the eight bytes are exactly ``text`` (at most eight letters)."""
    wanted = np.uint64(int.from_bytes(text.encode(), "big"))
    same: NDArray[np.bool_] = words >> np.uint64(8 * (_WORD_BYTES - len(text))) == wanted
    same &= types == _text_type(text)
    return same


def _texts(
    records: Records, types: Bytes, at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Length of each text (-1: no text, beyond the limit: a long one), and its bytes as words."""
    length = _LENGTHS[types]
    words = records.text_words(at, _LONGEST_TEXT // _WORD_BYTES)
    words &= _OWN_WORDS.take(length, axis=0)
    return length, words


@attrs.define(eq=False)
class _Collected:
    """The arguments of one name, batch by batch."""

    events: list[NDArray[np.int64]] = attrs.field(factory=list)
    lengths: list[NDArray[np.int64]] = attrs.field(factory=list)
    words: list[NDArray[np.uint64]] = attrs.field(factory=list)

    def add(self, events: NDArray[np.int64], lengths: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
        self.events.append(events)
        self.lengths.append(lengths)
        self.words.append(words)

    def finished(self) -> ArgumentTexts:
        if not self.events:
            return ArgumentTexts(np.empty(0, np.int64), np.empty(0, np.int32), ())
        columns = [np.concatenate(self.lengths), *np.concatenate(self.words).T]
        first, code = group_keys(mixed_key(columns))
        if not all(np.array_equal(column, column[first][code]) for column in columns):
            raise UnsupportedLayoutError  # two texts with one key
        texts = tuple(_text_of_words(*(int(column[row]) for column in columns)) for row in first.tolist())
        return ArgumentTexts(np.concatenate(self.events), code, texts)


def _text_of_words(length: int, *words: int) -> object:
    if length < 0:
        return None
    if length > _LONGEST_TEXT:
        return _LONG
    return b"".join(word.to_bytes(_WORD_BYTES, "big") for word in words)[:length].decode("utf-8", "replace")
