"""The application really runs: exit codes, signals, process groups, and failures on demand."""

from __future__ import annotations

import os
import signal
import sqlite3
import statistics
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from rpl_testkit.rocprofv3_standin.main import (
    Misbehaviour,
    active_misbehaviours,
    parse_misbehaviours,
)


def total_ns(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT sum(duration) FROM kernels").fetchone()[0])


def test_exit_code_and_output_are_those_of_the_application(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "--", "sh", "-c", "echo out; echo err >&2; exit 9")
    assert done.returncode == 9
    assert done.stdout == "out\n"
    assert "err" in done.stderr.splitlines()
    assert len(results("*_results.db")) == 1


def test_announcements_look_like_errors_on_success(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "-o", "x", "--", "true")
    (path,) = results("*_results.db")
    lines = done.stderr.splitlines()
    assert any(line.startswith("W") and "] writing SQL database for process " in line for line in lines)
    opened = [line for line in lines if line.startswith("E") and "] Opened result file: " in line]
    assert len(opened) == 1
    assert (
        opened[0]
        .split("Opened result file: ")[1]
        .startswith(f"{path.relative_to(profiler.directory)} (UUID=")
    )


def test_log_level_silences_announcements(profiler) -> None:
    assert profiler("--kernel-trace", "--log-level", "fatal", "-d", "o", "--", "true").stderr == ""


def test_missing_application_ends_with_1(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "--", "./absent")
    assert done.returncode == 1
    assert "FileNotFoundError" in done.stderr
    assert not results("*_results.db")


def test_application_killed_by_a_signal_still_leaves_results(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "--", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == -signal.SIGSEGV
    assert f"rocprofv3 caught signal {int(signal.SIGSEGV)}" in done.stderr
    assert len(results("*_results.db")) == 1


def test_sigkill_leaves_nothing(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == -signal.SIGKILL
    assert not results("*_results.db")


def wait_for_line(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("started", ["at once", "a while ago"])
def test_signal_to_the_profiler_reaches_the_application(
    profiler, results, number: signal.Signals, started: str
) -> None:
    before = "" if started == "at once" else "sleep 0.3;"
    script = f"trap 'echo got; exit 5' {number.name[3:]}; {before} echo up; while :; do sleep 0.05; done"
    process = profiler.start("--kernel-trace", "-d", "o", "--", "sh", "-c", script)
    wait_for_line(process)
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=20)
    assert (process.returncode, stdout) == (5, "got\n")


def test_signal_that_the_caller_ignores_stays_ignored(profiler, results) -> None:
    app = ["sh", "-c", "echo up; sleep 0.5; exit 6"]
    script = 'trap "" INT; exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", script, "-", str(profiler.program), "--kernel-trace", "-d", "o", "--", *app],
        cwd=profiler.directory,
        env=profiler.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    wait_for_line(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 6


def test_group_kill_ends_profiler_and_application(profiler) -> None:
    process = profiler.start("--kernel-trace", "-d", "o", "--", "sh", "-c", "echo up; exec sleep 60")
    wait_for_line(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("kind", "ends_by"), [("hang", signal.SIGTERM), ("hang_hard", signal.SIGKILL)])
def test_hang_ends_by_the_signal_that_can_end_it(
    profiler, results, kind: str, ends_by: signal.Signals
) -> None:
    process = profiler.start(
        "--kernel-trace", "-d", "o", "--", "sh", "-c", "echo up", RPL_STANDIN_MISBEHAVE=kind
    )
    wait_for_line(process)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.7)
    process.terminate()
    if kind == "hang_hard":
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        process.kill()
    process.communicate(timeout=20)
    assert process.returncode == -ends_by
    assert not results("*_results.db")


def test_abort_leaves_nothing(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "--", "touch", "ran", RPL_STANDIN_MISBEHAVE="abort")
    assert done.returncode == -signal.SIGABRT
    assert results("ran")
    assert not results("*_results.db")


def test_no_output_exits_0_without_a_database(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_MISBEHAVE="no_output")
    assert done.returncode == 0
    assert not results("*_results.db")


def test_truncated_database_cannot_be_read(profiler, results) -> None:
    profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_MISBEHAVE="truncated")
    (path,) = results("*_results.db")
    with pytest.raises(sqlite3.DatabaseError):
        total_ns(path)


def test_empty_database_has_tables_but_no_dispatches(profiler, results) -> None:
    profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_MISBEHAVE="empty")
    (path,) = results("*_results.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM rocpd_kernel_dispatch").fetchone() == (0,)


def test_full_disk_aborts_with_the_database_error(profiler, results) -> None:
    done = profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_MISBEHAVE="disk_full")
    assert done.returncode == -signal.SIGABRT
    assert "SQLite3 error 13: database or disk is full" in done.stderr
    (path,) = results("*_results.db")
    assert path.stat().st_size < 100


def test_unwritable_place_aborts(profiler) -> None:
    (profiler.directory / "o").write_text("a file")
    done = profiler("--kernel-trace", "-d", "o/sub", "--", "true")
    assert done.returncode == -signal.SIGABRT
    assert "filesystem error" in done.stderr
    assert "Traceback" not in done.stderr


def test_withheld_counter_is_reported_missing(profiler) -> None:
    done = profiler(
        "--pmc", "SQ_WAVES", "-d", "o", "--", "true", RPL_STANDIN_MISBEHAVE="unavailable=SQ_WAVES"
    )
    assert "Missing: [SQ_WAVES]" in done.stderr


def test_exit_code_can_be_forced(profiler) -> None:
    assert profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_MISBEHAVE="exit=3").returncode == 3


def test_misbehaviour_can_be_bound_to_a_kind_or_number_of_run() -> None:
    given = parse_misbehaviours("abort:counters; exit=2:run=3; slow=0.5")
    assert given[1] == Misbehaviour("exit", "2", "run=3")
    assert active_misbehaviours(given, counting=False, run=1) == {"slow": "0.5"}
    assert active_misbehaviours(given, counting=True, run=1) == {"abort": "", "slow": "0.5"}
    assert active_misbehaviours(given, counting=False, run=3) == {"exit": "2", "slow": "0.5"}


@pytest.mark.parametrize("text", ["explode", "abort:someday"])
def test_unknown_misbehaviour_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_misbehaviours(text)


def test_runs_in_other_directories_differ_a_little_and_repeat_exactly(profiler, results) -> None:
    totals = []
    for name in ("run_1", "run_2", "run_3", "again/run_1"):
        profiler("--kernel-trace", "-d", name, "-o", "x", "--", "true")
        totals.append(total_ns(profiler.directory / name / "x_results.db"))
    assert totals[3] == totals[0]
    assert len(set(totals[:3])) == 3
    assert statistics.stdev(totals[:3]) / statistics.mean(totals[:3]) < 0.05


def test_counter_file_numbers_the_runs(profiler, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    totals = []
    for _ in range(2):
        profiler("--kernel-trace", "-d", "o", "-o", "x", "--", "true", RPL_STANDIN_STATE=state)
        totals.append(total_ns(profiler.directory / "o/x_results.db"))
    assert totals[0] != totals[1]
    assert Path(state).read_text() == "2"


def test_seed_changes_the_run(profiler) -> None:
    totals = []
    for seed in ("1", "2"):
        profiler("--kernel-trace", "-d", "o", "-o", "x", "--", "true", RPL_STANDIN_SEED=seed)
        totals.append(total_ns(profiler.directory / "o/x_results.db"))
    assert totals[0] != totals[1]
