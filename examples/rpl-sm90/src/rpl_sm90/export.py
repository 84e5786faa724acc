"""An SQLite file of ``nsys export``, opened such that it can neither run nor change anything.

Only stored columns of plain tables are read. A file with a write-ahead log or a journal beside it was not
exported to its end and is refused: applying them would change it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rpl_core.errors import BadDataError

_MAGIC = b"SQLite format 3\0"
#: Steps of SQLite's virtual machine: a full scan takes some ten per byte (chosen with room).
_STEPS_PER_BYTE, _STEPS_AT_LEAST, _STEPS_PER_CHECK = 50, 100_000_000, 1_000_000
_LONGEST_TEXT = 4 << 20

Columns = dict[str, NDArray[np.int64]]


class Tables(Protocol):
    """What a session is read from: rows by the names of Nsight's tables and columns."""

    path: Path
    tables: set[str]

    def rows(self, table: str, *names: str) -> list[tuple[Any, ...]]: ...

    def integers(self, table: str, *names: str) -> Columns: ...


class Export:
    """The tables of one open file."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self.path = connection, path
        rows = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
        self.tables = {
            str(name)
            for name, kind, sql in rows
            if kind == "table" and not str(sql).lstrip().upper().startswith("CREATE VIRTUAL")
        }
        connection.set_authorizer(self._allowed)

    def _allowed(self, action: int, first: str | None, *others: str | None) -> int:
        if others[-1] is not None:
            return sqlite3.SQLITE_DENY  # a view or a trigger asks
        if action == sqlite3.SQLITE_READ and first in self.tables:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA and first == "table_info":
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_OK if action == sqlite3.SQLITE_SELECT else sqlite3.SQLITE_DENY

    def rows(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        """Rows of ``table``, ``None`` for columns that this version lacks; none without the table."""
        if table not in self.tables:
            return []
        there = {row[1] for row in self._connection.execute(f'PRAGMA table_info("{table}")')}
        wanted = ", ".join(f'"{name}"' if name in there else "NULL" for name in names)
        return self._connection.execute(f'SELECT {wanted} FROM "{table}"').fetchall()  # noqa: S608

    def integers(self, table: str, *names: str) -> Columns:
        """Columns of numbers, -1 where nothing is recorded."""
        rows = self.rows(table, *names)
        return {
            name: np.fromiter(
                (row[i] if isinstance(row[i], int) else -1 for row in rows), np.int64, count=len(rows)
            )
            for i, name in enumerate(names)
        }


def is_sqlite(path: Path) -> bool:
    """Whether the file begins like a database."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


@contextmanager
def open_export(path: Path) -> Iterator[Export]:
    """Open ``path`` read-only. Raises ``BadDataError`` for whatever SQLite can't read."""
    for companion in ("-wal", "-journal"):
        beside = path.with_name(path.name + companion)
        if beside.is_file() and beside.stat().st_size:
            raise BadDataError(f"{path} was not written to its end", next_step="export it again")
    left = [_STEPS_AT_LEAST + _STEPS_PER_BYTE * path.stat().st_size]

    def step() -> int:
        left[0] -= _STEPS_PER_CHECK
        return int(left[0] < 0)

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as opened:
            opened.execute("PRAGMA trusted_schema = OFF")
            opened.text_factory = _text
            opened.set_progress_handler(step, _STEPS_PER_CHECK)
            yield Export(opened, path)
    except (sqlite3.Error, OverflowError) as error:
        raise BadDataError(
            f"{path} can't be read as an export of Nsight Systems: {error}",
            cause="it is damaged, or computes what it shows",
            next_step="export it again: nsys export --type sqlite",
        ) from error


def _text(raw: bytes) -> str:
    if len(raw) > _LONGEST_TEXT:
        raise sqlite3.DataError(f"a text of {len(raw)} bytes")
    return raw.decode("utf-8", "backslashreplace")


def column_text(rows: Sequence[tuple[Any, ...]]) -> dict[int, str]:
    """Number -> text of rows of two columns."""
    return {number: str(text) for number, text in rows if isinstance(number, int) and text is not None}
