"""Reading never changes the user's file or folder, and never sees the recorded environment."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from rpl_core.errors import BadDataError
from rpl_rocprofv3 import database
from rpl_rocprofv3.readers.catalog import RocpdReader


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
    monkeypatch.setattr(database.shutil, "disk_usage", lambda _: full)
    (found,) = RocpdReader().claim([recording])
    assert "unfinished changes in run_results.db-wal" in found.refusal
    assert "TMPDIR" in found.next_step


def test_a_file_that_changes_while_it_is_copied_is_not_trusted(recording, monkeypatch):
    with_log(recording)
    states = iter(range(100))
    monkeypatch.setattr(database, "_state", lambda _: (next(states), 0))
    with pytest.raises(BadDataError, match="being written"), database.open_database(recording):
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


@pytest.fixture
def with_secret(recording):
    with closing(sqlite3.connect(recording)) as connection:
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_info_process*'"
        ).fetchone()
        connection.execute(f'UPDATE "{table}" SET environment = ?', (CANARY,))
        connection.commit()
    return recording


def test_the_environment_column_is_never_read(with_secret, monkeypatch):
    asked = []
    allowed = database._Allowed.__call__

    def noted(self, action, first, second, *rest):
        asked.append((action, second))
        return allowed(self, action, first, second, *rest)

    monkeypatch.setattr(database._Allowed, "__call__", noted)
    reader = RocpdReader()
    (found,) = reader.claim([with_secret])
    (trace,) = reader.read(found)
    assert (sqlite3.SQLITE_READ, "pid") in asked
    assert (sqlite3.SQLITE_READ, "environment") not in asked
    assert CANARY not in repr(trace.processes)


@pytest.mark.parametrize("columns", ["environment", "*"])
def test_who_asks_for_the_environment_gets_nothing(columns, with_secret):
    with database.open_database(with_secret) as opened:
        rows = opened.connection.execute(f"SELECT {columns} FROM rocpd_info_process").fetchall()
    assert rows
    assert CANARY not in repr(rows)


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '{}' AS other",
        "DELETE FROM rocpd_metadata",
        "PRAGMA writable_schema = ON",
        "SELECT load_extension('x')",
        "SELECT hex(zeroblob(10))",
        "CREATE TEMP TABLE t (x)",
    ],
)
def test_a_connection_reads_and_does_nothing_else(statement, recording, folder):
    before = snapshot(folder)
    with pytest.raises(BadDataError), database.open_database(recording) as opened:
        opened.connection.execute(statement.format(folder / "other.db"))
    assert snapshot(folder) == before


def test_ctrl_c_inside_a_statement_stays_one(recording, monkeypatch):
    """What a signal handler raises while SQLite calls back is lost in SQLite."""

    def interrupted(_self):
        raise KeyboardInterrupt

    monkeypatch.setattr(database._Budget, "step", interrupted)
    monkeypatch.setattr(database, "_STEPS_PER_CHECK", 1)
    with pytest.raises(KeyboardInterrupt), database.open_database(recording):
        pass


def test_a_statement_that_outlasts_its_budget_is_given_up(recording, monkeypatch):
    monkeypatch.setattr(database, "_STEPS_AT_LEAST", 50)
    monkeypatch.setattr(database, "_STEPS_PER_BYTE", 0)
    monkeypatch.setattr(database, "_STEPS_PER_CHECK", 10)
    (found,) = RocpdReader().claim([recording])
    assert "far longer than its size explains" in found.refusal


def test_texts_without_end_are_given_up(recording, monkeypatch):
    monkeypatch.setattr(database, "_TEXTS_AT_LEAST", 50)
    monkeypatch.setattr(database, "_TEXTS_PER_BYTE", 0)
    (found,) = RocpdReader().claim([recording])
    assert "far longer than its size explains" in found.refusal


def test_a_file_that_changes_while_it_is_read_is_not_trusted(recording):
    with pytest.raises(BadDataError, match="being written"), database.open_database(recording):
        recording.write_bytes(recording.read_bytes() + b"more")


def test_a_link_is_not_emptied(recording, folder, tmp_path):
    elsewhere = tmp_path / "elsewhere.db"
    recording.rename(elsewhere)
    recording.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert not database.empty_column(recording, "rocpd_info_process", "environment", "{}")
    assert elsewhere.read_bytes() == before


@pytest.mark.parametrize("damage", ["trigger", "super-journal"])
def test_emptying_runs_nothing_of_the_file(damage, recording, folder):
    if damage == "trigger":
        with closing(sqlite3.connect(recording)) as connection:
            (table,) = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_info_process*'"
            ).fetchone()
            connection.execute(
                f'CREATE TRIGGER t AFTER UPDATE ON "{table}" BEGIN DELETE FROM rocpd_metadata_x; END'.replace(
                    "rocpd_metadata_x", table
                )
            )
            connection.commit()
    else:
        journal = recording.with_name(f"{recording.name}-journal")
        journal.write_bytes(b"x" * 600 + bytes.fromhex("d9d505f920a163d7"))
    before = snapshot(folder)
    assert not database.empty_column(recording, "rocpd_info_process", "environment", "{}")
    assert snapshot(folder).keys() == before.keys()
    assert recording.read_bytes() == before[recording.name][0]
