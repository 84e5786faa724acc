"""Columns that arrive in batches: types, constants and memory; and records read kind by kind."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rpl_core.model.trace import Dispatches
from rpl_rocprofv3.database import open_database
from rpl_rocprofv3.readers.columns import (
    Geometry,
    distinct_ids,
    distinct_shapes,
    few_groups,
    is_constant,
    positions,
    typed_columns,
)
from rpl_rocprofv3.readers.sqlite import GrowingColumn, read_pages, records


@pytest.mark.parametrize("expected", [0, 3, 1000])
@pytest.mark.parametrize("seed", range(20))
def test_batches_of_any_kind_join_to_their_values(seed, expected):
    rnd = random.Random(seed)
    column, values = GrowingColumn(np.int32, expected), []
    wide = False
    for _ in range(rnd.randrange(6)):
        kind = rnd.choice([np.int32, np.int64])
        count = rnd.randrange(5)
        part = [7] * count if rnd.random() < 0.6 else [rnd.randrange(-9, 9) for _ in range(count)]
        batch = np.broadcast_to(kind(7), count) if part == [7] * count else np.array(part, kind)
        column.extend(batch)
        values += part
        wide |= kind is np.int64 and count > 0
    found = column.finished()
    assert found.tolist() == values
    assert found.dtype == (np.int64 if wide else np.int32)
    assert is_constant(found) == (len(values) > 0 and len(set(values)) == 1)


def test_a_batch_may_reuse_its_memory():
    column, batch = GrowingColumn(np.int32, 4), np.array([1, 2], np.int32)
    column.extend(batch)
    batch[:] = 9
    column.extend(batch)
    assert column.finished().tolist() == [1, 2, 9, 9]


def test_floats_stay_floats():
    column = GrowingColumn(np.float64, 2)
    column.extend(np.array([np.nan, 2.0]))
    assert column.finished().dtype == np.float64
    assert GrowingColumn(np.float64, 2).finished().dtype == np.float64


def make_table(path, rows):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, guid TEXT, a INT, b INT, v REAL, c INT)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
    return path


@pytest.mark.parametrize("kinds", [1, 2, 5, 40])
def test_rows_of_few_kinds_are_read_like_any_others(tmp_path, monkeypatch, kinds):
    """One layout, several, and more than are worth it; batches of four pages."""
    monkeypatch.setattr(records, "_BATCH_BYTES", 4 * 4096)
    rnd = random.Random(kinds)
    numbers = [0, 1, 5, 300, 70_000, 1 << 28, 1 << 40, -(1 << 60), None, "text", 2.5]
    known = [
        (rnd.choice(numbers), rnd.choice(numbers), rnd.choice([None, 0.5, 3.0, "x"])) for _ in range(kinds)
    ]
    rows = [(i, "g" * 36, *rnd.choice(known), 10**14 + i) for i in range(1, 3000)]
    path = make_table(tmp_path / "t.db", rows)
    with open_database(path) as database:
        read = read_pages(database, "t", ["id", "a", "b", "c"], ["v"])
    assert read is not None
    integer = [[v if isinstance(v, int) else -1 for v in column] for column in zip(*rows, strict=True)]
    for found, place in zip(read.integers, (0, 2, 3, 5), strict=True):
        assert found.tolist() == integer[place]
    floats = [v if isinstance(v, float) else np.nan for *_, v, _ in rows]
    assert np.array_equal(read.floats[0], floats, equal_nan=True)
    bad = sum(
        isinstance(a, (str, float)) + isinstance(b, (str, float)) + isinstance(v, str)
        for _, _, a, b, v, _ in rows
    )
    assert read.unreadable == bad


def test_kind_by_kind_and_column_by_column_agree(tmp_path, monkeypatch):
    rnd = random.Random(4)
    rows = [(i, "g", rnd.choice([0, 1, 7]), rnd.choice([None, 900]), 1.0, i) for i in range(1, 2000)]
    path = make_table(tmp_path / "t.db", rows)

    def read():
        with open_database(path) as database:
            return [c.tolist() for c in read_pages(database, "t", ["a", "b", "c"], ["v"]).integers]

    by_kind = read()
    monkeypatch.setattr(records, "_MOST_LAYOUTS", 0)
    assert read() == by_kind


def test_one_number_for_all_rows_costs_no_memory_and_answers_alike():
    constant, same = np.broadcast_to(np.int32(5), 4), np.full(4, 5, np.int32)
    for keys in ([], [5], [4, 5, 6], [9, 5], [1 << 40, 5]):
        found = positions(constant, keys)
        assert found.tolist() == positions(same, keys).tolist()
        assert is_constant(found)
    assert distinct_ids(constant).tolist() == [5]
    columns = dict.fromkeys(Dispatches.__annotations__, constant)
    typed = typed_columns(Dispatches, columns, np.array([2, 0]))
    assert all(is_constant(column) and column.tolist() == [5, 5] for column in typed.values())
    assert typed["begin_ns"].dtype == np.int64


def test_one_shape_for_all_rows_is_found_without_looking_at_them():
    def shape(*values):
        columns = [np.broadcast_to(np.int32(v), 6) for v in values]
        return distinct_shapes(Geometry(tuple(columns[:3]), tuple(columns[3:6]), columns[6], columns[7]))

    shapes, index, impossible = shape(64, 1, 1, 256, 2, 1, 0, 8)
    assert (shapes.grid.tolist(), index.tolist(), impossible) == ([[256, 2, 1]], [0] * 6, 0)
    shapes, index, impossible = shape(0, 1, 1, 256, 2, 1, 0, 8)
    assert (shapes.grid.tolist(), index.tolist(), impossible) == ([[-1, -1, -1]], [0] * 6, 6)


def test_few_groups_stop_at_their_limit():
    keys = np.array([4, 9, 4, 1, 9], np.uint64)
    assert [rows.tolist() for rows in few_groups(keys, 3)] == [[0, 2], [1, 4], [3]]
    assert few_groups(keys, 2) is None
