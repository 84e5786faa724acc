"""A recording with streams, copies and API calls, and the rows that plain sqlite3 finds in it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

_RUN = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with one timing run."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    command = [sys.executable, "-c", _RUN, "demo", "--recorded", "--runs", "1", "-o", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder


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
