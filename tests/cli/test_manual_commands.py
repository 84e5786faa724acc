"""Every command line of the manuals that profiles, as it is printed there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

PROGRAMS = ("rpl", "rocm-perf", "rocm-perf-lab")


def test_three_names_are_one_program():
    versions = {
        subprocess.run([_script(name), "--version"], capture_output=True, check=True).stdout
        for name in PROGRAMS
    }
    assert len(versions) == 1
    assert versions.pop().startswith(b"rpl (ROCm Perf Lab) ")


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_name_profiles(name, workplace, rpl_standin_rocprofv3):
    done = subprocess.run(
        [_script(name), "profile", "./kernel_binary", "--quiet", "--runs", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0


def test_standard_profile_shows_runtime_stability_occupancy_and_resources(
    workplace, rpl_standin_rocprofv3, rpl_cli
):
    shown = rpl_cli("profile", "./kernel_binary").assert_ok().stdout
    for word in ("kernel time", "stability", "3 runs, CV", "occup.", "limiter"):
        assert word in shown
    documents = {path.name for path in (workplace / "rpl-runs" / "latest").glob("*.json")}
    assert documents == {"profile.json", "roofline.json", "dag.json", "analysis.json", "run.json"}


def test_json_is_exactly_one_document_with_the_documented_members(workplace, rpl_standin_rocprofv3, rpl_cli):
    outcome = rpl_cli("profile", "./kernel_binary", "--json").assert_ok()
    document = outcome.json()
    assert {
        "schema_version",
        "kernel",
        "gpu",
        "runtime_ms",
        "stability",
        "resources",
        "occupancy",
        "roofline",
    } <= set(document)
    assert document["schema_version"] == "1.0"
    assert document["roofline"] is None
    assert document["stability"]["runs"] == 3
    assert outcome.stdout == (workplace / "rpl-runs" / "latest" / "profile.json").read_text()


def test_quiet_prints_only_the_runtime_and_keeps_silent(profiled, latest):
    outcome = profiled("./kernel_binary", "--quiet").assert_ok()
    assert outcome.stdout == f"{latest('profile')['runtime_ms']:.6f}\n"
    assert outcome.stderr == ""


def test_debug_shows_the_profilers_log_on_stderr(profiled):
    outcome = profiled("./kernel_binary", "--debug").assert_ok()
    assert "Opened result file" in outcome.stderr
    assert "application output" in outcome.stderr
    assert "Opened result file" not in outcome.stdout


def test_without_debug_neither_log_nor_application_is_heard(profiled):
    outcome = profiled("./kernel_binary").assert_ok()
    assert "Opened result file" not in outcome.stderr
    assert "application output" not in outcome.stdout + outcome.stderr


def test_no_rocprof_times_the_process_and_says_so(workplace, rpl_cli, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no profiler is needed
    outcome = rpl_cli("profile", "./kernel_binary", "--no-rocprof", "--json").assert_ok()
    document = outcome.json()
    assert document["runtime_ms"] > 0
    assert document["runtime_source"] == "wall clock of the whole process (no GPU trace)"
    assert document["kernels"] == []
    assert "whole process" in outcome.stderr
    assert document["stability"]["runs"] == 3


def test_roofline_with_bandwidth_override(profiled):
    document = profiled("./kernel_binary", "--roofline", "--memory-bandwidth-gbps", "100", "--json").json()
    assert document["gpu"]["memory_bandwidth_gbps"] == 100.0
    assert document["provenance"]["overrides"] == ["memory_bandwidth_gbps=100"]
    roofline = document["roofline"]
    for figure in ("flops", "bytes", "operational_intensity", "achieved_gflops", "achieved_gbps"):
        assert roofline[figure] is not None, figure
    assert roofline["bound"] in ("memory", "compute")


def test_readme_quickstart_generates_the_four_documents(profiled, latest):
    profiled("./kernel_binary").assert_ok()
    for name in ("profile", "roofline", "dag", "analysis"):
        assert latest(name)["schema_version"] == "1.0"


def test_without_roofline_the_document_says_how_to_collect(profiled, latest):
    profiled("./kernel_binary").assert_ok()
    document = latest("roofline")
    assert document["status"] == "not_collected"
    assert "--roofline" in document["how_to_collect"]


def test_focus_critical_puts_the_path_first(profiled):
    """Behind the verdict, and before the device, its times and its kernels."""
    for words, first, then in (
        (("--focus-critical",), "critical path", "device"),
        ((), "device", "critical path"),
    ):
        lines = profiled("./kernel_binary", *words).assert_ok().stdout.splitlines()
        places = [next(i for i, line in enumerate(lines) if line.startswith(word)) for word in (first, then)]
        assert places == sorted(places)


def test_calls_and_copies_are_recorded_by_default_with_one_run_without(profiled, latest, workplace):
    shown = profiled("./kernel_binary", "--runs", "2").assert_ok().stdout
    timing, again, reference = latest("run")["passes"]
    assert [timing["role"], again["role"], reference["role"]] == ["timing", "timing", "reference"]
    traces = {"--memory-copy-trace", "--hip-runtime-trace", "--marker-trace"}
    assert traces <= set(timing["command"]) & set(again["command"])
    assert not traces & set(reference["command"])
    assert latest("dag")["sync_info"] == "api_calls"
    profile = latest("profile")
    assert profile["stability"]["runs"] == 2  # the run without calls is no source of time
    assert profile["runtime_source"] == "sum(end - start) of the kernel-trace runs, API calls recorded too"
    run = workplace / "rpl-runs" / "latest"
    with_calls = [_times_by_sql(run / one["artefacts"][0]["path"]) for one in (timing, again)]
    (kernel_ns, makespan_ns) = _times_by_sql(run / reference["artefacts"][0]["path"])
    overhead = profile["call_overhead"]
    assert overhead["runs_with_calls"] == 2
    for found, without, values in (
        (overhead["kernel_time"], kernel_ns, [times[0] for times in with_calls]),
        (overhead["makespan"], makespan_ns, [times[1] for times in with_calls]),
    ):
        assert found["added"] == pytest.approx(sum(values) / 2 / without - 1)
        expected = min(values) / without - 1, max(values) / without - 1
        assert found["added_range"] == pytest.approx(expected)
    assert "2 runs with them against one without" in " ".join(shown.split())


def test_no_api_leaves_calls_and_the_run_without_them_out(profiled, latest):
    profiled("./kernel_binary", "--no-api", "--focus-critical").assert_ok()
    (timing,) = latest("run")["passes"]
    assert "--hip-runtime-trace" not in timing["command"]
    assert latest("profile")["call_overhead"] is None
    assert latest("dag")["sync_info"] == "none"


def test_a_failed_run_without_calls_costs_only_what_it_would_have_told(profiled, latest, program):
    once = "test -e ran && exit 3; touch ran"
    outcome = profiled(str(program(f"#!/bin/sh\n{once}\n")), "--runs", "1").assert_ok()
    assert "what recording API calls costs is unknown" in " ".join(outcome.stderr.split())
    assert latest("profile")["runtime_ms"] > 0
    assert latest("profile")["call_overhead"] is None


def _times_by_sql(path):
    query = "SELECT sum(end - start), max(end) - min(start) FROM rocpd_kernel_dispatch"
    with closing(sqlite3.connect(path)) as base:
        return base.execute(query).fetchone()


def test_critical_path_block_is_in_the_document(profiled):
    part = profiled("./kernel_binary", "--json").json()["critical_path"]
    assert part["critical_path_ns"] > 0
    assert 0 < part["fraction"] <= 1
    assert part["dominant_symbol"]


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))
