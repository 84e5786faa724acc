"""Trees of database pages against a walk written from SQLite's file format, whole and with damaged pointers.

https://www.sqlite.org/fileformat2.html, 1.6: an interior page (type 5) has a header of 12 bytes with the
number of cells at 3 and the rightmost child at 8; each cell begins with its left child. A leaf is of type 13.
"""

from __future__ import annotations

import os
import random
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rpl_rocprofv3.database import open_database
from rpl_rocprofv3.readers.sqlite import read_pages
from rpl_rocprofv3.readers.sqlite.records import PageFile, UnsupportedLayoutError

_SIZE = 512
_CELLS_AT, _RIGHTMOST_AT, _HEADER = 3, 8, 12


class _File:
    """The bytes of a database, with a tree that begins at ``root``."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, bytearray(path.read_bytes())
        with closing(sqlite3.connect(path)) as connection:
            (self.root,) = connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 't'"
            ).fetchone()

    def child_places(self, page: int) -> list[int]:
        """Where in the file the numbers of a page's children stand, in the order of their rows."""
        begin = (page - 1) * _SIZE
        if self.data[begin] != 5:
            return []
        (cells,) = struct.unpack_from(">H", self.data, begin + _CELLS_AT)
        pointers = struct.unpack_from(f">{cells}H", self.data, begin + _HEADER)
        return [*(begin + pointer for pointer in pointers), begin + _RIGHTMOST_AT]

    def number_at(self, place: int) -> int:
        return int.from_bytes(self.data[place : place + 4], "big")

    def leaves(self, page: int) -> Iterator[int]:
        children = [self.number_at(place) for place in self.child_places(page)]
        if not children:
            yield page
        for child in children:
            yield from self.leaves(child)

    def interior(self, page: int) -> Iterator[int]:
        if self.child_places(page):
            yield page
        for place in self.child_places(page):
            yield from self.interior(self.number_at(place))

    def written(self, place: int, value: bytes, name: str) -> Path:
        """A copy in which these bytes stand at ``place``."""
        changed = bytearray(self.data)
        changed[place : place + len(value)] = value
        path = self.path.with_name(name)
        path.write_bytes(changed)
        return path


@pytest.fixture(params=[5, 300, 6_000], ids=["one page", "two levels", "three levels"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> _File:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {_SIZE}")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)")
        rng = random.Random(request.param)
        # In parts that grow beside another table, so that pages of the tree are not in order.
        connection.execute("CREATE TABLE other (id INTEGER PRIMARY KEY, a TEXT)")
        for number in range(request.param):
            connection.execute("INSERT INTO t VALUES (?, ?)", (None, rng.randint(0, 1 << 40)))
            if number % 40 == 0:
                connection.execute("INSERT INTO other VALUES (?, ?)", (None, "x" * 300))
        connection.commit()
    return _File(path)


def test_leaves_come_in_the_order_of_rows(table: _File) -> None:
    descriptor = os.open(table.path, os.O_RDONLY)
    pages = PageFile(descriptor, _SIZE)
    assert pages.leaves(table.root).tolist() == list(table.leaves(table.root))
    for root in (0, len(table.data) // _SIZE + 1):
        with pytest.raises(UnsupportedLayoutError):
            pages.leaves(root)
    os.close(descriptor)


def _is_read(path: Path) -> bool:
    with open_database(path) as database:
        return read_pages(database, "t", ["id", "a"]) is not None


def test_rows_are_those_that_sqlite_gives(table: _File) -> None:
    with open_database(table.path) as database:
        read = read_pages(database, "t", ["id", "a"])
    assert read is not None
    with closing(sqlite3.connect(table.path)) as connection:
        rows = connection.execute("SELECT id, a FROM t ORDER BY id").fetchall()
    assert list(zip(read.integers[0].tolist(), read.integers[1].tolist(), strict=True)) == rows


def test_a_tree_that_is_none_is_left_to_sqlite(table: _File) -> None:
    """A page with two parents or two places, a circle, a page that is not there, one of another kind."""
    rng = random.Random(29)
    pages = len(table.data) // _SIZE
    interior = list(table.interior(table.root))
    if not interior:
        return
    leaves = list(table.leaves(table.root))
    for page in {interior[0], interior[-1], *rng.sample(interior, min(4, len(interior)))}:
        places = table.child_places(page)
        for place in {places[0], places[-1], rng.choice(places)}:
            own = table.number_at(place)
            siblings = [table.number_at(other) for other in places if other != place]
            elsewhere = [leaf for leaf in leaves if leaf not in (*siblings, own)]
            wrong = [0, pages + 1, table.root, page, 2**32 - 1, rng.choice(siblings)]
            # A leaf of another parent: of a tree of two levels there is none.
            wrong += elsewhere[:1] if table.data[(own - 1) * _SIZE] == 13 else leaves[:1]
            for number in wrong:
                path = table.written(place, number.to_bytes(4, "big"), "damaged.db")
                assert not _is_read(path), (page, place, own, number)
        begin = (page - 1) * _SIZE
        for place, value in ((begin, b"\x02"), (begin, b"\x0a"), (begin + _CELLS_AT, b"\xff\xff")):
            assert not _is_read(table.written(place, value, "damaged.db"))
        pointer = table.written(begin + _HEADER, (_SIZE - 3).to_bytes(2, "big"), "damaged.db")
        assert not _is_read(pointer)
