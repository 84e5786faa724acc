"""What a profiled application inherits, and what a recording may keep of it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from rpl_rocprofv3.collector import profiling_environment
from rpl_rocprofv3.collector.rocprof import remove_environments


@pytest.mark.parametrize(
    "name",
    [
        "ROCPROF_OUTPUT_FORMAT",
        "ROCPROF_COUNTERS",
        "ROCPROFILER_METRICS_PATH",
        "ROCP_TOOL_LIBRARIES",
        "HSA_TOOLS_LIB",
        "HSA_TOOLS_REPORT_LOAD_FAILURE",
    ],
)
def test_settings_of_profilers_are_dropped(name: str) -> None:
    assert profiling_environment({name: "1", "HOME": "/root"}) == {"HOME": "/root"}


@pytest.mark.parametrize(
    "name", ["HSA_ENABLE_SDMA", "HIP_VISIBLE_DEVICES", "ROCM_PATH", "LD_LIBRARY_PATH", "ROCR_VISIBLE_DEVICES"]
)
def test_settings_of_the_runtime_stay(name: str) -> None:
    assert profiling_environment({name: "1"}) == {name: "1"}


def test_only_profilers_leave_the_preloaded_libraries() -> None:
    preload = (
        "/opt/rocm/lib/rocprofiler-sdk/librocprofiler-sdk-tool.so:/usr/lib/libjemalloc.so librocprofv3-x.so"
    )
    assert profiling_environment({"LD_PRELOAD": preload}) == {"LD_PRELOAD": "/usr/lib/libjemalloc.so"}
    assert profiling_environment({"LD_PRELOAD": "librocprofiler-sdk.so.1"}) == {}


def test_the_application_does_not_see_inherited_profiler_settings(
    recorder, application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCPROF_OUTPUT_FORMAT", "csv")
    monkeypatch.setenv("HSA_TOOLS_LIB", "libother.so")
    monkeypatch.setenv("KEPT", "yes")
    names = ("ROCPROF_OUTPUT_FORMAT", "HSA_TOOLS_LIB", "KEPT")
    app = application(f"import os; print('seen', [name for name in {names} if name in os.environ])")
    recorder.run(app)
    assert "seen ['KEPT']" in recorder.lines


def test_no_byte_of_the_environment_stays_in_the_run_directory(
    recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "topsecretvalue")
    outcome = recorder.run("true")
    contents = [path.read_bytes() for path in recorder.run_directory.rglob("*") if path.is_file()]
    assert len(outcome.files) == 1
    assert not any(b"topsecretvalue" in content or b"MY_API_KEY" in content for content in contents)
    assert "topsecretvalue" not in repr(outcome)


def test_a_failed_pass_keeps_no_environment_either(recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "topsecretvalue")
    monkeypatch.setenv("FAKE_END", "3")
    with pytest.raises(Exception, match="status 3"):
        recorder.run("true")
    databases = list(recorder.run_directory.rglob("*.db"))
    assert databases
    assert not any(b"topsecretvalue" in path.read_bytes() for path in databases)


def test_the_rest_of_the_process_table_is_untouched(tmp_path: Path) -> None:
    path = tmp_path / "run 1%.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE rocpd_info_process_1 (id INTEGER, command TEXT, environment TEXT);"
            "INSERT INTO rocpd_info_process_1 VALUES (7, 'app', 'KEY=1'), (8, 'child', 'KEY=2');"
            "CREATE TABLE rocpd_info_process_no_environment (id INTEGER);"
        )
    connection.close()
    assert remove_environments([path]) == ()
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT * FROM rocpd_info_process_1").fetchall()
    connection.close()
    assert rows == [(7, "app", "{}"), (8, "child", "{}")]


def test_a_file_whose_environment_can_not_be_removed_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"not a database at all" * 100)
    (finding,) = remove_environments([broken])
    assert (finding.code, finding.count) == ("collect.environment_kept", 1)
    assert "broken.db" in finding.fact


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ROCJITSU_RUNTIME_DIR", "/run/rocjitsu", ("true",)),
        ("LD_PRELOAD", "/opt/other.so /opt/sim/librocjitsu.so.1", ("true",)),
        ("PLAIN", "1", ("env", "rocjitsu=1", "true")),
        ("PLAIN", "1", ("true", "rocjitsu")),
    ],
)
def test_what_ran_on_a_simulated_gpu_is_marked(recorder, monkeypatch, name, value, words):
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAKE_FILES", "+1_results.db")
    outcome = recorder.run(*words)
    mark = recorder.pass_directory() / "rpl_origin.json"
    if words == ("env", "rocjitsu=1", "true"):
        assert not mark.exists()
        assert outcome.diagnostics == ()
        return
    assert json.loads(mark.read_text()) == {"rpl_origin": "modelled"}
    assert [one.code for one in outcome.diagnostics] == ["collect.simulated_gpu"]
