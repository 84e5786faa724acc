"""Insert many rows of one table quickly, in bounded memory.

Knows batching and the suffix of physical tables; which values a row has is the caller's business.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from rpl_testkit.rocpd_writer.schema.table_model import quoted

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from rpl_testkit.rocpd_writer.identifiers import Events

__all__ = ["TableInsert"]

_BATCH_ROWS = 50_000


class TableInsert:
    """Inserts into the physical tables of one file."""

    def __init__(self, connection: sqlite3.Connection, suffix: str, events: Events) -> None:
        self._connection = connection
        self._suffix = suffix
        self._events = events

    def rows(self, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert `rows` (values in the order of the space-separated `columns`) and their events."""
        statement = self._statement(table, columns)
        iterator = iter(rows)
        while batch := list(islice(iterator, _BATCH_ROWS)):
            self._connection.executemany(statement, batch)
            self._flush_events()

    def _statement(self, table: str, columns: str) -> str:
        names = columns.split()
        marks = ", ".join("?" * len(names))
        listed = ", ".join(map(quoted, names))
        # Names are constants of this package, values are bound.
        return f"INSERT INTO {quoted(table + self._suffix)} ({listed}) VALUES ({marks})"

    def _flush_events(self) -> None:
        pending = self._events.take()
        if pending:
            columns = "id category_id stack_id parent_stack_id correlation_id"
            self._connection.executemany(self._statement("rocpd_event", columns), pending)
