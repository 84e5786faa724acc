"""Contents of the files: columns as in real ones, agreement between formats, the synthetic stamp."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

TRACE = ("--kernel-trace", "--memory-copy-trace", "--hip-runtime-trace", "--memory-allocation-trace")


def header(path: Path) -> list[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return next(csv.reader(text.splitlines()))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize(("release", "endings"), [("6.4", {".csv", ".json"}), ("7.2", {".db"})])
def test_default_format_depends_on_the_release(profiler, results, release: str, endings: set[str]) -> None:
    profiler(*TRACE, "-d", "o", "-o", "x", "--", "true", RPL_STANDIN_ROCM=release)
    assert {path.suffix for path in results("x_*")} == endings


@pytest.mark.data
@pytest.mark.parametrize(
    ("release", "arguments", "ours", "real"),
    [
        ("6.4", TRACE, "kernel_trace", "hipkittens-mi325x-csv/66960_kernel_trace.csv"),
        ("6.4", TRACE, "agent_info", "hipkittens-mi325x-csv/66960_agent_info.csv"),
        ("7.2", TRACE, "kernel_trace", "wave-mi350x-csv/3785403_kernel_trace.csv.gz"),
        ("7.2", TRACE, "agent_info", "wave-mi350x-csv/3785403_agent_info.csv"),
        ("7.2", TRACE, "hip_api_trace", "llama-gfx1151-csv/decode_hip_api_trace.csv"),
        (
            "7.2",
            ("--pmc", "SQ_WAVES"),
            "counter_collection",
            "hipkittens-mi350x-pmc-csv/hit_rate_counter_collection.csv",
        ),
    ],
)
def test_csv_columns_are_those_of_a_real_file(
    profiler, results, rpl_shared_data: Path, release: str, arguments: tuple[str, ...], ours: str, real: str
) -> None:
    profiler(*arguments, "-f", "csv", "-d", "o", "-o", "x", "--", "true", RPL_STANDIN_ROCM=release)
    assert header(profiler.directory / f"o/x_{ours}.csv") == header(rpl_shared_data / "rocpd" / real)


def test_agent_ids_are_text_from_7_on(profiler) -> None:
    found = {}
    for release in ("6.4", "7.0"):
        profiler(
            "--kernel-trace", "-f", "csv", "-d", release, "-o", "x", "--", "true", RPL_STANDIN_ROCM=release
        )
        found[release] = rows(profiler.directory / release / "x_kernel_trace.csv")[0]["Agent_Id"]
    assert found == {"6.4": "2", "7.0": "Agent 2"}


def test_csv_and_database_agree(profiler, results) -> None:
    profiler(*TRACE, "-f", "csv", "rocpd", "-d", "o", "-o", "x", "--", "true")
    (database,) = results("*.db")
    pairs = {
        "Dispatch_Id": "dispatch_id",
        "Start_Timestamp": "start",
        "End_Timestamp": "end",
        "Stream_Id": "stream_id",
        "Queue_Id": "queue_id",
        "Kernel_Name": "name",
        "VGPR_Count": "vgpr_count",
        "Grid_Size_X": "grid_x",
    }
    sql = f"SELECT {', '.join(pairs.values())} FROM kernels ORDER BY dispatch_id"
    trace = rows(profiler.directory / "o/x_kernel_trace.csv")
    listed = [tuple(row[column] for column in pairs) for row in trace]
    assert listed == [tuple(map(str, row)) for row in query(database, sql)]
    calls = rows(profiler.directory / "o/x_hip_api_trace.csv")
    assert len(calls) == query(database, "SELECT count(*) FROM regions")[0][0]
    copies = rows(profiler.directory / "o/x_memory_copy_trace.csv")
    assert [int(row["Correlation_Id"]) for row in copies] == [
        number for (number,) in query(database, "SELECT stack_id FROM memory_copies ORDER BY id")
    ]
    memory = rows(profiler.directory / "o/x_memory_allocation_trace.csv")
    sizes = query(database, "SELECT size FROM memory_allocations ORDER BY id")
    assert [(int(row["Allocation_Size"]),) for row in memory] == sizes


def test_counter_csv_holds_sums_over_instances(profiler, results) -> None:
    arguments = ("--pmc", "GRBM_GUI_ACTIVE", "SQ_WAVES", "-f", "csv", "rocpd", "-d", "o", "-o", "x")
    profiler(*arguments, "--", "true")
    (database,) = results("*.db")
    listed = rows(profiler.directory / "o/x_counter_collection.csv")
    found = {(int(r["Dispatch_Id"]), r["Counter_Name"]): float(r["Counter_Value"]) for r in listed}
    sql = "SELECT dispatch_id, counter_name, value FROM counters_collection"
    assert found == {(number, name): value for number, name, value in query(database, sql)}
    assert not results("*_kernel_trace.csv"), "a counter run traces no kernels"


def test_counter_csv_of_6_has_no_accumulation_registers(profiler) -> None:
    profiler("--pmc", "SQ_WAVES", "-d", "o", "-o", "x", "--", "true", RPL_STANDIN_ROCM="6.4")
    columns = header(profiler.directory / "o/x_counter_collection.csv")
    assert "VGPR_Count" in columns
    assert "Accum_VGPR_Count" not in columns


def test_only_requested_domains_are_recorded(profiler, results) -> None:
    profiler("--hip-trace", "-d", "o", "-o", "x", "--", "true")
    (database,) = results("*.db")
    counts = "SELECT (SELECT count(*) FROM rocpd_kernel_dispatch), (SELECT count(*) > 0 FROM rocpd_region)"
    assert query(database, counts) == [(0, 1)]


def test_json_has_the_records_of_the_database(profiler, results) -> None:
    profiler(*TRACE, "-f", "json", "rocpd", "-d", "o", "-o", "x", "--", "true")
    (database,), (path,) = results("*.db"), results("x_results.json")
    (process,) = json.loads(path.read_text())["rocprofiler-sdk-tool"]
    names = {symbol["kernel_id"]: symbol["formatted_kernel_name"] for symbol in process["kernel_symbols"]}
    dispatches = process["buffer_records"]["kernel_dispatch"]
    listed = [
        (
            record["dispatch_info"]["dispatch_id"],
            names[record["dispatch_info"]["kernel_id"]],
            record["start_timestamp"],
            record["end_timestamp"],
            record["correlation_id"]["internal"],
            record["stream_id"]["handle"],
            record["dispatch_info"]["grid_size"]["x"],
        )
        for record in dispatches
    ]
    sql = "SELECT dispatch_id, name, start, end, stack_id, stream_id, grid_x FROM kernels ORDER BY 1"
    assert listed == query(database, sql)
    strings = {entry["kind"]: entry["operations"] for entry in process["strings"]["buffer_records"]}
    kinds = [entry["kind"] for entry in process["strings"]["buffer_records"]]
    calls = process["buffer_records"]["hip_api"]
    functions = [strings[kinds[call["kind"]]][call["operation"]] for call in calls]
    assert functions == [name for (name,) in query(database, "SELECT name FROM regions ORDER BY stack_id")]
    handles = {agent["id"]["handle"]: agent["name"] for agent in process["agents"]}
    assert {handles[d["dispatch_info"]["agent_id"]["handle"]] for d in dispatches} == {"gfx942"}


def test_json_counters_keep_instances(profiler, results) -> None:
    profiler("--pmc", "GRBM_COUNT", "SQ_WAVES", "-f", "json", "-d", "o", "-o", "x", "--", "true")
    (path,) = results("x_results.json")
    (process,) = json.loads(path.read_text())["rocprofiler-sdk-tool"]
    names = {counter["id"]["handle"]: counter["name"] for counter in process["counters"]}
    first = process["callback_records"]["counter_collection"][0]
    listed = [names[record["counter_id"]["handle"]] for record in first["records"]]
    assert (listed.count("GRBM_COUNT"), listed.count("SQ_WAVES")) == (8, 32)
    assert process["buffer_records"]["kernel_dispatch"] == []


def test_everything_is_stamped_synthetic(profiler, results) -> None:
    profiler(*TRACE, "-f", "csv", "json", "rocpd", "-d", "o", "-o", "x", "--", "true")
    (database,), (document,), (note,) = (
        results("*.db"),
        results("x_results.json"),
        results("x_rpl_origin.json"),
    )
    assert query(database, "SELECT value FROM rocpd_metadata WHERE tag = 'rpl_origin'") == [("synthetic",)]
    (process,) = json.loads(document.read_text())["rocprofiler-sdk-tool"]
    assert process["metadata"]["rpl_origin"] == "synthetic"
    assert json.loads(note.read_text())["rpl_origin"] == "synthetic"


def test_inherited_format_variable_adds_a_format(profiler, results) -> None:
    profiler("--kernel-trace", "-f", "rocpd", "-d", "o", "-o", "x", "--", "true", ROCPROF_OUTPUT_FORMAT="csv")
    assert {path.suffix for path in results("x_*")} == {".csv", ".db", ".json"}


def test_later_release_writes_its_schema(profiler, results) -> None:
    profiler("--kernel-trace", "-d", "o", "-o", "x", "--", "true", RPL_STANDIN_ROCM="10.0")
    (database,) = results("*.db")
    assert query(database, "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'") == [("3.0.3",)]
    assert query(database, "SELECT count(*) FROM spm_counters") == [(0,)]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("-M", "_Z8add_biasPfPKfi.kd"),
        ("-T", "add_bias"),
        ("--group-by-queue", "add_bias(float*, float const*, int)"),
    ],
)
def test_naming_options_change_the_display_name(profiler, results, option: str, expected: str) -> None:
    profiler("--kernel-trace", option, "-d", "o", "-o", "x", "--", "true")
    (database,) = results("*.db")
    assert (expected,) in query(database, "SELECT DISTINCT name FROM kernels")
    streams = query(database, "SELECT count(DISTINCT stream_id) FROM kernels")
    assert streams == [(1 if option == "--group-by-queue" else 3,)]


def test_format_that_is_not_emulated_is_said_and_not_written(profiler, results) -> None:
    done = profiler("--kernel-trace", "-f", "pftrace", "-d", "o", "-o", "x", "--", "true")
    assert "can't write pftrace" in done.stderr
    assert not results("x_*")


SCENARIO = {
    "application": {
        "name": "tiny",
        "streams": 2,
        "kernels": [
            {"name": "a(int*)", "grid": [256, 2, 1], "workgroup": [64, 1, 1], "nominal_ns": 5000},
            {
                "name": "b(int*)",
                "symbol": "_Z1bPi",
                "grid": [128, 1, 1],
                "workgroup": [128, 1, 1],
                "nominal_ns": 900,
                "work": {"valu_per_wave": {"FMA_F64": 3}},
            },
        ],
        "steps": [
            {"allocate": 4096},
            {"copy": "HtoD", "size_bytes": 4096, "stream": 1},
            {"repeat": 2, "steps": [{"launch": "a(int*)", "stream": 1, "times": 2}]},
            {"record": "e", "stream": 1},
            {"wait": "e", "stream": 2},
            {"graph": ["b(int*)", "b(int*)", "a(int*)"], "stream": 2},
            {"sync_event": "e"},
            {"sync_stream": 2},
            {"host_work_ns": 100},
            {"sync_device": True},
        ],
    }
}


def test_scenario_file_describes_another_application(profiler, results, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(SCENARIO))
    profiler(*TRACE, "-d", "o", "-o", "x", "--", "true", RPL_STANDIN_SCENARIO=str(path))
    (database,) = results("*.db")
    counted = query(database, "SELECT name, count(*) FROM kernels GROUP BY 1 ORDER BY 1")
    assert counted == [("a(int*)", 5), ("b(int*)", 2)]
    graph = "SELECT count(*) FROM kernels JOIN regions USING (stack_id) WHERE regions.name = 'hipGraphLaunch'"
    assert query(database, graph) == [(3,)], "one correlation id covers all kernels of a graph launch"
    assert query(database, "SELECT count(*) FROM memory_copies") == [(1,)]
    ends, starts = (
        "SELECT max(end) FROM kernels WHERE stream_id = 1",
        "SELECT min(start) FROM kernels WHERE stream_id = 2",
    )
    assert query(database, starts)[0][0] > query(database, ends)[0][0], "stream 2 waits for the event"


def test_python_scenario_is_run(profiler, results, tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(
        "from rpl_testkit.synthetic_recording.application_model import Application, KernelModel, Launch\n"
        "k = KernelModel('k', '_k', (64, 1, 1), (64, 1, 1), 10)\n"
        "APPLICATION = Application('one', (k,), (Launch('k'),))\nCHILDREN = 1\n"
    )
    profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_SCENARIO=str(path))
    assert len(results("*.db")) == 2


def test_launcher_puts_the_project_and_not_its_own_folder_on_the_path(profiler, tmp_path: Path) -> None:
    path = tmp_path / "s.py"
    path.write_text(
        "import sys\nfrom pathlib import Path\n"
        "from rpl_testkit.synthetic_recording.demo_application import DEMO_APPLICATION as APPLICATION\n"
        "Path('first').write_text(sys.path[0])\n"
    )
    profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_SCENARIO=str(path))
    first = Path((profiler.directory / "first").read_text())
    assert (first / "rpl_testkit" / "rocprofv3_standin" / "main.py").is_file()


def test_broken_scenario_is_one_clear_line(profiler, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"application": {"kernels": []}}')
    done = profiler("--kernel-trace", "--", "true", RPL_STANDIN_SCENARIO=str(path))
    assert done.returncode == 1
    assert done.stderr.startswith("ScenarioError: scenario ")
    assert len(done.stderr.splitlines()) == 1
