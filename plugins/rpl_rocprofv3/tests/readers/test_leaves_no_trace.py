"""Reading never changes the user's file or folder, and never sees the recorded environment."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from rpl_core.errors import BadDataError
from rpl_rocprofv3.readers.rocpd.reader import RocpdReader
from rpl_rocprofv3.readers.sqlite import file


def snapshot(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(folder.iterdir())}


def with_log(path):
    """Turn ``path`` into a database with a write-ahead log that holds one more dispatch, as after a kill."""
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    (table,) = writer.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_kernel_dispatch*'"
    ).fetchone()
    columns = ", ".join(
        f'"{row[1]}"'
        for row in writer.execute(f'PRAGMA table_info("{table}")')
        if row[1] not in ("id", "guid")
    )
    writer.execute(f'INSERT INTO "{table}" ({columns}) SELECT {columns} FROM "{table}" WHERE id = 1')
    writer.execute(f'UPDATE "{table}" SET start = 5000, "end" = 6000, dispatch_id = 99 WHERE id = 2')
    kept = {p: p.read_bytes() for p in (path, path.with_name(path.name + "-wal"))}
    writer.close()
    for p, content in kept.items():
        p.write_bytes(content)
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    return path


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "recording"
    made.mkdir()
    return made


@pytest.fixture
def recording(folder, rpl_make_rocpd):
    path = folder / "run_results.db"
    rpl_make_rocpd([("k", 100, 200)]).rename(path)
    return path


def test_a_plain_file_stays_as_it_is(recording, folder, read):
    before = snapshot(folder)
    read(recording)
    assert snapshot(folder) == before


def test_frames_of_a_write_ahead_log_are_read_and_left_in_place(recording, folder, read):
    with_log(recording)
    before = snapshot(folder)
    assert set(before) == {"run_results.db", "run_results.db-wal"}
    (trace,) = read(recording)
    assert trace.dispatches.dispatch_id.tolist() == [1, 99]
    assert snapshot(folder) == before


def test_a_log_in_a_read_only_folder_is_read_too(recording, folder, read):
    with_log(recording)
    folder.chmod(0o555)
    try:
        (trace,) = read(recording)
        assert len(trace.dispatches) == 2
    finally:
        folder.chmod(0o755)


def test_a_write_ahead_database_without_log_needs_no_companions(recording, folder, read):
    with closing(sqlite3.connect(recording)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    before = snapshot(folder)
    assert set(before) == {"run_results.db"}
    read(recording)
    assert snapshot(folder) == before


def test_no_room_for_the_copy_says_what_to_do(recording, monkeypatch):
    with_log(recording)
    full = type("Usage", (), {"free": 10})
    monkeypatch.setattr(file.shutil, "disk_usage", lambda _: full)
    (found,) = RocpdReader().claim([recording])
    assert "unfinished changes in run_results.db-wal" in found.refusal
    assert "TMPDIR" in found.next_step


def test_a_file_that_changes_while_it_is_copied_is_not_trusted(recording, monkeypatch):
    with_log(recording)
    states = iter(range(100))
    monkeypatch.setattr(file, "_state", lambda _: (next(states), 0))
    with pytest.raises(BadDataError, match="being written"), file.open_database(recording):
        pass


def test_an_unfinished_rollback_journal_is_rolled_back_in_a_copy(recording, folder, read):
    writer = sqlite3.connect(recording, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    tables = writer.execute(
        "SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_kernel_dispatch_*'"
    ).fetchall()
    writer.execute(f'UPDATE "{tables[0][0]}" SET dispatch_id = 77')
    writer.execute("CREATE TABLE filler (x)")
    writer.executemany("INSERT INTO filler VALUES (?)", [("y" * 3000,)] * 400)
    kept = {p: p.read_bytes() for p in folder.iterdir()}
    assert any(p.name.endswith("-journal") and content for p, content in kept.items())
    writer.execute("ROLLBACK")
    writer.close()
    for p, content in kept.items():
        p.write_bytes(content)
    before = snapshot(folder)
    (trace,) = read(recording)
    assert trace.dispatches.dispatch_id.tolist() == [1]
    assert snapshot(folder) == before


CANARY = "API_KEY=do-not-read-me"


def test_the_environment_column_is_never_read(recording, monkeypatch):
    with closing(sqlite3.connect(recording)) as connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_info_process*'"
        ).fetchone()
        connection.execute(f'UPDATE "{table}" SET environment = ?', (CANARY,))
        connection.commit()
    touched = []

    def deny(action, first, second, database, trigger):
        if action == sqlite3.SQLITE_READ and second == "environment":
            touched.append(first)
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    real = sqlite3.connect

    def guarded(*args, **kwargs):
        connection = real(*args, **kwargs)
        connection.set_authorizer(deny)
        return connection

    monkeypatch.setattr(file.sqlite3, "connect", guarded)
    reader = RocpdReader()
    (found,) = reader.claim([recording])
    assert found.refusal is None
    (trace,) = reader.read(found)
    assert touched == []
    assert CANARY not in repr(trace.processes)


def test_the_guard_of_the_environment_test_bites(recording):
    denied = []
    with closing(sqlite3.connect(recording)) as connection:
        connection.set_authorizer(
            lambda action, first, second, *_: (
                denied.append(second) or sqlite3.SQLITE_DENY if second == "environment" else sqlite3.SQLITE_OK
            )
        )
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute("SELECT id, pid FROM rocpd_info_process").fetchall()
    assert denied == ["environment"]
