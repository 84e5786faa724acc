"""Arguments decoded from pages equal those that SQLite returns."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import attrs
import pytest

from rpl_rocprofv3.database import Tables, open_database
from rpl_rocprofv3.readers import sqlite as argument_texts
from rpl_rocprofv3.readers.sqlite import read_arguments
from rpl_rocprofv3.readers.sqlite.records import UnsupportedLayoutError

NAMES = ("stream", "event", "flags", "device", "deviceId")
OTHERS = ("streams", "strea", "dst", "kind", "Stream", "device\0", "", "hipDeviceProp")
VALUES = (
    *("0x55d0c0a01000", "0x0", "nullptr", "", "7", "x" * 23, "x" * 24, "y" * 24, None, 12, 1.5, b"\x00\xff"),
    *("0x" + "f" * 16, "h\u00e4llo"),
)
LONG = ("x" * 25, "z" * 57, "z" * 58, "z" * 300, "z" * 20_000)


def make(path, rows, encoding="UTF-8"):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute(
            "CREATE TABLE rocpd_arg (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'g', event_id INTEGER, "
            "position INTEGER, type TEXT, name TEXT, value BLOB, extdata TEXT DEFAULT '{}')"
        )
        connection.executemany(
            "INSERT INTO rocpd_arg (event_id, position, type, name, value) VALUES (?, ?, ?, ?, ?)", rows
        )
        connection.commit()
    return path


def random_rows(count, values, seed=1):
    rnd = random.Random(seed)
    return [
        (rnd.randrange(1 << 40), i % 6, "ihipStream_t*", rnd.choice(NAMES + OTHERS), rnd.choice(values))
        for i in range(count)
    ]


def meaning(texts):
    """(event, text) pairs as calls see them: what is no text of up to 24 bytes says nothing."""
    return [
        (event, text if isinstance(text, str) and len(text.encode()) <= 24 else None)
        for event, text in zip(texts.event_id.tolist(), [texts.texts[c] for c in texts.code], strict=True)
    ]


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_pages_and_sql_agree(tmp_path, monkeypatch, count):
    path = make(tmp_path / "a.db", random_rows(count, VALUES + LONG))
    with open_database(path) as database:
        table = Tables(database.connection).get("rocpd_arg")
        fast = argument_texts._by_pages(database, "rocpd_arg", NAMES)
        slow = argument_texts._by_sql(database, table, NAMES)
    for name in NAMES:
        numbers = [(e, None if t == "(long text)" else t) for e, t in meaning(fast[name])]
        # Numbers and blobs in this column are no texts for either way.
        assert numbers == meaning(slow[name]), name


def test_many_distinct_texts_are_kept_apart(tmp_path):
    rows = [(i, 0, "t", "event", hex(0x7F00_0000_0000 + 64 * i)) for i in range(3000)]
    with open_database(make(tmp_path / "a.db", rows)) as database:
        found = read_arguments(database, Tables(database.connection).get("rocpd_arg"), NAMES)["event"]
    assert meaning(found) == [(row[0], row[4]) for row in rows]


def test_arguments_of_another_process_are_left_out(tmp_path):
    path = make(tmp_path / "a.db", [(1, 0, "t", "stream", "0x10"), (2, 0, "t", "stream", "0x20")])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE rocpd_arg SET guid = 'other' WHERE event_id = 1")
        connection.commit()
    with open_database(path) as database:
        table = attrs.evolve(Tables(database.connection).get("rocpd_arg"), guid="g")
        found = read_arguments(database, table, NAMES)["stream"]
    assert meaning(found) == [(2, "0x20")]


def test_keys_that_collide_are_left_to_sqlite(tmp_path, monkeypatch):
    from rpl_rocprofv3.readers import columns

    monkeypatch.setattr(columns, "_MULTIPLIERS", (0,) * 8)
    rows = [(1, 0, "t", "stream", "0x10"), (2, 0, "t", "stream", "0x20")]
    with open_database(make(tmp_path / "a.db", rows)) as database:
        with pytest.raises(UnsupportedLayoutError):
            argument_texts._by_pages(database, "rocpd_arg", NAMES)
        found = read_arguments(database, Tables(database.connection).get("rocpd_arg"), NAMES)["stream"]
    assert meaning(found) == [(1, "0x10"), (2, "0x20")]


@pytest.mark.parametrize("case", ["utf-16", "long type"])
def test_what_pages_do_not_tell_is_left_to_sqlite(tmp_path, case):
    rows = [(1, 0, "t" * 80 if case == "long type" else "t", "stream", "0x10")]
    path = make(tmp_path / "a.db", rows, "UTF-16le" if case == "utf-16" else "UTF-8")
    with open_database(path) as database:
        with pytest.raises(UnsupportedLayoutError):
            argument_texts._by_pages(database, "rocpd_arg", NAMES)
        found = read_arguments(database, Tables(database.connection).get("rocpd_arg"), NAMES)["stream"]
    assert meaning(found) == [(1, "0x10")]
