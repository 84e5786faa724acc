"""Numeric columns of a whole table straight from the pages of the database file.

SQLite hands out every value as a Python object, which costs most of the time and memory of a large
recording; decoding pages with numpy costs a fraction. It is used only for plain tables of a file that
nobody writes (``open_database`` copies those with a log), and it gives up, returning None, on anything
that it does not know for certain. Then the same columns are read through SQLite.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from rpl_core.values import frozen
from rpl_rocprofv3.readers.sqlite.growing_columns import GrowingColumn
from rpl_rocprofv3.readers.sqlite.leaves import PageFile, UnsupportedLayoutError
from rpl_rocprofv3.readers.sqlite.records import Records
from rpl_rocprofv3.readers.sqlite.tables import quoted, read_header

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from rpl_core.model.trace import Float64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns import IntegerColumn

__all__ = ["PageColumns", "TableLayout", "open_pages", "read_pages", "table_layout"]


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
        yield PageFile(descriptor, header.page_bytes), header.page_bytes - header.reserved_bytes
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
        for place, batch in records.columns(wanted).items():
            columns[place].extend(records.rowid if place == rowid else batch.values)
            unreadable += batch.unreadable
    finished = {place: column.finished() for place, column in columns.items()}
    return PageColumns(
        tuple(finished[layout.places[n]] for n in integers),
        tuple(finished[layout.places[n]] for n in floats),
        unreadable,
    )
