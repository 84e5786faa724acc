"""An SQLite file: its header, names and columns, which of them show stored values only."""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rpl_core.values import frozen

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path


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


# The first 100 bytes of an SQLite file: is it one, is it whole, and does it wait for a write-ahead log.
#
# Layout: https://www.sqlite.org/fileformat2.html, section 1.3.

SQLITE_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_WAL_VERSION = 2
_SMALLEST_PAGE = 512


@frozen
class SqliteHeader:
    """What the header says; ``page_count`` is None when the header does not vouch for it."""

    page_bytes: int
    reserved_bytes: int
    page_count: int | None
    write_ahead: bool


def read_header(path: Path) -> SqliteHeader | None:
    """The header, or None when the file is not SQLite (or too short to tell)."""
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    if len(head) < _HEADER_BYTES or not head.startswith(SQLITE_MAGIC):
        return None
    (page_bytes,) = struct.unpack_from(">H", head, 16)
    page_bytes = 0x10000 if page_bytes == 1 else page_bytes
    if page_bytes < _SMALLEST_PAGE or page_bytes & (page_bytes - 1):
        return None
    change, pages = struct.unpack_from(">II", head, 24)
    (valid_for,) = struct.unpack_from(">I", head, 92)
    return SqliteHeader(
        page_bytes=page_bytes,
        reserved_bytes=head[20],
        page_count=pages if pages and change == valid_for else None,
        write_ahead=head[18] == _WAL_VERSION or head[19] == _WAL_VERSION,
    )


def header_problem(path: Path) -> str | None:
    """Why the file can't be a whole SQLite database, or None. Reads 100 bytes."""
    size = path.stat().st_size
    if size == 0:
        return "the file is empty (0 bytes)"
    header = read_header(path)
    if header is None:
        return "the file is not an SQLite database"
    has_log = path.with_name(path.name + "-wal").exists()
    if header.page_count is not None and not has_log and size < header.page_count * header.page_bytes:
        return (
            f"the SQLite database is truncated: its header promises "
            f"{header.page_count * header.page_bytes} bytes, the file has {size}"
        )
    return None


# Which tables and views of a database show stored values and compute nothing.
#
# Views of recordings are ``SELECT * FROM one_table``, joined by ``UNION ALL`` in merged files. Any other view
# may hang, or make gigabytes out of a few bytes, inside one step that can't be interrupted. So may generated
# columns and virtual tables.

_TOKEN = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|\w+|\S')
_WORDS = {"SELECT": "s", "FROM": "f", "UNION": "u", "ALL": "l", "AS": "a"}
_LETTERS = _WORDS | {c: c for c in ",.*;"}
#: SELECT columns FROM one table, and the same again behind UNION ALL; ``n`` stands for a name.
_SELECT = r"s(?:\*|n(?:\.[n*])?(?:a?n)?)(?:,n(?:\.[n*])?(?:a?n)?)*fn(?:a?n)?"
_PLAIN_SELECT = re.compile(f"{_SELECT}(?:ul?{_SELECT})*;?")
#: What every generated column is declared with.
_MAYBE_GENERATED = re.compile(r"\bAS\b", re.IGNORECASE)
_FIRST_ROOT = 2
#: What is known of longer texts is not kept: a recording may hold megabytes of them.
_LONGEST_KEPT = 8192


@frozen
class PlainSchema:
    """Tables that are stored, views that show columns of them, and (table, column) of what is computed."""

    tables: frozenset[str]
    views: frozenset[str]
    computed: frozenset[tuple[str, str]]

    def __contains__(self, name: object) -> bool:
        return name in self.tables or name in self.views


def plain_schema(connection: sqlite3.Connection) -> PlainSchema:
    """Look at the text of the schema; no view is opened."""
    rows = connection.execute("SELECT type, name, rootpage, sql FROM sqlite_master").fetchall()
    tables = frozenset(
        name
        for kind, name, root, sql in rows
        if kind == "table" and isinstance(root, int) and root >= _FIRST_ROOT
    )
    computed = frozenset(
        pair
        for _, name, _, sql in rows
        if name in tables and _MAYBE_GENERATED.search(str(sql))
        for pair in _generated(connection, name)
    )
    known = {name.casefold() for name in tables}
    views = frozenset(
        name for kind, name, _, sql in rows if kind == "view" and _is_plain_view(str(sql), known)
    )
    return PlainSchema(tables, views, computed)


def _generated(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    rows = connection.execute(f"PRAGMA table_xinfo({quoted(table)})")
    return [(table, column) for _, column, _, _, _, _, hidden in rows if hidden]


def _is_plain_view(sql: str, tables: set[str]) -> bool:
    """Whether a view shows columns of ``tables`` and nothing else. Views of views may grow without bounds."""
    # The recordings of a job have the same views, and reading these took longer than all else of a claim.
    shown = _shown_tables(sql) if len(sql) <= _LONGEST_KEPT else _shown_tables.__wrapped__(sql)
    return shown is not None and tables.issuperset(shown)


@lru_cache(maxsize=128)
def _shown_tables(sql: str) -> tuple[str, ...] | None:
    """The tables whose columns a view shows; None for one that does more."""
    tokens: list[str] = _TOKEN.findall(sql)
    upper = [token.upper() for token in tokens]
    if "AS" not in upper:
        return None
    start = upper.index("AS") + 1
    body = "".join(_LETTERS.get(word) or _letter_of(word) for word in upper[start:])
    if not _PLAIN_SELECT.fullmatch(body):
        return None
    return tuple(_name(tokens[start + at + 1]) for at, letter in enumerate(body) if letter == "f")


def _letter_of(word: str) -> str:
    return "n" if word[0] in '"`[' or word.isidentifier() else "?"


def _name(token: str) -> str:
    """The name that a token stands for, as SQLite compares names."""
    quote = token[0]
    if quote == "[":
        return token[1:-1].casefold()
    return token[1:-1].replace(2 * quote, quote).casefold() if quote in '"`' else token.casefold()
