"""How a profile can end: each failure has its message, its exit code, and leaves what finished."""

from __future__ import annotations

import json
import shutil
import sys

import pytest


def run_directory(workplace):
    (found,) = (path for path in (workplace / "rpl-runs").iterdir() if not path.is_symlink())
    return found


def manifest(workplace):
    return json.loads((run_directory(workplace) / "run.json").read_text())


def fails_in_run(number, status):
    """A program that counts its executions in a file and fails in one of them."""
    return (
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "count = pathlib.Path('executions')\n"
        "count.write_text((count.read_text() if count.exists() else '') + 'x')\n"
        f"sys.exit({status} if len(count.read_text()) == {number} else 0)\n"
    )


def test_application_that_fails_at_once(profiled, workplace, program):
    outcome = profiled(program("#!/bin/sh\necho oh no\nexit 3\n")).assert_exit(76)
    assert "exited with status 3" in outcome.stderr
    assert outcome.stdout == ""
    assert manifest(workplace)["state"] == "incomplete"
    assert manifest(workplace)["passes"][0]["exit_status"] == 3
    assert "oh no" in (run_directory(workplace) / "artifacts/logs/run_1.log").read_text()


def test_application_that_fails_in_its_second_run_keeps_the_first(
    workplace, program, rpl_standin_rocprofv3, rpl_cli
):
    failing = program(fails_in_run(2, 3))
    outcome = rpl_cli("profile", "--json", "--runs", "3", failing).assert_exit(76)
    document = outcome.json()
    assert document["stability"]["runs"] == 1
    assert "status 3" in document["incomplete"]
    assert "the finished passes are kept" in outcome.stderr
    states = [entry["state"] for entry in manifest(workplace)["passes"]]
    assert states == ["complete", "failed", "planned", "planned"]
    again = rpl_cli("analyze", "--json", run_directory(workplace)).assert_ok()
    assert again.json() == document


def test_application_that_fails_in_a_counter_pass_keeps_the_times(profiled, workplace, program, latest):
    outcome = profiled("--roofline", "--no-api", program(fails_in_run(2, 3))).assert_ok()
    assert "counter pass pass_1 failed" in outcome.stderr
    assert latest("profile")["runtime_ms"] > 0
    # The other two passes ran: what they counted is there, what is missing is named.
    assert latest("roofline")["status"] == "available"
    assert latest("profile")["incomplete"] is None
    assert "status 3" in json.dumps(latest("profile")["diagnostics"])


def test_application_killed_by_a_signal(profiled, program):
    outcome = profiled(program("#!/bin/sh\nkill -SEGV $$\n")).assert_exit(76)
    assert "SIGSEGV" in outcome.stderr


def test_time_limit_ends_the_whole_process_group(profiled, workplace, program):
    sleeper = program("#!/bin/sh\nsleep 300 &\necho $! > child\nwait\n")
    child = workplace / "child"
    for seconds in (1, 5, 25):  # on a busy machine the first one ends before the program begins
        outcome = profiled("--time-limit", str(seconds), sleeper).assert_exit(124)
        assert f"did not end within {seconds} s" in outcome.stderr
        if child.is_file() and child.read_text():
            break
    assert not _is_alive(int(child.read_text()))


def test_time_limit_in_a_later_run_keeps_the_first(
    workplace, program, rpl_standin_rocprofv3, rpl_cli, tmp_path
):
    environment = {"RPL_STANDIN_MISBEHAVE": "hang:run=2", "RPL_STANDIN_STATE": str(tmp_path / "count")}
    outcome = rpl_cli(
        "profile", "--runs", "2", "--time-limit", "2", "--json", "./kernel_binary", env=environment
    ).assert_exit(124)
    assert outcome.json()["stability"]["runs"] == 1


@pytest.mark.long
def test_time_limit_in_a_counter_pass_keeps_the_times(profiled, latest):
    environment = {"RPL_STANDIN_MISBEHAVE": "hang:counters"}  # the timing run needs a part of a second
    outcome = profiled("--roofline", "--time-limit", "3", "./kernel_binary", env=environment).assert_exit(124)
    assert latest("profile")["runtime_ms"] > 0
    assert latest("roofline")["status"] == "unavailable"
    assert "did not end within" in latest("roofline")["reason"]
    assert "kernel time" in outcome.stdout


def test_missing_rocprofv3(workplace, rpl_cli):
    outcome = rpl_cli("profile", "./kernel_binary", env={"PATH": "/usr/bin:/bin"}).assert_exit(69)
    assert "rocprofv3 was not found" in outcome.stderr
    assert "--no-rocprof" in outcome.stderr
    assert "--from" in outcome.stderr
    assert not (workplace / "rpl-runs").exists()


def test_missing_application(profiled):
    assert "there is no such file" in profiled("./nowhere").assert_exit(69).stderr


def test_core_alone_names_the_next_command(workplace, rpl_cli):
    outcome = rpl_cli(
        "--disable-plugin", "rocprofv3", "--disable-plugin", "gfx942", "profile", "./kernel_binary"
    ).assert_exit(69)
    assert "pip install rpl-rocprofv3" in outcome.stderr


def test_core_alone_can_not_read_recordings(rpl_cli, rpl_make_rocpd):
    recording = rpl_make_rocpd([("kernel", 0, 1000)])
    outcome = rpl_cli("--disable-plugin", "rocprofv3", "analyze", recording).assert_exit(69)
    assert "pip install rpl-rocprofv3" in outcome.stderr


def test_application_without_kernels(profiled, tmp_path):
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"application": {"name": "idle", "kernels": [], "steps": []}}))
    outcome = profiled("./kernel_binary", env={"RPL_STANDIN_SCENARIO": str(scenario)}).assert_exit(65)
    assert "no kernel dispatch recorded" in outcome.stderr


@pytest.mark.parametrize("how", ["no_output", "empty", "truncated"])
def test_profiler_that_leaves_nothing_usable(profiled, how):
    outcome = profiled("./kernel_binary", env={"RPL_STANDIN_MISBEHAVE": how}).assert_exit(65)
    assert outcome.stderr.splitlines()[-1].startswith("rpl: ")


def test_counters_that_the_gpu_lacks_give_null_with_the_reason(profiled, latest):
    environment = {"RPL_STANDIN_MISBEHAVE": "abort:counters"}
    outcome = profiled("--roofline", "--json", "./kernel_binary", env=environment).assert_ok()
    assert outcome.json()["roofline"] is None
    assert latest("roofline")["status"] == "unavailable"
    assert "counter pass pass_1 failed" in latest("roofline")["reason"]
    assert "counter pass pass_1 failed" in outcome.stderr


def test_one_unavailable_counter_is_named_and_the_rest_is_used(profiled, latest):
    environment = {"RPL_STANDIN_MISBEHAVE": "unavailable=TCC_BUBBLE_sum"}
    profiled("--roofline", "./kernel_binary", env=environment).assert_ok()
    kernels = latest("profile")["kernels"]
    assert all("TCC_BUBBLE" in kernel["roofline"]["missing"] for kernel in kernels)
    computing = [kernel["roofline"] for kernel in kernels if kernel["roofline"]["flops"]]
    assert computing
    assert all(roofline["exactness"] != "exact" for roofline in computing)


def test_counters_of_a_device_that_nobody_knows(workplace, rpl_standin_rocprofv3, rpl_cli):
    outcome = rpl_cli(
        "--disable-plugin", "gfx942", "profile", "--runs", "1", "--roofline", "--json", "./kernel_binary"
    ).assert_ok()
    assert outcome.json()["roofline"] is None
    assert "no installed plugin knows the counters of this device" in outcome.stderr


def test_unknown_device_names_the_known_ones(profiled, workplace):
    outcome = profiled("--device", "gfx9000", "./kernel_binary").assert_exit(69)
    assert "known: gfx942, mi300a, mi300x, mi308x, mi325x" in outcome.stderr
    assert "write a device plugin" in outcome.stderr
    assert not (workplace / "rpl-runs").exists()


def test_output_directory_that_holds_something_is_refused(profiled, workplace):
    (workplace / "out").mkdir()
    (workplace / "out" / "old.db").write_text("stale")
    outcome = profiled("-o", "out", "./kernel_binary").assert_exit(64)
    assert "exists and is not empty" in outcome.stderr
    assert [path.name for path in (workplace / "out").iterdir()] == ["old.db"]


def test_output_directory_that_is_a_file_is_refused(profiled, workplace):
    (workplace / "out").write_text("")
    assert "exists and is not empty" in profiled("-o", "out", "./kernel_binary").assert_exit(64).stderr


def test_output_directory_that_can_not_be_made(profiled):
    outcome = profiled("-o", "/proc/nowhere/out", "./kernel_binary").assert_exit(64)
    assert "cannot write /proc/nowhere/out" in outcome.stderr
    assert "-o DIR" in outcome.stderr


def test_output_directory_is_used_and_leaves_no_link_beside_it(profiled, workplace):
    profiled("-o", "deep/out", "./kernel_binary").assert_ok()
    assert (workplace / "deep/out/profile.json").is_file()
    assert [path.name for path in (workplace / "deep").iterdir()] == ["out"]
    assert not (workplace / "rpl-runs").exists()


def test_two_profiles_in_one_second_get_directories_of_their_own(profiled, workplace):
    for _ in range(2):
        profiled("--quiet", "./kernel_binary").assert_ok()
    runs = [path for path in (workplace / "rpl-runs").iterdir() if not path.is_symlink()]
    assert len(runs) == 2


def test_latest_points_to_the_newest_and_other_commands_follow_it(profiled, workplace, rpl_cli, latest):
    profiled("./kernel_binary").assert_ok()
    first = (workplace / "rpl-runs" / "latest").resolve()
    profiled("./kernel_binary", "--roofline").assert_ok()
    assert (workplace / "rpl-runs" / "latest").resolve() != first
    assert latest("roofline")["status"] == "available"
    assert "memory_bandwidth_bound" in rpl_cli("report").assert_ok().stdout


def test_runs_directory_setting_moves_latest_too(profiled, workplace, rpl_cli):
    (workplace / "rpl.toml").write_text('runs-directory = "elsewhere"\n')
    profiled("./kernel_binary").assert_ok()
    assert not (workplace / "rpl-runs").exists()
    assert "kernel time" in rpl_cli("report").assert_ok().stdout
    assert "label" in rpl_cli("explain").assert_ok().stdout


def test_report_without_a_run_says_what_to_do(workplace, rpl_cli):
    outcome = rpl_cli("report").assert_exit(69)
    assert "there is no run at rpl-runs/latest" in outcome.stderr


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit: no such program")
def test_file_size_limit_is_one_clear_line(workplace, rpl_standin_rocprofv3, rpl_cli, rpl_make_rocpd):
    """A limit on file sizes fails in the middle of a write, as a full disk does."""
    recording = rpl_make_rocpd([(f"kernel_{i}", i * 1000, i * 1000 + 500) for i in range(50)])
    done = _with_file_limit("analyze", str(recording), "-o", "out", limit_bytes=2000)
    assert done.returncode == 69, done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in (workplace / "out").iterdir() if path.suffix == ".tmp"]


def test_disk_that_fills_while_recording(profiled):
    outcome = profiled("./kernel_binary", env={"RPL_STANDIN_MISBEHAVE": "disk_full"}).assert_exit(69)
    assert "no space left" in outcome.stderr


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stream:  # noqa: PTH123
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _with_file_limit(*words, limit_bytes):
    import subprocess

    start = "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    code = start + "from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
    return subprocess.run(
        ["prlimit", f"--fsize={limit_bytes}", sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
    )
