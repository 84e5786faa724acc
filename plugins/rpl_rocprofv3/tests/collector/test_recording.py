"""Passes that succeed: files, logs, directories and odd words."""

from __future__ import annotations

import attrs
import pytest

from rpl_core.errors import UsageError
from rpl_core.interfaces.collector import PlannedPass
from rpl_core.model.trace import TraceRole


def counter_pass(recorder, *counters: str) -> PlannedPass:
    (timing,) = recorder.plan("true").passes
    command = (timing.command[0], "--pmc", *counters, *timing.command[2:])
    return PlannedPass(
        name="pass_1",
        role=TraceRole.COUNTERS,
        directory="artifacts/pass_1",
        command=command,
        counters=counters,
    )


def test_the_outcome_names_files_log_and_tool(recorder, application) -> None:
    outcome = recorder.run(application("print('hello from the app')"))
    (name,) = outcome.files
    assert name.startswith(".rocpd_profile/run_1/run_")
    assert name.endswith("_results.db")
    assert (recorder.run_directory / name).is_file()
    assert outcome.log == "artifacts/logs/run_1.log"
    assert "hello from the app" in (recorder.run_directory / outcome.log).read_text()
    assert (outcome.exit_status, outcome.tool_version) == (0, "rocprofv3 1.0.0 (ROCm 7.0.0)")
    assert outcome.wall_s > 0
    assert outcome.diagnostics == ()
    assert outcome.process_ms is None


def test_every_log_line_is_handed_on_and_nothing_goes_to_stdout(
    recorder, application, capfd: pytest.CaptureFixture[str]
) -> None:
    recorder.run(application("import sys; print('out'); print('err', file=sys.stderr)"))
    assert {"out", "err"} <= set(recorder.lines)
    assert capfd.readouterr() == ("", "")


def test_children_with_databases_of_their_own_are_all_found(
    recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FILES", "-run_1_results.db:+run_2_results.db:+pass_1/run_3_results.db")
    outcome = recorder.run("true")
    assert [name.rpartition("run_1/")[2] for name in outcome.files] == [
        "pass_1/run_3_results.db",
        "run_1_results.db",
        "run_2_results.db",
    ]


def test_rocm_6_gives_csv_files(recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "    version: 0.6.0")
    monkeypatch.setenv("FAKE_FILES", "+run_9_kernel_trace.csv:-run_9_agent_info.csv")
    outcome = recorder.run("true")
    assert [name.rpartition("/")[2] for name in outcome.files] == [
        "run_9_agent_info.csv",
        "run_9_kernel_trace.csv",
    ]
    assert outcome.tool_version == "rocprofv3 0.6.0"


def test_odd_words_reach_the_application_as_they_are(recorder, application) -> None:
    odd = ("two words", "$HOME", "`id`", "quo'te\"s", "*", "", "{directory}", "--", "--pmc", "%pid%")
    recorder.run(application("import sys; print(ascii(tuple(sys.argv[1:])))", "an app"), *odd)
    assert ascii(odd) in recorder.lines


def test_rocprofv3_gets_the_absolute_directory_also_with_spaces(recorder, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    recorder.run_directory = recorder.run_directory.relative_to(tmp_path)
    outcome = recorder.run("true")
    arguments = (recorder.pass_directory() / "arguments").read_text().split("\0")
    assert arguments[arguments.index("-d") + 1] == str(
        tmp_path / "my runs" / "first" / ".rocpd_profile" / "run_1"
    )
    assert outcome.files[0].startswith(".rocpd_profile/run_1/")


def test_a_directory_that_holds_a_file_is_refused_so_that_no_old_recording_is_taken(recorder) -> None:
    recorder.pass_directory().mkdir(parents=True)
    (recorder.pass_directory() / "run_1_results.db").write_text("old")
    with pytest.raises(UsageError, match="is not empty"):
        recorder.run("true")
    assert recorder.lines == []


@pytest.mark.parametrize("name", ["100%pid%", "a%h", "{pid}", "$ENV{HOME}", "%q{HOME}"])
def test_a_path_that_rocprofv3_would_change_is_refused(recorder, tmp_path, name: str) -> None:
    recorder.run_directory = tmp_path / name
    with pytest.raises(UsageError, match="rocprofv3 replaces"):
        recorder.run("true")


def test_a_percent_sign_that_means_nothing_is_allowed(recorder, tmp_path) -> None:
    recorder.run_directory = tmp_path / "100% done"
    assert recorder.run("true").files


def test_an_unwritable_directory_is_a_usage_error(recorder, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    recorder.run_directory = tmp_path / "file" / "run"
    with pytest.raises(UsageError, match="cannot write"):
        recorder.run("true")


def test_a_link_among_the_recordings_is_not_followed(recorder, application, tmp_path) -> None:
    (tmp_path / "outside.db").write_text("keep me")
    directory = recorder.pass_directory()
    app = application(
        f"import os; os.symlink({str(tmp_path / 'outside.db')!r}, {str(directory / 'link.db')!r})"
    )
    assert len(recorder.run(app).files) == 1
    assert (tmp_path / "outside.db").read_text() == "keep me"


def test_a_counter_pass_needs_counter_values_and_gets_them(recorder) -> None:
    outcome = recorder.run_pass(counter_pass(recorder, "SQ_WAVES"))
    assert outcome.files[0].startswith("artifacts/pass_1/")


def test_a_counter_that_one_agent_lacks_is_a_finding(recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "FAKE_SAYS",
        "W20250101 tool.cpp:1183] Unable to find all counters for agent 4 (gpu-0, gfx942) in "
        "[SQ_WAVES, SQ_NONE]. Found: [SQ_WAVES]. Missing: [SQ_NONE]",
    )
    outcome = recorder.run_pass(counter_pass(recorder, "SQ_WAVES", "SQ_NONE"))
    assert [(one.code, one.fact) for one in outcome.diagnostics] == [
        ("collect.counter_unavailable", "agent 4 (gpu-0, gfx942) has no counter SQ_NONE")
    ]


def test_counters_read_without_the_privilege_are_a_finding(recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "FAKE_SAYS",
        "W20250101 ioctl.cpp:68] Device 5998 could not be locked for profiling due to lack of permissions "
        "(capability SYS_PERFMON).",
    )
    outcome = recorder.run_pass(counter_pass(recorder, "SQ_WAVES"))
    assert [one.code for one in outcome.diagnostics] == ["collect.counters_not_locked"]
    assert recorder.run("true").diagnostics == ()


def test_error_lines_of_a_good_run_are_no_failure(recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "FAKE_SAYS", "E20250101 generateRocpd.cpp:581] writing SQL database for process 1 on node 2"
    )
    assert recorder.run("true").diagnostics == ()


def test_left_over_processes_are_a_finding(recorder, application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rpl_core.process.supervision.ORPHAN_GRACE_S", 0.1)
    app = application("import subprocess; subprocess.Popen(['sleep', '600'])")
    (finding,) = recorder.run(app).diagnostics
    assert (finding.code, finding.count, finding.where) == ("collect.orphans_ended", 1, "run_1")


def test_the_planned_pass_comes_back_unchanged(recorder) -> None:
    (planned,) = recorder.plan("true").passes
    assert attrs.asdict(recorder.run_pass(planned).planned) == attrs.asdict(planned)
