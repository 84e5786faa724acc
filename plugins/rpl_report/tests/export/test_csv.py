"""``rpl export --format csv``: every dispatch and copy once, with the path and slack of dag.json."""

from __future__ import annotations

import csv
import io
import json

from rpl_report.export.csv_rows import CSV_COLUMNS
from rpl_testkit.recordings import Launch


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
    assert tuple(rows[0]) == CSV_COLUMNS


def test_what_is_not_recorded_is_an_empty_cell(demo_run, rpl_cli):
    rows = _rows(rpl_cli("export", "--format", "csv", demo_run).assert_ok().stdout)
    copies = [row for row in rows if row["kind"] == "copy"]
    assert copies
    assert {row["dispatch_id"] for row in copies} == {""}
    assert {row["queue"] for row in rows} == {""}, "lanes are streams here"
