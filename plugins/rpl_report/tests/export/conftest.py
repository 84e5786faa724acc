"""A recording with streams, copies and API calls, and the rows that plain sqlite3 finds in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def recorded(demo_run: Path):
    """``recorded(sql)``: rows of the timing run's database."""
    (database,) = (demo_run / ".rocpd_profile").rglob("*.db")

    def query(sql: str) -> list[tuple]:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            return connection.execute(sql).fetchall()

    return query


@pytest.fixture(scope="session")
def recorded_work(recorded) -> list[tuple]:
    """(name, begin, end, stream) of every dispatch and copy, by begin."""
    kernels = recorded("SELECT name, start, end, stream_id FROM kernels")
    copies = recorded("SELECT name, start, end, stream_id FROM memory_copies")
    return sorted(kernels + copies, key=lambda row: row[1:])
