"""Which tables and views of a database show stored values and compute nothing.

Views of recordings are ``SELECT * FROM one_table``, joined by ``UNION ALL`` in merged files. Any other view
may hang, or make gigabytes out of a few bytes, inside one step that can't be interrupted. So may generated
columns and virtual tables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rpl_core.values import frozen
from rpl_rocprofv3.readers.sqlite.tables import quoted

if TYPE_CHECKING:
    import sqlite3

__all__ = ["PlainSchema", "plain_schema"]

_TOKEN = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|\w+|\S')
_WORDS = {"SELECT": "s", "FROM": "f", "UNION": "u", "ALL": "l", "AS": "a"}
_LETTERS = _WORDS | {c: c for c in ",.*;"}
#: SELECT columns FROM one table, and the same again behind UNION ALL; ``n`` stands for a name.
_SELECT = r"s(?:\*|n(?:\.[n*])?(?:a?n)?)(?:,n(?:\.[n*])?(?:a?n)?)*fn(?:a?n)?"
_PLAIN_SELECT = re.compile(f"{_SELECT}(?:ul?{_SELECT})*;?")
#: What every generated column is declared with.
_MAYBE_GENERATED = re.compile(r"\bAS\b", re.IGNORECASE)
_FIRST_ROOT = 2


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
    tokens: list[str] = _TOKEN.findall(sql)
    upper = [token.upper() for token in tokens]
    if "AS" not in upper:
        return False
    start = upper.index("AS") + 1
    body = "".join(_LETTERS.get(word) or _letter_of(word) for word in upper[start:])
    sources = [tokens[start + at + 1] for at, letter in enumerate(body) if letter == "f"]
    return bool(_PLAIN_SELECT.fullmatch(body)) and all(_name(token) in tables for token in sources)


def _letter_of(word: str) -> str:
    return "n" if word[0] in '"`[' or word.isidentifier() else "?"


def _name(token: str) -> str:
    """The name that a token stands for, as SQLite compares names."""
    quote = token[0]
    if quote == "[":
        return token[1:-1].casefold()
    return token[1:-1].replace(2 * quote, quote).casefold() if quote in '"`' else token.casefold()
