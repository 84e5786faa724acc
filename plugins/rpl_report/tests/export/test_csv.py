"""``rpl export --format csv``: every dispatch and copy once, with path, slack and idle time of dag.json."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import sys

import pytest

from rpl_core.model.recording import Recording
from rpl_report.rows import COLUMNS, exported_run, to_csv
from rpl_testkit.fixtures import Launch
from rpl_testkit.traces import TracedDispatch, make_trace


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_rows_are_the_recorded_ones(demo_run, recorded_work, rpl_cli):
    rows = _rows(rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout)
    found = [(row["name"], int(row["begin_ns"]), int(row["end_ns"]), int(row["stream"])) for row in rows]
    assert sorted(found, key=lambda row: row[1:]) == recorded_work
    assert all(int(r["duration_ns"]) == int(r["end_ns"]) - int(r["begin_ns"]) for r in rows)
    assert [int(row["begin_ns"]) for row in rows] == sorted(int(row["begin_ns"]) for row in rows)


def test_path_and_slack_add_up_to_the_document(demo_run, rpl_cli):
    dag = json.loads((demo_run / "dag.json").read_text())
    rows = _rows(rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout)
    on_path = [row for row in rows if row["on_path"] == "1"]
    assert sum(int(row["duration_ns"]) for row in on_path) == dag["critical_path_ns"]
    assert {row["slack_ns"] for row in on_path} == {"0"}
    for symbol in dag["symbols"]:
        slack = [int(row["slack_ns"]) for row in rows if row["name"] == symbol["name"]]
        assert min(slack) == symbol["min_slack_ns"]
        assert len(slack) == symbol["nodes"]


def test_names_with_commas_quotes_and_escapes_stay_one_cell(rpl_make_rocpd, rpl_cli):
    names = ['a,b"c"', "line\nfeed", "\x1b[31m", "=cmd()", "+1", "-1", "@x"]
    recording = rpl_make_rocpd([Launch(name, 100 * i, 100 * i + 9) for i, name in enumerate(names, 1)])
    rows = _rows(rpl_cli("export", "--format", "csv", recording).assert_ok().stdout)
    shown = ['a,b"c"', "line\\nfeed", "\\x1b[31m", "'=cmd()", "'+1", "'-1", "'@x"]
    assert [row["name"] for row in rows] == shown
    assert tuple(rows[0]) == COLUMNS


def test_what_is_not_recorded_is_an_empty_cell(demo_run, rpl_cli):
    rows = _rows(rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout)
    copies = [row for row in rows if row["kind"] == "copy"]
    assert copies
    assert {row["dispatch_id"] for row in copies} == {""}
    assert {row["queue"] for row in rows} == {""}, "lanes are streams here"


def test_idle_time_adds_up_to_the_document_for_every_gpu_and_cause(demo_run, rpl_cli):
    dag = json.loads((demo_run / "dag.json").read_text())
    rows = _rows(rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout)
    for device in dag["devices"]:
        own = [row for row in rows if row["gpu"] == str(device["agent"])]
        for cause in ("host", "sync", "launch", "unattributed", "copying"):
            assert sum(int(row[f"idle_{cause}_ns"]) for row in own) == device["idle"][f"{cause}_ns"], cause
        assert sum(int(row["idle_before_ns"]) for row in own) == device["idle_ns"] > 0
    for row in rows:
        parts = {name: int(row[f"idle_{name}_ns"]) for name in ("host", "sync", "launch", "unattributed")}
        assert (row["idle_cause"] == "") == (row["idle_before_ns"] == "0")
        assert not row["idle_cause"] or parts[row["idle_cause"]] == max(parts.values())


def test_resources_are_those_of_the_recording(demo_run, recorded, rpl_cli):
    rows = _rows(rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout)
    shown = ("vgpr", "accum_vgpr", "sgpr", "lds_bytes", "scratch_bytes")
    shown += tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
    found = {int(row["dispatch_id"]): tuple(row[name] for name in shown) for row in rows if row["vgpr"]}
    expected = recorded(
        "SELECT d.dispatch_id, s.arch_vgpr_count, s.accum_vgpr_count, s.sgpr_count, d.group_segment_size,"
        " d.private_segment_size, d.grid_size_x, d.grid_size_y, d.grid_size_z, d.workgroup_size_x,"
        " d.workgroup_size_y, d.workgroup_size_z"
        " FROM rocpd_kernel_dispatch d JOIN rocpd_info_kernel_symbol s ON s.id = d.kernel_id"
    )
    assert found == {number: tuple(map(str, facts)) for number, *facts in expected}


def _counted_run():
    counted = make_trace(
        [
            TracedDispatch("a", 0, 900, counters={"SQ_WAVES": 1024.0, "=x": 7.0, "kind": 1.0}),
            TracedDispatch("b", 1000, 9000, counters={"SQ_WAVES": 3.5}),
        ]
    )
    timed = make_trace([("a", 100, 300), ("b", 400, 400), ("a", 500, 600)])
    return exported_run(Recording((timed, counted)), lambda _: None)


def test_counters_and_their_rates_over_the_time_of_the_timing_run():
    run = _counted_run()
    first, second, third = _rows(to_csv(run.work, run.counters()).decode())
    assert (first["SQ_WAVES"], first["SQ_WAVES_per_s"]) == ("1024.0", str(1024.0 / 200e-9))
    assert (second["SQ_WAVES"], second["SQ_WAVES_per_s"]) == ("3.5", ""), "no rate over no time"
    assert (third["SQ_WAVES"], third["SQ_WAVES_per_s"]) == ("", ""), "no pass saw a third one"
    assert first["'=x"] == "7.0"
    assert (first["kind"], first["kind_"]) == ("kernel", "1.0"), "a counter takes no column of another"
    assert [row["idle_before_ns"] for row in (first, second, third)] == ["0", "100", "100"]
    assert second["idle_cause"] == "unattributed", "no call is recorded"


def test_parquet_without_its_library_says_how_to_get_it(demo_run, rpl_cli, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    target = tmp_path / "rows.parquet"
    outcome = rpl_cli("export", "--format", "parquet", "-o", target, demo_run).assert_exit(69)
    assert "pip install 'rpl-report[parquet]'" in outcome.stderr
    assert not target.exists()


@pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: the package is not installed"
)
def test_parquet_holds_the_rows_of_csv(demo_run, rpl_cli, tmp_path):
    import pyarrow.parquet

    target = tmp_path / "rows.parquet"
    rpl_cli("export", "--format", "parquet", "-o", target, demo_run).assert_ok()
    table = pyarrow.parquet.read_table(target)
    rows = _rows(rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout)
    assert table.column_names == list(rows[0])
    as_text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in table.to_pylist()]
    assert as_text == rows
