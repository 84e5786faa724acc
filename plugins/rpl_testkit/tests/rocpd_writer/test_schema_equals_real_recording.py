"""The written schema against a real gfx1250 recording: names, columns, types and what the views say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rpl_testkit.rocpd_writer import create_schema
from rpl_testkit.rocpd_writer.tables import SCHEMA_VERSIONS, patch_level

REAL = "rocpd/flydsl-gfx1250-v3/146104_results.db"
SYNTHETIC_PAIR = ("rocpd/synthetic-gfx942/trace_results.db", "rocpd/synthetic-gfx942/pmc_results.db")


def open_read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def names(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    query = "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')"
    return set(connection.execute(query))


def columns(connection: sqlite3.Connection, name: str) -> list[tuple[str, str]]:
    return [(row[1], row[2]) for row in connection.execute(f'PRAGMA table_info("{name}")')]


def guid_of(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT value FROM rocpd_metadata WHERE tag = 'guid'").fetchone()[0])


def safe_columns(connection: sqlite3.Connection, name: str) -> str:
    """All columns but `environment`, which holds secrets in real files."""
    return ", ".join(f'"{column}"' for column, _ in columns(connection, name) if column != "environment")


@pytest.fixture
def real(rpl_shared_data: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_read_only(rpl_shared_data / REAL)) as connection:
        yield connection


@pytest.fixture
def ours(real: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_schema(connection, 0, guid_of(real))
        yield connection


def copy_rows(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    for kind, name in sorted(names(source)):
        if kind == "table" and name != "sqlite_sequence":
            listed = safe_columns(source, name)
            marks = ", ".join("?" * (listed.count(",") + 1))
            rows = source.execute(f'SELECT {listed} FROM "{name}"')
            target.executemany(f'INSERT INTO "{name}" ({listed}) VALUES ({marks})', rows)


@pytest.mark.data
def test_tables_and_views_have_the_names_of_a_real_recording(
    real: sqlite3.Connection, ours: sqlite3.Connection
) -> None:
    assert names(ours) == names(real)


@pytest.mark.data
def test_columns_have_the_order_and_types_of_a_real_recording(
    real: sqlite3.Connection, ours: sqlite3.Connection
) -> None:
    expected = {name: columns(real, name) for _, name in names(real)}
    assert {name: columns(ours, name) for _, name in names(ours)} == expected


@pytest.mark.data
def test_constraints_are_those_of_a_real_recording(
    real: sqlite3.Connection, ours: sqlite3.Connection
) -> None:
    def constraints(connection: sqlite3.Connection, name: str) -> list[tuple[object, ...]]:
        """Name, not-null and primary-key flags; then foreign keys."""
        flags = [(r[1], r[3], r[5]) for r in connection.execute(f'PRAGMA table_info("{name}")')]
        keys = sorted((r[3], r[2], r[4]) for r in connection.execute(f'PRAGMA foreign_key_list("{name}")'))
        return [*flags, *keys]

    tables = sorted(name for kind, name in names(real) if kind == "table")
    assert {n: constraints(ours, n) for n in tables} == {n: constraints(real, n) for n in tables}


@pytest.mark.data
@pytest.mark.parametrize("recording", [REAL, *SYNTHETIC_PAIR])
def test_views_say_the_same_as_the_real_views_over_the_same_rows(
    recording: str, rpl_shared_data: Path
) -> None:
    with (
        closing(open_read_only(rpl_shared_data / recording)) as source,
        closing(sqlite3.connect(":memory:")) as target,
    ):
        create_schema(target, 0, guid_of(source))
        copy_rows(source, target)
        compared = 0
        for kind, name in sorted(names(source)):
            if kind == "view":
                query = f'SELECT {safe_columns(source, name)} FROM "{name}"'
                expected = sorted(map(repr, source.execute(query)))
                assert sorted(map(repr, target.execute(query))) == expected, name
                compared += len(expected)
        assert compared > 300


@pytest.mark.parametrize("version", SCHEMA_VERSIONS)
def test_every_variant_creates_views_that_can_be_queried(version: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_schema(connection, patch_level(version), "00000000-0000-7000-8000-000000000000")
        for kind, name in names(connection):
            if kind == "view":
                assert connection.execute(f'SELECT count(*) FROM "{name}"').fetchone() is not None


@pytest.mark.parametrize(
    ("version", "table", "expected"),
    [
        ("3.0.1", "rocpd_kernel_dispatch", set()),
        ("3.0.2", "rocpd_kernel_dispatch", {"graph_exec_id", "graph_node_id"}),
        ("3.0.2", "rocpd_memory_copy", {"graph_exec_id", "graph_node_id"}),
        ("3.0.3", "rocpd_pmc_event", {"sample_id", "xcc", "shader_engine", "instance"}),
        ("3.0.4", "rocpd_pmc_event", {"sample_id", "xcc", "shader_engine", "instance"}),
        ("3.0.3", "rocpd_info_pmc", {"spm_support"}),
        (
            "3.0.5",
            "rocpd_pmc_event",
            {"sample_id", "xcc", "shader_engine", "instance", "shader_array", "wgp"},
        ),
    ],
)
def test_variant_adds_exactly_its_columns(version: str, table: str, expected: set[str]) -> None:
    found = []
    for level in (0, patch_level(version)):
        with closing(sqlite3.connect(":memory:")) as connection:
            create_schema(connection, level, "00000000-0000-7000-8000-000000000000")
            found.append({name for name, _ in columns(connection, table)})
    assert found[1] - found[0] == expected


@pytest.mark.parametrize(
    ("version", "tables"),
    [
        ("3", set()),
        ("3.0.1", set()),
        ("3.0.3", {"rocpd_graph_launch"}),
        ("3.0.4", {"rocpd_graph_launch", "rocpd_hip_event"}),
    ],
)
def test_variant_adds_exactly_its_tables(version: str, tables: set[str]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        create_schema(connection, patch_level(version), "00000000-0000-7000-8000-000000000000")
        found = {name for _, name in names(connection)}
    assert found & {"rocpd_graph_launch", "rocpd_hip_event"} == tables
