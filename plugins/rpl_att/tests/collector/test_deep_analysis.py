"""`rpl profile --deep-analysis` from start to end, against the stand-in profiler that serves real traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PROFILE = ("profile", "--runs", "1", "--device", "MI300X", "--deep-analysis")


def profiled(rpl_cli, run: Path, *options: str) -> dict:
    outcome = rpl_cli(*PROFILE, *options, "-o", run, "--json", "--", "true").assert_ok()
    document = outcome.json()
    assert document["runtime_ms"] > 0
    return document


def codes(document: dict) -> list[str]:
    return [d["code"] for d in document["diagnostics"] if d["code"].startswith(("att.", "collect."))]


def config(path: Path, **settings: object) -> Path:
    lines = [f"{key.replace('_', '-')} = {value}" for key, value in settings.items()]
    path.write_text("\n".join(["[plugins.att]", *lines]) + "\n")
    return path


@pytest.fixture
def aimed(tmp_path: Path, monkeypatch):
    """A configuration that aims at the CU on which the real trace has its waves."""
    monkeypatch.chdir(tmp_path)
    return config(tmp_path / "rpl.toml", target_cu=0)


def test_the_most_critical_kernel_is_traced_and_analysed(rpl_cli, tmp_path, profiler, decoder, aimed):
    profiler("wave_gemm")
    document = profiled(rpl_cli, tmp_path / "run", "--deep-top", "1")
    assert codes(document) == []
    att = document["att"]
    assert (att["kernel"], att["status"], att["level"]) == ("gemm_prefetch", "available", "waves")
    assert att["stall_fraction"] == pytest.approx(0.614994, abs=5e-7)
    assert "agent handle and dispatch id" in att["joined_by"]
    gemm, small = document["kernels"]
    assert (gemm["name"], gemm["att"]["waves"]) == ("gemm_prefetch", 16)
    assert small["att"] is None
    explained = rpl_cli("explain", "gemm_prefetch", "--run", tmp_path / "run").assert_ok().stdout
    assert "Thread trace of gemm_prefetch (16 waves" in explained
    assert "line 135: buffer_load_dword" in explained
    assert "Thread trace" not in rpl_cli("explain", "small", "--run", tmp_path / "run").assert_ok().stdout


def test_headroom_comes_from_the_trace_when_there_are_no_counters(
    rpl_cli, tmp_path, profiler, decoder, aimed
):
    profiler("wave_gemm")
    document = profiled(rpl_cli, tmp_path / "run", "--deep-top", "1")
    assert document["headroom_fraction"] == pytest.approx((20932 + 17412) / (69288 + 17412))
    analysis = json.loads((tmp_path / "run" / "analysis.json").read_text())["kernels"][0]
    assert "thread trace: (memory wait + idle)" in analysis["headroom_source"]
    assert analysis["kernel"] == "gemm_prefetch"


def test_only_the_wanted_kernels_get_passes_with_filters(rpl_cli, tmp_path, profiler, decoder, aimed):
    profiler("wave_gemm")
    profiled(rpl_cli, tmp_path / "run", "--deep-top", "2", "--deep-timeout", "60")
    passes = json.loads((tmp_path / "run" / "run.json").read_text())["passes"]
    traced = {entry["name"]: entry["command"] for entry in passes if entry["role"] == "thread_trace"}
    assert set(traced) == {"att_1", "att_2"}
    first = traced["att_1"]
    assert first[first.index("--kernel-include-regex") + 1] == "^gemm_prefetch$"
    assert first[first.index("--kernel-iteration-range") + 1] == "[2]"
    assert first[first.index("--att-activity") + 1] == "10"
    second = traced["att_2"]
    assert second[second.index("--kernel-iteration-range") + 1] == "[1]"  # launched once


def test_a_trace_of_other_code_is_not_believed_to_be_of_the_kernel(
    rpl_cli, tmp_path, profiler, decoder, aimed
):
    """The stand-in serves the gemm for the second kernel too: results and code then contradict each other."""
    profiler("wave_gemm")
    document = profiled(rpl_cli, tmp_path / "run", "--deep-top", "2")
    assert [k["att"] is not None for k in document["kernels"]] == [True, False]
    (other,) = document["kernels"][0]["att"]["other_dispatches"]
    assert other["joined_by"] == "label in the traced code"
    assert "small_kernel" in other["warnings"][0]


def test_an_empty_trace_is_aimed_again_once_and_then_succeeds(rpl_cli, tmp_path, profiler, decoder):
    profiler("wave_gemm")  # its waves are on CU 0, the default target is CU 1
    document = profiled(rpl_cli, tmp_path / "run", "--deep-top", "1")
    assert codes(document) == ["att.aimed_again"]
    assert document["att"]["waves"] == 16
    assert (tmp_path / "run" / "artifacts" / "att_1_again").is_dir()
    again = next((tmp_path / "run" / "artifacts" / "att_1").glob("ui_output_*"))
    assert json.loads((again / "code.json").read_text())["code"] is None


@pytest.mark.parametrize(
    ("misbehave", "words"),
    [
        ("att_empty", "is empty: no instruction was traced"),
        ("att_undecoded", "could not load the trace decoder; the raw trace is kept"),
    ],
)
def test_a_failed_trace_costs_the_trace_only(rpl_cli, tmp_path, profiler, decoder, aimed, misbehave, words):
    profiler("wave_gemm", misbehave=misbehave)
    document = profiled(rpl_cli, tmp_path / "run", "--deep-top", "1")
    assert codes(document) == ["collect.no_thread_trace"]
    (problem,) = [d for d in document["diagnostics"] if d["code"] == "collect.no_thread_trace"]
    assert words in problem["fact"]
    assert document["att"] is None
    assert document["headroom_fraction"] is None
    assert document["incomplete"] is None


def test_a_missing_decoder_is_said_in_one_line(rpl_cli, tmp_path, profiler, monkeypatch):
    for name in ("RPL_ATT_LIBRARY_PATH", "ROCPROF_ATT_LIBRARY_PATH", "LD_LIBRARY_PATH", "ROCM_PATH"):
        monkeypatch.delenv(name, raising=False)
    profiler("wave_gemm")
    document = profiled(rpl_cli, tmp_path / "run")
    (problem,) = [d for d in document["diagnostics"] if d["code"] == "collect.no_thread_trace"]
    assert "no trace decoder was found" in problem["fact"]
    assert not list((tmp_path / "run").glob("artifacts/att*"))


@pytest.mark.parametrize(("folder", "status"), [("decoder", "ok"), ("elsewhere", "broken")])
def test_the_doctor_looks_where_the_setting_says(rpl_cli, tmp_path, decoder, monkeypatch, folder, status):
    monkeypatch.delenv("RPL_ATT_LIBRARY_PATH")
    (tmp_path / "rpl.toml").write_text(f"[plugins.att]\nlibrary-path = '{tmp_path / folder}'\n")
    checks = rpl_cli("--config", tmp_path / "rpl.toml", "doctor", "--json").json()
    assert checks["trace-decoder"]["status"] == status
    assert str(tmp_path / folder) in str(checks["trace-decoder"])


def test_lost_data_is_a_warning_and_the_rest_is_used(rpl_cli, tmp_path, profiler, decoder, aimed):
    profiler("wave_gemm", misbehave="att_data_lost")
    document = profiled(rpl_cli, tmp_path / "run", "--deep-top", "1")
    assert codes(document) == ["att.data_lost"]
    assert document["att"]["waves"] == 16


def test_a_hanging_trace_ends_with_its_own_time_limit(
    rpl_cli, tmp_path, profiler, decoder, aimed, monkeypatch
):
    monkeypatch.setenv("RPL_STANDIN_STATE", str(tmp_path / "state"))
    profiler("wave_gemm", misbehave="hang:run=3")  # after the timing run and the one without API calls
    document = profiled(rpl_cli, tmp_path / "run", "--deep-top", "1", "--deep-timeout", "1")
    (problem,) = [d for d in document["diagnostics"] if d["code"] == "collect.no_thread_trace"]
    assert "did not end within 1 s" in problem["fact"]


def test_two_traced_dispatches_are_both_analysed(tmp_path, profiler, decoder, rpl_cli, rpl_standin_rocprofv3):
    import subprocess

    profiler("wave_gemm")
    subprocess.run(
        [
            rpl_standin_rocprofv3,
            "--att",
            "--att-library-path",
            decoder,
            "--att-target-cu",
            "0",
            "--kernel-trace",
            "--kernel-include-regex",
            "^gemm_prefetch$",
            "--kernel-iteration-range",
            "[1-2]",
            "--output-format",
            "json",
            "-d",
            tmp_path / "traced",
            "-o",
            "out",
            "--",
            "true",
        ],
        check=True,
        capture_output=True,
    )
    document = rpl_cli("analyze", tmp_path / "traced", "--json").assert_ok().json()
    att = document["att"]
    dispatches = [att["dispatch_id"], *(other["dispatch_id"] for other in att["other_dispatches"])]
    assert sorted(dispatches) == [1, 2]
    assert document["runtime_ms"] is None  # times under a thread trace are no times
    assert "ingest.times_not_used" in [d["code"] for d in document["diagnostics"]]


def test_analysis_of_the_run_gives_the_same_documents(rpl_cli, tmp_path, profiler, decoder, aimed):
    profiler("wave_gemm")
    run = tmp_path / "run"
    profiled(rpl_cli, run, "--deep-top", "1")
    before = (run / "profile.json").read_bytes()
    rpl_cli("analyze", run).assert_ok()
    assert (run / "profile.json").read_bytes() == before


def test_the_listing_of_a_run_shows_its_kernel(rpl_cli, tmp_path, profiler, decoder, aimed):
    profiler("wave_gemm")
    profiled(rpl_cli, tmp_path / "run", "--deep-top", "1")
    text = rpl_cli("att", "show", tmp_path / "run", "--kernel", "gemm").assert_ok().stdout
    assert "waited 8,420 cycles for line 135: buffer_load_dword" in text


def test_a_dry_run_announces_the_traces(rpl_cli, profiler, decoder):
    profiler("wave_gemm")
    text = rpl_cli(*PROFILE, "--dry-run", "--", "true").assert_ok().stdout
    assert "thread traces of the 3 most critical kernels" in text


def test_the_collector_of_traces_records_no_profile(rpl_cli, profiler, decoder):
    profiler("wave_gemm")
    outcome = rpl_cli("profile", "--collector", "thread-trace", "--", "true").assert_exit(64)
    assert "adds passes to a profile and records none" in outcome.stderr


def test_timing_without_a_profiler_can_not_be_deep(rpl_cli):
    words = ("profile", "--no-rocprof", "--deep-analysis", "--dry-run", "--", "true")
    assert "--deep-analysis needs a profiler" in rpl_cli(*words).assert_exit(64).stderr
