"""Changes that turn a good recording into a hostile one, each a small value that hypothesis can shrink."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

#: Values that break naive code: signs, limits of 32 and 64 bits, floats that are none, text, bytes.
CELLS: tuple[Any, ...] = (
    *(None, 0, -1, 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, -(2**63), 1.5, 1e308, -0.0),
    *(
        float("inf"),
        float("nan"),
        "",
        "x",
        "-1",
        "NaN",
        "1e400",
        "9" * 40,
        "\x1b[2J",
        "</script><b>",
        "a\x00b",
    ),
    *("é" * 700, "\udcff", b"\x00\xff", "{", '{"a":[' * 50, "../../etc/passwd"),
)
cells = st.sampled_from(CELLS) | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20)
places = st.integers(0, 2**16)
#: (where, what) of bytes: overwrite, delete, or repeat a piece.
byte_edits = st.lists(
    st.tuples(places, st.sampled_from(("set", "cut", "repeat", "end")), st.binary(min_size=1, max_size=16)),
    min_size=1,
    max_size=6,
)
cell_edits = st.lists(st.tuples(places, places, places, cells), min_size=1, max_size=6)
schema_edits = st.lists(
    st.tuples(st.sampled_from(("drop table", "drop column", "empty", "double", "loop view")), places, places),
    max_size=2,
)


def edit_bytes(data: bytes, edits: list[tuple[int, str, bytes]]) -> bytes:
    for place, kind, piece in edits:
        at = place * max(1, len(data) // 2**16 + 1) % (len(data) + 1)
        if kind == "set":
            data = data[:at] + piece + data[at + len(piece) :]
        elif kind == "cut":
            data = data[:at] + data[at + 64 * len(piece) :]
        elif kind == "repeat":
            data = data[:at] + data[max(0, at - 256) : at] * len(piece) + data[at:]
        else:
            data = data[:at]
    return data


def edit_database(
    path: Path, schema: list[tuple[str, int, int]], edits: list[tuple[int, int, int, Any]]
) -> None:
    """Cells and tables of a SQLite file, changed through SQL, so that the file itself stays valid."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        tables = [name for (name,) in names]
        for table, row, column, value in edits:
            _set_cell(database, tables[table % len(tables)], row, column, value)
        for kind, table, column in schema:
            _change_schema(database, tables[table % len(tables)], kind, column)
        database.commit()


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]


def _set_cell(database: sqlite3.Connection, table: str, row: int, column: int, value: Any) -> None:
    columns = _columns(database, table)
    (count,) = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    if not count or not columns:
        return
    statement = f'UPDATE OR IGNORE "{table}" SET "{columns[column % len(columns)]}" = ? WHERE rowid = '
    statement += f'(SELECT rowid FROM "{table}" LIMIT 1 OFFSET {row % count})'
    try:
        database.execute(statement, (value,))
    except (sqlite3.Error, UnicodeEncodeError, OverflowError):  # the value can't be stored there
        return


def _change_schema(database: sqlite3.Connection, table: str, kind: str, column: int) -> None:
    try:
        columns = _columns(database, table)
    except sqlite3.Error:  # the table has become a view of itself
        return
    if not columns:
        return
    statements = {
        "drop table": f'DROP TABLE "{table}"',
        "drop column": f'ALTER TABLE "{table}" DROP COLUMN "{columns[column % len(columns)]}"',
        "empty": f'DELETE FROM "{table}"',
        "double": f'INSERT OR IGNORE INTO "{table}" SELECT * FROM "{table}"',
        "loop view": f'ALTER TABLE "{table}" RENAME TO "{table}_"',
    }
    try:
        database.execute(statements[kind])
        if kind == "loop view":
            database.execute(f'CREATE VIEW "{table}" AS SELECT * FROM "{table}"')
    except sqlite3.Error:  # a view or an index forbids it
        return


def edit_table(text: str, edits: list[tuple[int, int, int, Any]]) -> str:
    """Cells of a CSV file; a cell may swallow separators and quotes."""
    lines = [line.split(",") for line in text.splitlines()]
    for _, row, column, value in edits:
        line = lines[row % len(lines)]
        line[column % len(line)] = str(value)
    return "\n".join(",".join(line) for line in lines)


def edit_json(text: str, edits: list[tuple[int, int, int, Any]]) -> str:
    """Values of a JSON document at any depth."""
    document = json.loads(text)
    for first, second, third, value in edits:
        node, place = document, first
        while isinstance(node, (dict, list)) and node:
            keys = sorted(node) if isinstance(node, dict) else range(len(node))
            key = keys[place % len(keys)]
            child = node[key]
            if not isinstance(child, (dict, list)) or not child or place % 7 == 3:
                node[key] = repr(value) if isinstance(value, bytes) else value
                break
            node, place = child, place // 2 + second + third
    return json.dumps(document)
