"""Every way in which a pass fails, with its exit code and what it tells the user."""

from __future__ import annotations

import os
import signal

import attrs
import pytest

from rpl_core.errors import (
    ApplicationError,
    BadDataError,
    ExitCode,
    InterruptedRunError,
    MissingError,
    RplError,
    TimeLimitError,
)
from rpl_core.interfaces.collector import PlannedPass
from rpl_core.model.trace import TraceRole


def failure(recorder, *command: str, counters: tuple[str, ...] = ()) -> RplError:
    (planned,) = recorder.plan(*command).passes
    if counters:
        planned = PlannedPass(
            name="pass_1",
            role=TraceRole.COUNTERS,
            directory="artifacts/pass_1",
            command=(planned.command[0], "--pmc", *counters, *planned.command[2:]),
            counters=counters,
        )
    with pytest.raises(RplError) as caught:
        recorder.run_pass(planned)
    return caught.value


def test_the_exit_status_of_the_application_is_kept(recorder, application) -> None:
    error = failure(recorder, application("print('bad input'); raise SystemExit(42)"))
    assert isinstance(error, ApplicationError)
    assert error.exit_code is ExitCode.APPLICATION_FAILED
    assert error.exit_status == 42  # type: ignore[attr-defined]
    assert "the application (pass run_1) exited with status 42" in error.one_line()
    assert "'bad input'" in error.one_line()
    assert "run_1.log" in error.one_line()


def test_a_crash_names_the_signal_and_how_to_tell_the_profiler_from_the_application(
    recorder, monkeypatch
) -> None:
    monkeypatch.setenv("FAKE_END", "SIGSEGV")
    error = failure(recorder, "true")
    assert isinstance(error, ApplicationError)
    assert "SIGSEGV (segmentation fault)" in error.one_line()
    assert "--no-rocprof" in error.one_line()


def test_an_option_that_rocprofv3_lacks_means_an_old_rocm(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_SAYS", "rocprofv3: error: unrecognized arguments: --hip-runtime-trace")
    monkeypatch.setenv("FAKE_END", "2")
    error = failure(recorder, "true")
    assert isinstance(error, MissingError)
    assert "unrecognized arguments: --hip-runtime-trace" in error.fact
    assert "too old" in error.one_line()


def test_a_format_that_rocprofv3_lacks_means_an_old_rocm(recorder, monkeypatch) -> None:
    says = (
        "rocprofv3: error: argument -f/--output-format: invalid choice: 'rocpd' (choose from 'csv', 'json')"
    )
    monkeypatch.setenv("FAKE_SAYS", says)
    monkeypatch.setenv("FAKE_END", "2")
    assert isinstance(failure(recorder, "true"), MissingError)


def test_the_same_words_of_a_python_application_are_its_own_failure(recorder, application) -> None:
    app = application("import sys; print('train.py: error: unrecognized arguments: --lr'); sys.exit(2)")
    error = failure(recorder, app)
    assert isinstance(error, ApplicationError)
    assert "unrecognized arguments: --lr" in error.one_line()


def test_a_broken_installation_is_missing(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_SAYS", "Fatal error: Failed to resolve path. '/opt/x.so' does not exist")
    monkeypatch.setenv("FAKE_END", "1")
    error = failure(recorder, "true")
    assert isinstance(error, MissingError)
    assert "/opt/x.so" in error.fact


@pytest.mark.parametrize("end", ["1", "0"])
def test_a_full_disk_is_said_whatever_the_exit_status(recorder, monkeypatch, end: str) -> None:
    monkeypatch.setenv("FAKE_SAYS", "E2025 sqlite: database or disk is full")
    monkeypatch.setenv("FAKE_FILES", "")
    monkeypatch.setenv("FAKE_END", end)
    error = failure(recorder, "true")
    assert isinstance(error, MissingError)
    assert "no space left" in error.fact


@pytest.mark.parametrize(
    ("files", "state"), [("", "rocprofv3 wrote no file"), ("-run_1_results.db", "is empty")]
)
def test_no_kernel_is_bad_data_with_the_likely_causes(recorder, monkeypatch, files: str, state: str) -> None:
    monkeypatch.setenv("FAKE_FILES", files)
    error = failure(recorder, "true")
    assert isinstance(error, BadDataError)
    assert "no kernel dispatch recorded in pass run_1" in error.fact
    assert state in error.fact
    assert all(words in error.one_line() for words in ("no kernel", "daemon", "_exit"))


def test_no_kernel_in_csv_files_is_bad_data_too(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_VERSION", "    version: 0.6.0")
    monkeypatch.setenv("FAKE_FILES", "-run_1_kernel_trace.csv:+run_1_agent_info.csv")
    assert isinstance(failure(recorder, "true"), BadDataError)


def test_a_damaged_database_is_left_to_its_reader(recorder, application, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_FILES", "")
    directory = recorder.pass_directory()
    app = application(
        f"open({str(directory / 'run_5_results.db')!r}, 'wb').write(b'SQLite format 3' + bytes(500))"
    )
    outcome = recorder.run(app)
    assert outcome.files == (".rocpd_profile/run_1/run_5_results.db",)
    assert [one.code for one in outcome.diagnostics] == ["collect.environment_kept"]


def test_a_recording_written_elsewhere_is_named(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_FILES", "")
    monkeypatch.setenv("FAKE_SAYS", "E2025 x.cpp:1] Opened result file: /elsewhere/1_results.db (UUID=0000)")
    assert "/elsewhere/1_results.db" in failure(recorder, "true").one_line()


def test_a_machine_without_gpu_is_sent_to_the_doctor(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_SAYS", "hip error 100: no ROCm-capable device is detected")
    monkeypatch.setenv("FAKE_END", "1")
    assert "rpl doctor" in failure(recorder, "true").one_line()
    monkeypatch.setenv("FAKE_END", "0")
    monkeypatch.setenv("FAKE_FILES", "")
    recorder.run_directory = recorder.run_directory.with_name("second")
    error = failure(recorder, "true")
    assert isinstance(error, BadDataError)
    assert "no ROCm-capable device" in error.one_line()


def test_counters_over_capacity_are_named(recorder, monkeypatch) -> None:
    monkeypatch.setenv(
        "FAKE_SAYS",
        "F2025 tool.cpp] Could not construct profile cfg failed with error code 38: Request exceeds the "
        "capabilities of the hardware to collect",
    )
    monkeypatch.setenv("FAKE_END", "SIGABRT")
    error = failure(recorder, "true", counters=("SQ_A", "SQ_B"))
    assert isinstance(error, MissingError)
    assert "this GPU can't count SQ_A SQ_B in one pass" in error.fact


def test_an_abort_of_a_counter_pass_suggests_the_counters(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_END", "SIGABRT")
    error = failure(recorder, "true", counters=("SQ_A",))
    assert isinstance(error, ApplicationError)
    assert "counter collection" in error.one_line()
    assert "--roofline" in error.one_line()


@pytest.mark.parametrize("end", ["SIGABRT", "0"])
def test_an_unknown_counter_is_named_with_its_agent(recorder, monkeypatch, end: str) -> None:
    monkeypatch.setenv(
        "FAKE_SAYS",
        "W2025 tool.cpp] Unable to find all counters for agent 1 (gpu-0, gfx1101) in [SQ_NONE]. Found: []",
    )
    monkeypatch.setenv("FAKE_NO_COUNTERS", "1")
    monkeypatch.setenv("FAKE_END", end)
    error = failure(recorder, "true", counters=("SQ_NONE",))
    assert isinstance(error, MissingError)
    assert "SQ_NONE" in error.fact
    assert "gfx1101" in error.one_line()


def test_a_counter_pass_without_values_is_missing(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_NO_COUNTERS", "1")
    error = failure(recorder, "true", counters=("SQ_WAVES",))
    assert isinstance(error, MissingError)
    assert "no counter value recorded in pass pass_1" in error.fact


def test_the_fault_of_integrated_gpus_is_recognised(recorder, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_SAYS", "terminate called: what():  unordered_map::at")
    monkeypatch.setenv("FAKE_END", "SIGABRT")
    assert "integrated GPU" in failure(recorder, "true", counters=("SQ_WAVES",)).one_line()


def test_the_time_limit_ends_the_application(recorder, application) -> None:
    app = application("import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)")
    (planned,) = recorder.plan(app).passes
    with pytest.raises(TimeLimitError, match=r"pass run_1\) did not end within 1\.5 s"):
        recorder.run_pass(attrs.evolve(planned, time_limit_s=1.5))
    assert not recorder.application_runs()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_the_application_runs_leaves_nothing_running(
    recorder, application, number
) -> None:
    app = application("import os, time; print('pid', os.getpid(), flush=True); time.sleep(600)")
    (planned,) = recorder.plan(app).passes

    def interrupt(line: str) -> None:
        recorder.lines.append(line)
        if line.startswith("pid"):
            os.kill(os.getpid(), number)

    with pytest.raises(InterruptedRunError):
        recorder.collector.run(planned, recorder.run_directory, interrupt)
    assert not recorder.application_runs()


def test_a_failed_pass_leaves_the_finished_ones_alone(recorder, monkeypatch) -> None:
    first, second = recorder.plan("true", runs=2).passes
    outcome = recorder.run_pass(first)
    content = (recorder.run_directory / outcome.files[0]).read_bytes()
    monkeypatch.setenv("FAKE_END", "SIGABRT")
    with pytest.raises(ApplicationError):
        recorder.run_pass(second)
    assert (recorder.run_directory / outcome.files[0]).read_bytes() == content
