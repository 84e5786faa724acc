"""Names and columns of the tables and views of an open database, read once and quoted safely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

__all__ = ["Table", "Tables", "quoted"]


def quoted(name: str) -> str:
    """Quote an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@frozen
class Table:
    """A table or view with its column names. ``guid`` restricts the rows to one profiled process."""

    name: str
    columns: frozenset[str]
    guid: str | None = None

    def where(self, condition: str = "") -> tuple[str, tuple[str, ...]]:
        """The WHERE clause (empty or with a leading space) and its parameters."""
        conditions = [condition] if condition else []
        if self.guid is not None:
            conditions.append("guid = ?")
        clause = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return clause, (self.guid,) if self.guid is not None else ()

    def rows(
        self, connection: sqlite3.Connection, columns: Sequence[str], condition: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of the named columns; a column that the table lacks gives None."""
        wanted = ", ".join(quoted(c) if c in self.columns else "NULL" for c in columns)
        clause, parameters = self.where(condition)
        # Identifiers are quoted and come from the database's own catalogue.
        return connection.execute(f"SELECT {wanted} FROM {quoted(self.name)}{clause}", parameters)  # noqa: S608


class Tables:
    """The catalogue of a database: which tables and views exist and which columns they have."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        rows = connection.execute(
            "SELECT name, type = 'table' FROM sqlite_master WHERE type IN ('table', 'view')"
        ).fetchall()
        self._kinds = {str(name): bool(is_table) for name, is_table in rows}

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def names(self) -> list[str]:
        return sorted(self._kinds)

    def is_table(self, name: str) -> bool:
        return self._kinds.get(name, False)

    def get(self, name: str) -> Table | None:
        """The table or view called ``name``, or None."""
        if name not in self._kinds:
            return None
        info = self._connection.execute(f"PRAGMA table_info({quoted(name)})")
        return Table(name, frozenset(str(row[1]) for row in info))
