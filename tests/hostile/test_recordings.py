"""Recordings with what no profiler should write, through the command line: handled, and counted."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from rpl_testkit.fixtures import Launch
from rpl_testkit.rocpd_writer import (
    CodeObjectRow,
    DispatchRow,
    GraphLaunchRow,
    KernelRow,
    ProcessRow,
    QueueRow,
    RegionRow,
    RocpdContents,
    guid_from_seed,
    write_rocpd,
)
from rpl_testkit.synthetic_recording.mi300x import GPU_AGENT, mi300x_agents

#: One workgroup of one wave, so that SQ_WAVES = 1 is true.
COUNTERS = {"SQ_WAVES": 1.0, "TCC_HIT": 5.0}


@pytest.fixture
def analysed(rpl_cli, tmp_path):
    """``analysed(path)``: the documents by name, after a run that ended well."""

    def run(path):
        out = tmp_path / "out"
        outcome = rpl_cli("analyze", path, "-o", out, "--device", "gfx942").assert_ok()
        found = {file.stem: json.loads(file.read_text()) for file in out.glob("*.json")}
        return outcome, found

    return run


@pytest.fixture
def edited(rpl_make_rocpd):
    """``edited(launches, "UPDATE {kernel_dispatch} SET ...")``: a rocpd file changed by SQL."""

    def build(launches, *statements, **options):
        path = rpl_make_rocpd(launches, **options)
        with closing(sqlite3.connect(path)) as database:
            names = [
                row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            for statement in statements:
                table = statement[statement.index("{") + 1 : statement.index("}")]
                (name,) = [n for n in names if n.startswith(f"rocpd_{table}_0") or n == f"rocpd_{table}"]
                database.execute(statement.replace(f"{{{table}}}", f'"{name}"'))
            database.commit()
        return path

    return build


def counted(documents, code):
    (count,) = {d["count"] for d in documents["profile"]["diagnostics"] if d["code"] == code}
    return count


def launches(count, **changes):
    return [Launch("kernel", 1000 * i, 1000 * i + 100, **changes) for i in range(1, count + 1)]


def test_negative_durations_are_left_out_and_counted(edited, analysed):
    _, documents = analysed(edited(launches(5), "UPDATE {kernel_dispatch} SET end = start - 7 WHERE id <= 2"))
    assert counted(documents, "dispatch.negative_duration") == 2
    assert documents["profile"]["runtime_ms"] == pytest.approx(3 * 100e-6)


def test_zero_durations_are_counted(edited, analysed):
    _, documents = analysed(edited(launches(5), "UPDATE {kernel_dispatch} SET end = start WHERE id <= 2"))
    assert counted(documents, "dispatch.zero_duration") == 2
    assert documents["profile"]["runtime_ms"] == pytest.approx(3 * 100e-6)


def test_nothing_but_zero_durations_gives_no_path_and_no_ceiling(edited, analysed):
    outcome, documents = analysed(edited(launches(5), "UPDATE {kernel_dispatch} SET end = start"))
    assert documents["dag"]["status"] == "unavailable"
    assert "zero" in documents["dag"]["reason"]
    assert documents["profile"]["runtime_ms"] is None
    assert "unbounded" not in outcome.stdout


@pytest.mark.parametrize(
    ("jump", "code"),
    [("- 900000000", "clock.before_process_start"), ("+ 3600000000000", "clock.after_process_end")],
)
def test_clock_jumps_are_counted(jump, code, edited, analysed):
    base = [Launch("kernel", 10**9 + 1000 * i, 10**9 + 1000 * i + 100) for i in range(1, 6)]
    move = f"UPDATE {{kernel_dispatch}} SET start = start {jump}, end = end {jump} WHERE id >= 4"
    _, documents = analysed(edited(base, move))
    assert counted(documents, code) == 2
    assert documents["profile"]["runtime_ms"] == pytest.approx(5 * 100e-6)


def test_times_that_no_clock_shows_are_left_out_and_counted(edited, analysed):
    path = edited(launches(5), f"UPDATE {{kernel_dispatch}} SET end = {2**63 - 1} WHERE id <= 2")
    _, documents = analysed(path)
    assert counted(documents, "dispatch.no_time") == 2
    assert documents["profile"]["runtime_ms"] == pytest.approx(3 * 100e-6)


@pytest.mark.parametrize("value", ["9e999", "-9e999", "NULL", "'NaN'", "-1"])
def test_counters_that_are_no_numbers_are_unknown_and_counted(value, edited, analysed):
    path = edited(
        launches(3, counters=COUNTERS), f"UPDATE {{pmc_event}} SET value = {value} WHERE id % 2 = 0"
    )
    _, documents = analysed(path)
    codes = {d["code"]: d["count"] for d in documents["profile"]["diagnostics"]}
    assert codes.get("counter.not_a_number", codes.get("counters.invalid_value")) == 3
    assert "NaN" not in json.dumps(documents)


def test_duplicate_dispatch_ids_are_counted_and_lose_nothing(edited, analysed):
    _, documents = analysed(edited(launches(5), "UPDATE {kernel_dispatch} SET dispatch_id = 1"))
    assert counted(documents, "dispatch.duplicate_id") == 4
    assert documents["profile"]["kernels"][0]["launches"] == 5


def test_long_name_is_cut_on_the_terminal_and_whole_in_the_documents(rpl_make_rocpd, analysed):
    name = "void kernel<" + "std::tuple<int>, " * 120 + "int>(float*)"
    assert len(name) > 2000
    outlier = (name, 90_000, 190_000)
    outcome, documents = analysed(
        rpl_make_rocpd([*((name, 9000 * i, 9000 * i + 500) for i in range(1, 9)), outlier])
    )
    assert documents["profile"]["kernel"]["name"] == name
    assert max(len(line) for line in outcome.stdout.splitlines()) < 250
    (warning,) = (line for line in outcome.stderr.splitlines() if "times the median" in line)
    assert len(warning) < 1000
    assert "Next: " in warning


def test_terminal_escapes_and_markup_in_names_are_shown_and_not_obeyed(
    rpl_make_rocpd, analysed, rpl_cli, tmp_path
):
    name = "k\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202e\r\nx"
    outcome, documents = analysed(rpl_make_rocpd([(name, 1000, 2000)]))
    explained = rpl_cli("explain", "--run", tmp_path / "out").assert_ok()
    for shown in (outcome.stdout, outcome.stderr, explained.stdout):
        assert not any(c in shown for c in "\x1b\x07\r\u202e")
        assert "\\x1b[2J" in shown or "script" not in shown
    assert documents["profile"]["kernel"]["name"] == name


def test_json_steers_no_terminal(rpl_make_rocpd, rpl_cli, tmp_path):
    name = "k\u009b2J\u202e\u2066\u200f\x7f\u00e4"
    outcome = rpl_cli(
        "analyze", "--json", rpl_make_rocpd([(name, 1000, 2000)]), "-o", tmp_path / "out"
    ).assert_ok()
    reported = rpl_cli("report", "--format", "json", tmp_path / "out").assert_ok()
    for text in (outcome.stdout, reported.stdout, (tmp_path / "out" / "profile.json").read_text()):
        assert not any(c in text for c in "\u009b\u202e\u2066\u200f\x7f")
        assert "\u00e4" in text
    assert outcome.json()["kernel"]["name"] == name


def test_call_tree_that_is_its_own_ancestor_ends(edited, analysed):
    """A launch inside a launch inside the first one: parents form a circle."""
    path = edited(
        launches(4),
        "UPDATE {event} SET stack_id = 5, parent_stack_id = 5, correlation_id = 5",
    )
    _, documents = analysed(path)
    assert documents["profile"]["kernels"][0]["launches"] == 4


def test_graph_that_launches_itself_ends_and_keeps_its_kernels(tmp_path, analysed):
    """hipGraphLaunch inside hipGraphLaunch of the same graph, its own child by the recorded parents."""
    calls = tuple(
        RegionRow("hipGraphLaunch", "HIP_RUNTIME_API", i, 900 + i, 9000 - i, parent_stack_id=3 - i)
        for i in (1, 2)
    )
    geometry = {"grid": (64, 1, 1), "workgroup": (64, 1, 1)}
    contents = RocpdContents(
        guid=guid_from_seed("recursive"),
        process=ProcessRow(7, "./app", 0, 20_000),
        agents=mi300x_agents(gpus=1),
        code_objects=(CodeObjectRow(1, GPU_AGENT, "memory://7"),),
        kernels=(KernelRow(1, "kernel", "kernel"),),
        queues=(QueueRow(1, "Queue 1"),),
        dispatches=tuple(
            DispatchRow(
                i,
                1,
                GPU_AGENT,
                1,
                0,
                1000 * i,
                1000 * i + 100,
                **geometry,
                stack_id=1 + i % 2,
                graph_exec_id=5,
            )
            for i in range(1, 7)
        ),
        regions=calls,
        graph_launches=tuple(GraphLaunchRow(5, 3, 900 + i, 9000 - i, stack_id=i) for i in (1, 2)),
    )
    path = tmp_path / "graph_results.db"
    write_rocpd(path, contents, synthetic=True, schema_version="3.0.2")
    _, documents = analysed(path)
    assert documents["profile"]["kernels"][0]["launches"] == 6
    assert documents["dag"]["nodes"] == 6
    assert documents["dag"]["critical_path_ns"] <= documents["dag"]["makespan_ns"]


#: ``VmHWM`` is the peak of this program alone; ``ru_maxrss`` would include the test process before exec.
ANALYZE_AND_TELL_ITS_PEAK = """
import os, re, time
from pathlib import Path
from rpl_core.cli import main
try:
    main()
finally:
    peak_kib = re.search("VmHWM:(.*) kB", Path("/proc/self/status").read_text())[1]
    os.write(2, f"{peak_kib} {time.process_time()}".encode())
"""


@pytest.mark.long
def test_a_million_streams(rpl_make_rocpd, tmp_path):
    million = 1_000_000
    path = rpl_make_rocpd(launches(1))
    with closing(sqlite3.connect(path)) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        (dispatch,) = [name for name in tables if name.startswith("rocpd_kernel_dispatch")]
        (stream,) = [name for name in tables if name.startswith("rocpd_info_stream")]
        own = {"id": "n + 10", "dispatch_id": "n + 10", "stream_id": "n + 10"}
        _multiply(database, stream, million, {"id": "n + 10", "name": "'Stream ' || n"})
        _multiply(database, dispatch, million, {**own, "start": "1000 * n", "end": "1000 * n + 700"})
        database.commit()
    command = [sys.executable, "-c", ANALYZE_AND_TELL_ITS_PEAK]
    ended = subprocess.run(
        [*command, "analyze", path, "-o", tmp_path / "out", "--quiet"], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    peak_kib, cpu_seconds = ended.stderr.split()[-2:]
    assert float(cpu_seconds) < 60
    assert int(peak_kib) < 2 << 20
    dag = json.loads((tmp_path / "out" / "dag.json").read_text())
    assert dag["nodes"] == million + 1
    assert sum(f.stat().st_size for f in (tmp_path / "out").glob("*.json")) < 5 << 20


def _multiply(database, table, count, changes):
    """``count`` copies of the first row of ``table``, with ``changes`` by the number n of the copy."""
    columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
    values = ", ".join(changes.get(column, f'"{column}"') for column in columns)
    database.execute(
        f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) "
        f'INSERT INTO "{table}" SELECT {values} FROM numbers, (SELECT * FROM "{table}" ORDER BY id LIMIT 1)'
    )
