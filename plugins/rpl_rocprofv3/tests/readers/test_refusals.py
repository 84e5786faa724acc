"""Files that are no recording are named and refused in one line, and never read."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing

import pytest

from rpl_core.errors import BadDataError, ForeignFileError
from rpl_core.interfaces.reader import InputSet
from rpl_rocprofv3.readers.catalog import all_readers


def only(found):
    (one,) = found
    return one


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "form", "says"),
    [
        ("rocprofv1_kern_results.db", "rocprof v1/v2 results", "rocprof v1"),
        (
            "rocprof_compute_23ed6f36.db.gz",
            "rocprofiler-compute analysis",
            "analysis database of rocprofiler-compute",
        ),
        (
            "partial_schema3_test_rocm_database.db",
            "rocpd 3 (partial)",
            "lacks the tables or views rocpd_event",
        ),
    ],
)
def test_provided_foreign_databases_are_named(rpl_shared_data, claim, name, form, says):
    found = only(claim(rpl_shared_data / "rocpd" / "reject-cases" / name))
    assert found.format == form
    assert says in found.refusal
    assert found.next_step


@pytest.mark.data
def test_reading_a_refused_set_raises_with_exit_65(rpl_shared_data, claim):
    found = only(claim(rpl_shared_data / "rocpd" / "reject-cases" / "rocprofv1_kern_results.db"))
    reader = next(r for r in all_readers() if r.name == found.reader)
    with pytest.raises(ForeignFileError) as caught:
        reader.read(found)
    assert caught.value.exit_code == 65
    assert "\n" not in caught.value.one_line()


def database(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def test_a_schema_4_draft_is_refused_by_its_columns(tmp_path, claim):
    path = database(
        tmp_path / "x_results.db",
        "CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag TEXT, value TEXT)",
        "INSERT INTO rocpd_metadata VALUES (1, 'schema_version', '4.1.0')",
        "CREATE TABLE rocpd_kernel_dispatch (id INTEGER PRIMARY KEY, track_id INTEGER)",
    )
    found = only(claim(path))
    assert found.format == "rocpd 4.1.0"
    assert "schema 4.1.0" in found.refusal


def test_a_database_without_profiler_tables_is_named_so(tmp_path, claim):
    found = only(claim(database(tmp_path / "app.db", "CREATE TABLE users (id INTEGER)")))
    assert "without any profiler's tables" in found.refusal


def test_missing_columns_are_listed(rpl_make_rocpd, claim, tmp_path):
    path = rpl_make_rocpd([("k", 100, 200)])
    broken = tmp_path / "broken.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(broken)) as target:
        source.backup(target)
        (table,) = target.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_string*'"
        ).fetchone()
        target.execute("DROP VIEW rocpd_string")
        target.execute(f'CREATE VIEW rocpd_string AS SELECT id FROM "{table}"')
        target.commit()
    assert "rocpd_string.string" in only(claim(broken)).refusal


def test_truncated_empty_and_foreign_bytes_are_told_apart(rpl_make_rocpd, tmp_path, claim):
    whole = rpl_make_rocpd([("k", 100, 200)]).read_bytes()
    cases = {
        "cut.db": (whole[: len(whole) // 2], "truncated"),
        "short.db": (whole[:60], "not an SQLite database"),
        "empty.db": (b"", "0 bytes"),
        "text.db": (b"hello, I am no database" * 10, "not an SQLite database"),
    }
    for name, (content, says) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        refusal = only(claim(path)).refusal
        assert says in refusal, name
        assert str(path) not in refusal, name  # whoever shows it names the file


def test_a_database_with_damaged_pages_is_one_clear_line(rpl_make_rocpd, tmp_path, claim):
    content = bytearray(rpl_make_rocpd([("k", 100, 200)]).read_bytes())
    content[100:4096] = b"\xff" * 3996
    path = tmp_path / "damaged.db"
    path.write_bytes(content)
    assert "can't be read as SQLite" in only(claim(path)).refusal


def test_a_decompression_bomb_stops_at_its_limit(tmp_path, claim, monkeypatch):
    from rpl_rocprofv3.readers import gzip_limits

    monkeypatch.setattr(gzip_limits, "_FLOOR_BYTES", 1 << 20)
    path = tmp_path / "bomb.rpd.gz"
    path.write_bytes(gzip.compress(b"SQLite format 3\0" + bytes(8 << 20)))
    found = only(claim(path))
    assert "unpacks to more than 1 MiB" in found.refusal


def test_damaged_gzip_is_refused(tmp_path, claim):
    path = tmp_path / "x_results.db.gz"
    path.write_bytes(gzip.compress(b"SQLite format 3\0" + bytes(5000))[:-200] + b"broken")
    assert "can't be unpacked" in only(claim(path)).refusal


def test_unrelated_files_are_left_to_others(tmp_path, claim):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "data.json").write_text('{"a": 1}')
    (tmp_path / "empty.json").write_text("")
    assert claim(tmp_path) == []


def test_old_and_incomplete_csv_are_refused(tmp_path, claim):
    (tmp_path / "results.csv").write_text('"Index","KernelName","gpu-id","queue-id"\n0,"k",1,0\n')
    (tmp_path / "7_kernel_trace.csv").write_text('"Kind","Kernel_Name"\n')
    (tmp_path / "8_kernel_trace.csv").write_text("")
    (tmp_path / "9_agent_info.csv").write_text('"Node_Id","Agent_Type","Name"\n')
    refusals = {found.paths[0].name: found.refusal for found in claim(tmp_path)}
    assert "rocprof v1 or v2" in refusals["results.csv"]
    assert "lacks dispatch_id" in refusals["7_kernel_trace.csv"]
    assert "empty" in refusals["8_kernel_trace.csv"]
    assert "no kernel trace" in refusals["9_agent_info.csv"]


def test_a_file_that_vanished_between_claim_and_read_is_bad_data(rpl_make_rocpd, claim):
    path = rpl_make_rocpd([("k", 100, 200)])
    found = only(claim(path))
    path.unlink()
    with pytest.raises(BadDataError):
        next(r for r in all_readers() if r.name == found.reader).read(found)


def test_a_database_that_is_none_of_a_reader_when_it_is_read_is_refused(rpl_make_rocpd):
    """It may be another file by then than the one that was claimed."""
    path = rpl_make_rocpd([("k", 0, 10)])
    (rpd,) = [reader for reader in all_readers() if reader.name == "rpd"]
    with pytest.raises(ForeignFileError, match="rocpd"):
        rpd.read(InputSet("rpd", "rpd", (path,)))


_ROCPROF = '{ "traceEvents":[{}\n,{"args":{"name":"2 CPU HIP API"},"ph":"M","pid":2}\n]}'
_CHROME = '{"otherData": {}, "traceEvents": [{"ph": "X", "name": "f", "ts": 1, "dur": 2, "pid": 1}]}'
_JAX = '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},\n"traceEvents":[{"ph":"M","pid":3}]}'


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("run.pftrace", "\n\x04", "Perfetto trace"),
        ("run.perfetto-trace.gz", "\n\x04", "Perfetto trace"),
        ("report1.nsys-rep", "x", "Nsight Systems"),
        ("kernels.ncu-rep", "x", "Nsight Compute"),
        ("host.xplane.pb", "x", "JAX"),
        ("results.json", _ROCPROF, "rocprof v1 or v2"),
        ("app.json", _CHROME, "Chrome trace"),
        ("events.json.gz", '[{"name":"f","ph":"X","ts":1,"dur":2}]', "Chrome trace"),
        ("host.trace.json.gz", _JAX, "JAX"),
    ],
)
def test_files_of_other_tools_are_named_with_what_to_do(tmp_path, rpl_cli, name, content, says):
    path = tmp_path / name
    data = content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    outcome = rpl_cli("analyze", path).assert_exit(65)
    assert says in outcome.stderr
    assert "Next: " in outcome.stderr
    assert "\n" not in outcome.stderr.strip()


def test_an_export_of_nsight_systems_is_named(tmp_path, claim):
    path = database(
        tmp_path / "report1.sqlite",
        "CREATE TABLE StringIds (id INTEGER, value TEXT)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)",
    )
    assert "Nsight Systems" in only(claim(path)).refusal


def test_a_torch_trace_is_left_to_its_reader(tmp_path, claim):
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "ts": 1}]}')
    assert claim(path) == []


def test_in_a_folder_what_can_be_read_is_read_beside_them(rpl_make_rocpd, rpl_cli, tmp_path):
    recording = rpl_make_rocpd([("k", 100, 200)])
    (recording.parent / "view.pftrace").write_bytes(b"x")
    rpl_cli("analyze", recording.parent, "-o", tmp_path / "run").assert_ok()
