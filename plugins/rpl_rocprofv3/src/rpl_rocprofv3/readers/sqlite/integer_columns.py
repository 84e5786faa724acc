"""Whole integer columns of an SQLite table as numpy arrays.

Values that are no integers become -1; NULL silently, anything else counted, since ids and times of a
sound recording are integers. The direct page reader is tried first; SQL is the general way.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_core.values import frozen
from rpl_rocprofv3.readers.sqlite.pages import read_pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rpl_core.model.trace import Float64Column, Int64Column
    from rpl_rocprofv3.database import Database
    from rpl_rocprofv3.readers.columns import IntegerColumn
    from rpl_rocprofv3.readers.sqlite.tables import Table

__all__ = ["IntegerColumns", "NumberColumns", "read_integers", "read_numbers"]

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
