"""Commands that read what is there: analyze, report, explain, doctor, config."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rpl_testkit.fixtures import Launch


@pytest.fixture
def run(rpl_make_rocpd, rpl_cli, workplace):
    """The documents of a recording with kernels of two names, one of them inside the other."""
    recording = rpl_make_rocpd(
        [
            Launch("gemm", 0, 9000, grid=(4096, 1, 1)),
            Launch("gemm_tail", 9000, 10000),
            Launch("copy", 10000, 10500),
        ]
    )
    rpl_cli("analyze", recording, "-o", workplace / "out").assert_ok()
    return workplace / "out"


def test_analyze_without_output_writes_nothing(rpl_make_rocpd, rpl_cli, workplace):
    recording = rpl_make_rocpd([("kernel", 0, 1000)])
    before = sorted(workplace.iterdir())
    rpl_cli("analyze", recording).assert_ok()
    assert sorted(workplace.iterdir()) == before


def test_analyze_opens_recordings_read_only(rpl_make_rocpd, rpl_cli, workplace):
    recording = rpl_make_rocpd([("kernel", 0, 1000)])

    def state():
        return recording.read_bytes(), recording.stat().st_mtime_ns, sorted(recording.parent.iterdir())

    before = state()
    rpl_cli("analyze", recording).assert_ok()
    assert state() == before


def test_analyze_of_documents_alone_points_to_report(run, rpl_cli):
    (run / "run.json").unlink()  # as earlier versions wrote them
    outcome = rpl_cli("analyze", run).assert_exit(65)
    assert "not the recording that they were made from" in outcome.stderr


def test_repeated_recordings_give_a_spread(rpl_make_rocpd, rpl_cli):
    runs = [rpl_make_rocpd([("kernel", 0, 1000 + 20 * i)], name=f"{i}_results.db", pid=i) for i in (1, 2, 3)]
    document = rpl_cli("analyze", "--json", "--each-is-a-run", *runs).assert_ok().json()
    assert document["stability"]["runs"] == 3
    assert document["stability"]["mean_ms"] == pytest.approx(1040e-6)
    assert document["stability"]["stddev_ms"] == pytest.approx(20e-6)  # 1020, 1040, 1060 ns: n - 1
    assert document["stability"]["cv"] == pytest.approx(20 / 1040)
    assert document["stability"]["classification"] == "stable"


def test_report_shows_what_the_documents_say(run, rpl_cli):
    shown = rpl_cli("report", run).assert_ok().stdout
    assert "AMD Instinct MI300X" in shown
    assert "gemm_tail" in shown
    assert "synthetic: not a measurement of hardware" in shown
    assert "roofline: not collected" in shown


def test_report_as_json_holds_all_four_documents(run, rpl_cli):
    bundle = rpl_cli("report", run, "--format", "json").assert_ok().json()
    assert set(bundle) >= {"profile", "roofline", "dag", "analysis"}
    assert bundle["profile"] == json.loads((run / "profile.json").read_text())


def test_report_into_a_file(run, rpl_cli, workplace):
    outcome = rpl_cli("report", run, "-o", "report.txt").assert_ok()
    assert outcome.stdout == ""
    assert (workplace / "report.txt").read_text() == rpl_cli("report", run).stdout


def test_report_into_a_place_that_can_not_be_written(run, rpl_cli):
    assert rpl_cli("report", run, "-o", "/proc/nowhere/report.txt").exit_code in (64, 69)


def test_unknown_format_names_the_known_ones(run, rpl_cli):
    assert "known: " in rpl_cli("report", run, "--format", "braille").assert_exit(69).stderr


def test_explain_takes_the_longest_running_kernel(run, rpl_cli):
    shown = rpl_cli("explain", "--run", run).assert_ok().stdout.splitlines()
    assert shown[0] == "gemm"
    assert any(line.startswith("label ") for line in shown)


def test_explain_prefers_the_exact_name_over_a_part(run, rpl_cli):
    assert rpl_cli("explain", "gemm", "--run", run).assert_ok().stdout.splitlines()[0] == "gemm"
    assert rpl_cli("explain", "tail", "--run", run).assert_ok().stdout.splitlines()[0] == "gemm_tail"


def test_explain_with_an_ambiguous_name_lists_the_matches(run, rpl_cli):
    outcome = rpl_cli("explain", "gem", "--run", run).assert_exit(64)
    assert "gemm; gemm_tail" in outcome.stderr


def test_explain_of_an_unknown_kernel(run, rpl_cli):
    assert "no kernel matches 'fft'" in rpl_cli("explain", "fft", "--run", run).assert_exit(69).stderr


def test_explain_as_json_is_the_entry_of_the_document(run, rpl_cli):
    entry = rpl_cli("explain", "copy", "--run", run, "--json").assert_ok().json()
    assert entry in json.loads((run / "analysis.json").read_text())["kernels"]


def test_explain_says_what_the_recording_can_not_tell(run, rpl_cli):
    shown = rpl_cli("explain", "--run", run).assert_ok().stdout
    assert "collect them with --roofline" in shown


def test_doctor_names_a_remedy_for_everything_that_is_missing(rpl_cli, workplace):
    outcome = rpl_cli("doctor", "--json", env={"PATH": "/usr/bin:/bin"})
    assert outcome.exit_code in (0, 69)
    checks = outcome.json()
    assert checks["python"]["status"] == "ok"
    missing = {name: check for name, check in checks.items() if check["status"] != "ok"}
    assert all(check["remedy"] and check["needed_for"] for check in missing.values())
    assert (outcome.exit_code == 69) == bool(missing)


def test_config_shows_value_and_origin(rpl_cli, workplace):
    (workplace / "rpl.toml").write_text('runs = 7\n[plugins.att]\nkey = "x"\n')
    shown = rpl_cli("config", "show", "--json", env={"RPL_STRICT": "yes"}).assert_ok().json()
    assert shown["runs"] == {"value": 7, "origin": f"file {workplace / 'rpl.toml'}"}
    assert shown["strict"] == {"value": True, "origin": "environment RPL_STRICT"}
    assert shown["flop-model"] == {"value": "per_op", "origin": "default"}


def test_unknown_setting_in_the_file_is_a_usage_error(rpl_cli, workplace):
    (workplace / "rpl.toml").write_text("runz = 7\n")
    assert "unknown setting 'runz'" in rpl_cli("config", "show").assert_exit(64).stderr


@pytest.mark.parametrize("words", [("doctor",), ("profile", "--dry-run", "--", "true")])
def test_whoever_runs_a_program_of_a_found_file_says_so(rpl_cli, workplace, program, words):
    program("#!/bin/sh\ntouch it_ran\necho 'rocprofv3 version 1.1.0'\n", "rocprofv3")
    (workplace / "rpl.toml").write_text(f"[plugins.rocprofv3]\nexecutable = '{workplace / 'rocprofv3'}'\n")
    found = rpl_cli(*words)
    assert (workplace / "it_ran").exists()
    assert f"settings and names of programs are those of {workplace / 'rpl.toml'}" in found.stderr
    named = rpl_cli("--config", workplace / "rpl.toml", *words)
    assert named.exit_code == found.exit_code
    assert "names of programs" not in named.stderr


@pytest.mark.parametrize(
    ("hidden", "says"),
    [
        ("folder", "'folder' is not readable"),
        ("folder/inner", "Permission denied at folder/inner"),
        ("folder/run.json", "folder/run.json can't be read: Permission denied"),
        ("folder/inner/1_results.db", "its files may not be read"),
    ],
)
def test_what_may_not_be_read_is_said_in_one_line(tmp_path, rpl_make_rocpd, rpl_require, hidden, says):
    recording = rpl_make_rocpd([("kernel", 0, 1000)])
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    recording.rename(tmp_path / "folder" / "inner" / "1_results.db")
    if hidden.endswith("run.json"):
        (tmp_path / hidden).write_text("{}")
    start = "import sys; from rpl_core.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "analyze", "folder"]
    if os.geteuid() == 0:  # who may read everything
        rights = "-dac_override,-dac_read_search"
        command = [str(rpl_require("setpriv")), "--bounding-set", rights, "--inh-caps", rights, *command]
    (tmp_path / hidden).chmod(0)
    try:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    finally:
        (tmp_path / hidden).chmod(0o700)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert says in line
    assert done.returncode in {64, 65}, line


def test_explain_shows_the_roofline_with_levels_types_and_caches(rpl_cli, tmp_path, rpl_shared_data):
    recording = rpl_shared_data / "counters_gfx942" / "path_MI300X_A1"
    rpl_cli("analyze", recording, "-o", tmp_path / "copy").assert_ok()
    shown = rpl_cli("explain", "vecCopy", "--run", tmp_path / "copy").assert_ok().stdout
    assert "HBM/fabric          1,130 of 5,325 GB/s" in shown
    assert "28.9% of the published ceilings" in shown
    assert "FLOPs, per_op       0, used" in shown
    assert "FLOPs, valu_width   786,432 (estimate)" in shown
    assert "l2_hit_rate         33.4%" in shown
    assert "A pure copy without any reuse shows 0.33" in shown
    assert "dependency-wait -> latency_bound, decides" in shown


def test_explain_without_counters_says_why_there_is_no_roofline(run, rpl_cli):
    shown = rpl_cli("explain", "--run", run).assert_ok().stdout
    assert "roofline    not collected: no counter pass was recorded" in shown
    assert "headroom    unknown: hbm_utilization is unknown" in shown


def test_explain_holds_arithmetic_against_its_ceiling(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("RPL_LOAD_PLUGINS", f"{os.environ['RPL_LOAD_PLUGINS']},rpl-emu")
    rpl_cli("demo", "--recorded", "--runs", "1", "-o", tmp_path / "run").assert_ok()
    shown = rpl_cli("explain", "gemm", "--run", tmp_path / "run").assert_ok().stdout
    (line,) = (line for line in shown.splitlines() if "F16 mfma" in line)
    assert line.endswith(" of 1,307,443 GOP/s, picks the roof")
