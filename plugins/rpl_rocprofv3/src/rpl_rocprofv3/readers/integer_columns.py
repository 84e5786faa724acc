"""Whole integer columns of an SQLite table as numpy arrays.

Values that are no integers become -1; NULL silently, anything else counted, since ids and times of a
sound recording are integers. The direct page reader is tried first; SQL is the general way.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_core.model.trace import NOT_RECORDED
from rpl_rocprofv3.readers.sqlite_pages import read_pages
from rpl_rocprofv3.readers.sqlite_tables import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rpl_core.model.trace import Int64Column
    from rpl_rocprofv3.readers.sqlite_file import Database
    from rpl_rocprofv3.readers.sqlite_tables import Table

__all__ = ["IntegerColumns", "read_integers"]

_CHUNK_ROWS = 1 << 16


@attrs.frozen(eq=False)
class IntegerColumns:
    """Columns by name, and how many values were neither integer nor NULL."""

    values: Mapping[str, Int64Column]
    unreadable: int

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __getitem__(self, name: str) -> Int64Column:
        return self.values[name]


def read_integers(database: Database, table: Table, columns: Sequence[str]) -> IntegerColumns:
    """Read ``columns`` of all rows in order of the row id; a column that the table lacks is all -1."""
    present = [c for c in columns if c in table.columns]
    pages = read_pages(database, table.name, present) if table.guid is None else None
    if pages is not None:
        found = IntegerColumns(dict(zip(present, pages.integers, strict=True)), pages.unreadable)
    else:
        found = _by_sql(database, table, present)
    absent = np.broadcast_to(np.int64(NOT_RECORDED), len(found))
    return IntegerColumns({**dict.fromkeys(columns, absent), **found.values}, found.unreadable)


def _by_sql(database: Database, table: Table, columns: Sequence[str]) -> IntegerColumns:
    clause, parameters = table.where()
    wanted = ", ".join(quoted(c) for c in columns)
    cursor = database.connection.execute(
        f"SELECT {wanted} FROM {quoted(table.name)}{clause}",  # noqa: S608
        parameters,
    )
    parts: list[Int64Column] = []
    unreadable = 0
    while rows := list(islice(cursor, _CHUNK_ROWS)):
        block, bad = _block(rows, len(columns))
        parts.append(block)
        unreadable += bad
    table_of_all = np.concatenate(parts) if parts else np.empty((0, len(columns)), np.int64)
    values = {c: np.ascontiguousarray(table_of_all[:, i]) for i, c in enumerate(columns)}
    return IntegerColumns(values, unreadable)


def _block(rows: list[tuple[Any, ...]], width: int) -> tuple[Int64Column, int]:
    types = set(map(type, chain.from_iterable(rows)))
    if types == {int}:
        flat = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * width)
        return flat.reshape(-1, width), 0
    bad = 0

    def integers() -> Iterator[int]:
        nonlocal bad
        for value in chain.from_iterable(rows):
            if isinstance(value, int):
                yield value
            else:
                bad += value is not None
                yield NOT_RECORDED

    flat = np.fromiter(integers(), np.int64, len(rows) * width)
    return flat.reshape(-1, width), bad
