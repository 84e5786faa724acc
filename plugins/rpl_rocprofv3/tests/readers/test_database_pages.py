"""Columns decoded from database pages equal those that SQLite returns, or are left to SQLite."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from rpl_rocprofv3.database import PassingHash, Tables, open_database
from rpl_rocprofv3.readers.sqlite import read_integers, read_numbers, read_pages
from rpl_rocprofv3.readers.sqlite.records import PADDING, Records, UnsupportedLayoutError

INTEGERS = [
    None,
    0,
    1,
    -1,
    127,
    -128,
    128,
    32767,
    -32768,
    1 << 23,
    -(1 << 23) - 1,
    1 << 31,
    1 << 47,
    1 << 62,
    -(1 << 63),
]
FLOATS = [None, 0.0, 1.0, -2.5, 1e300, float("inf"), 3]


def make(
    path,
    rows,
    page_size=4096,
    ddl="id INTEGER PRIMARY KEY, guid TEXT, a INTEGER, v REAL, b BIGINT, note TEXT",
):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(f"CREATE TABLE t ({ddl})")
        marks = ", ".join("?" * len(rows[0])) if rows else ""
        if rows:
            connection.executemany(f"INSERT INTO t VALUES ({marks})", rows)
        connection.commit()
    return path


def random_rows(count, seed=1):
    rnd = random.Random(seed)
    return [
        (
            None,
            "g" * 36,
            rnd.choice(INTEGERS),
            rnd.choice(FLOATS),
            rnd.choice(INTEGERS),
            "x" * rnd.randrange(40),
        )
        for _ in range(count)
    ]


def by_sql(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id, a, b, v FROM t ORDER BY id").fetchall()


@pytest.mark.parametrize("page_size", [512, 1024, 4096, 65536])
@pytest.mark.parametrize("count", [0, 1, 7, 3000])
def test_random_tables_equal_sql(tmp_path, page_size, count):
    path = make(tmp_path / "t.db", random_rows(count), page_size)
    with open_database(path) as database:
        read = read_pages(database, "t", ["id", "a", "b"], ["v"])
    assert read is not None
    expected = by_sql(path)
    for column, place in zip(read.integers, (0, 1, 2), strict=True):
        assert column.tolist() == [-1 if row[place] is None else row[place] for row in expected]
    assert np.array_equal(
        read.floats[0], np.array([np.nan if r[3] is None else r[3] for r in expected], float), equal_nan=True
    )
    assert read.unreadable == 0


def test_values_of_other_types_are_counted_and_unknown_in_both_ways(tmp_path):
    rows = [(None, "g", "seven", "nine", 5, ""), (None, "g", 7, 2.0, 5.5, ""), (None, "g", b"blob", 1, 6, "")]
    path = make(tmp_path / "t.db", rows)
    with open_database(path) as database:
        pages = read_pages(database, "t", ["a", "b"])
        table = Tables(database.connection).get("t")
        both = read_numbers(database, table, ["a", "b"], "v")
        slow = read_integers(database, Tables(database.connection).get("t"), ["a", "b"])
    assert pages.integers[0].tolist() == [-1, 7, -1]
    assert pages.integers[1].tolist() == [5, -1, 6]
    assert pages.unreadable == 3
    assert both.integers["a"].tolist() == [-1, 7, -1]
    assert np.array_equal(both.values, [np.nan, 2.0, 1.0], equal_nan=True)
    assert slow.unreadable == 3


def test_the_way_through_sql_gives_the_same(tmp_path, monkeypatch):
    from rpl_rocprofv3.readers import sqlite as integer_columns

    path = make(tmp_path / "t.db", random_rows(500))
    with open_database(path) as database:
        table = Tables(database.connection).get("t")
        fast = read_numbers(database, table, ["id", "a", "b", "absent"], "v")
        monkeypatch.setattr(integer_columns, "read_pages", lambda *_: None)
        slow = read_numbers(database, table, ["id", "a", "b", "absent"], "v")
    for name in ("id", "a", "b", "absent"):
        assert fast.integers[name].tolist() == slow.integers[name].tolist()
    assert np.array_equal(fast.values, slow.values, equal_nan=True)
    assert fast.integers.unreadable == slow.integers.unreadable


@pytest.mark.parametrize(
    ("ddl", "row"),
    [
        ("a INTEGER PRIMARY KEY, v TEXT) WITHOUT ROWID --", (1, "x")),
        ("a INTEGER, v TEXT, c INTEGER AS (a + 1) STORED", None),
        ("note TEXT, a INTEGER", ("y" * 10_000, 5)),
        ("note TEXT, a INTEGER", ("y" * 100, 5)),
    ],
    ids=["without rowid", "generated column", "overflow pages", "long serial type"],
)
def test_what_pages_do_not_tell_for_certain_is_left_to_sqlite(tmp_path, ddl, row):
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"CREATE TABLE t ({ddl}\n);"
            if "--" not in ddl
            else "CREATE TABLE t (a INTEGER PRIMARY KEY, v TEXT) WITHOUT ROWID;"
        )
        if row is None:
            connection.execute("INSERT INTO t (a, v) VALUES (5, 'x')")
        else:
            connection.execute("INSERT INTO t VALUES (?, ?)", row)
        connection.commit()
    with open_database(path) as database:
        assert read_pages(database, "t", ["a"]) is None
        assert read_integers(database, Tables(database.connection).get("t"), ["a"])["a"].tolist() in (
            [1],
            [5],
        )


def test_a_column_added_later_is_read_with_its_default(tmp_path):
    path = make(tmp_path / "t.db", random_rows(3))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 42")
        connection.commit()
    with open_database(path) as database:
        read = read_integers(database, Tables(database.connection).get("t"), ["late"])
    assert read["late"].tolist() == [42, 42, 42]


def test_deleted_and_updated_rows_do_not_come_back(tmp_path):
    path = make(tmp_path / "t.db", random_rows(4000))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM t WHERE id % 3 = 0")
        connection.execute("UPDATE t SET a = 12345678901 WHERE id % 5 = 0")
        connection.commit()
    with open_database(path) as database:
        read = read_pages(database, "t", ["id", "a"])
    assert list(zip(*(c.tolist() for c in read.integers), strict=True)) == [
        (row[0], -1 if row[1] is None else row[1]) for row in by_sql(path)
    ]


def records(at, *cell):
    """The records of one page of 4096 bytes with a cell that begins at ``at``."""
    buffer = np.zeros(4096 + PADDING, np.uint8)
    buffer[[0, 4, 8, 9]] = (13, 1, at >> 8, at & 0xFF)
    buffer[at : at + len(cell)] = cell
    return Records(buffer, 4096, 4096, 1, long_last=True)


@pytest.fixture
def read_bytes(monkeypatch):
    """The bytes that are read from databases by their places."""
    counts = []
    preadv = os.preadv

    def counted(descriptor, buffers, offset):
        counts.append(preadv(descriptor, buffers, offset))
        return counts[-1]

    monkeypatch.setattr(os, "preadv", counted)
    return counts


@pytest.mark.parametrize("tables", ["", "t", "u", "tu", "ut", "tut"])
def test_the_file_is_hashed_while_its_pages_are_read(tmp_path, read_bytes, tables):
    path = make(tmp_path / "t.db", random_rows(3000))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER)")
        connection.executemany("INSERT INTO u (a) VALUES (?)", [(i,) for i in range(40_000)])
        connection.executemany("INSERT INTO t (a) VALUES (?)", [(i,) for i in range(500)])
        connection.commit()
    with open_database(path) as database:
        for table in tables:
            assert read_pages(database, table, ["id", "a"]) is not None
        found = database.passing.finished()
        assert database.passing.finished() == found
    assert found == hashlib.sha256(path.read_bytes()).hexdigest()
    if tables == "tu":  # in the order of the file: only the last pages of t, which lie behind u, come twice
        assert path.stat().st_size <= sum(read_bytes) < 1.1 * path.stat().st_size


def test_a_file_that_grows_is_not_hashed_beyond_its_size(tmp_path, read_bytes):
    path = tmp_path / "file"
    path.write_bytes(bytes(3000))
    passing = PassingHash(path)
    os.truncate(path, 64 << 20)
    passing.finished()
    assert sum(read_bytes) == 3000


@pytest.mark.parametrize("seed", range(40))
def test_the_hash_is_that_of_the_file_whatever_pieces_come_by(tmp_path, seed):
    """Pieces overlap, leave gaps small and large, come again, or end with the file."""
    rnd = random.Random(seed)
    size = rnd.choice([0, 1, 100, rnd.randrange(10_000)])
    content, path = rnd.randbytes(size), tmp_path / "file"
    path.write_bytes(content)
    passing, behind = PassingHash(path), 0
    with path.open("rb") as stream:
        for _ in range(rnd.randrange(30)):
            jump = rnd.choice([0, 1, size // 20, size // 3])
            begin = rnd.choice([min(behind + jump, size), rnd.randrange(size + 1)])
            piece = content[begin : begin + rnd.randrange(size // 5 + 2)]
            passing.saw(stream.fileno(), begin, memoryview(piece))
            behind = begin + len(piece)
    assert passing.finished() == hashlib.sha256(content).hexdigest()


def test_a_file_that_is_read_from_a_copy_is_not_hashed_by_it(tmp_path):
    path = make(tmp_path / "t.db", random_rows(3))
    packed = tmp_path / "t.db.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with open_database(packed) as database:
        assert database.passing is None


def test_a_cell_must_lie_on_its_page():
    """https://www.sqlite.org/fileformat2.html, 1.6: of a long payload M = (U - 12) * 32 / 255 - 23 bytes at
    least are on the page of the cell. For U = 4096 these are 489.
    """
    long = (0xA7, 0x08, 1, 2, 13)  # 39 * 128 + 8 = 5000 bytes of payload, row 1, one empty text
    assert records(4096 - 489, *long).rowid.tolist() == [1]
    short = (2, 1, 2, 8)
    assert records(4096 - 4, *short).rowid.tolist() == [1]
    for at, cell in ((4096 - 488, long), (4096, short)):
        with pytest.raises(UnsupportedLayoutError):
            records(at, *cell)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_pages_never_crash_and_never_hang(tmp_path, seed):
    rnd = random.Random(seed)
    path = make(tmp_path / "t.db", random_rows(2000, seed), 1024)
    content = bytearray(path.read_bytes())
    for _ in range(rnd.randrange(1, 60)):
        content[rnd.randrange(1024, len(content))] = rnd.randrange(256)
    path.write_bytes(content)
    with open_database(path) as database:
        read = read_pages(database, "t", ["id", "a", "b"], ["v"])
    assert read is None or len({len(c) for c in (*read.integers, *read.floats)}) == 1
