"""The capture tool in programs of HSA and HIP: what it takes is what the programs know of their memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: The first of them builds the native part.
pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]


def _kinds(capture):
    return {region["kind"] for region in capture.extras["memory"]["regions"]}


def test_the_launch_that_was_asked_for_is_taken_with_its_memory_before_and_after(capture_scenario, rpl_cli):
    ran = capture_scenario("in_place", kernel="^add_in", dispatch=1, options=("--compress",))
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert ran.capture.wrong("before") == []
    assert ran.capture.wrong("after") == []
    assert ran.capture.dispatch["mangled_name"].removesuffix(".kd") == "add_in_place"
    assert ran.capture.dispatch["grid"] == [1000, 1, 1]
    assert (ran.capture.extras["dispatch"]["match_index"], ran.capture.dispatch["dispatch_index"]) == (1, 1)
    kinds = [argument["value_kind"] for argument in ran.capture.extras["kernel"]["arguments"][:3]]
    assert kinds == ["global_buffer", "by_value", "by_value"]
    assert rpl_cli("capture", "verify", str(ran.capture.folder)).exit_code == 0


def test_memory_of_every_kind_is_taken(capture_scenario, rpl_cli):
    """Through a list, in the second launch of one doorbell, code object from a file, dynamic LDS."""
    ran = capture_scenario("every_kind", kernel="follow_list", dispatch=1)
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert ran.capture.wrong("before") == []
    assert ran.capture.wrong("after") == []
    assert ran.capture.dispatch["group_segment_size"] == 1024
    assert ran.capture.extras["dispatch"]["group_segment"] == {"fixed": 0, "launched": 1024}
    assert ran.capture.extras["code_object"]["source"] == "file"
    assert _kinds(ran.capture) >= {"device_pool", "host_pool", "vmem", "svm", "locked_host", "hsa_memory"}
    assert "node_of_module" in [one["name"] for one in ran.capture.extras["module_variables"]]
    assert rpl_cli("capture", "verify", str(ran.capture.folder)).exit_code == 0


def test_work_in_flight_on_all_queues_is_over_before_the_memory_is_taken(capture_scenario):
    ran = capture_scenario("drain", kernel="accumulate", faults="slow=50:add_in_place")
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert ran.capture.wrong("before") == []
    assert ran.capture.wrong("after") == []
    assert ran.capture.extras["drain"]["undrained"] is False


def test_work_that_does_not_end_in_time_is_told_and_the_program_goes_on(capture_scenario):
    ran = capture_scenario(
        "drain", kernel="accumulate", faults="slow=700:add_in_place", options=("--drain-timeout", "0.3")
    )
    assert (ran.exit_code, ran.said) == (75, "right 1"), ran.stderr


def test_memory_of_another_gpu_is_taken(capture_scenario):
    ran = capture_scenario("two_gpus", kernel="add_arrays", gpus=2)
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert ran.capture.wrong("before") == []
    assert ran.capture.wrong("after") == []
    assert ran.capture.extras["agent"]["number"] == 1


def test_a_child_writes_to_a_folder_of_its_own_and_shared_memory_is_taken(capture_scenario):
    ran = capture_scenario("between_processes", kernel="add_in_place")
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert ran.capture.folder.name == f"out_{ran.capture.extras['process']['pid']}"
    assert ran.capture.wrong("before") == []
    assert ran.capture.wrong("after") == []
    assert "ipc" in _kinds(ran.capture)


def test_what_the_program_writes_meanwhile_is_noticed(capture_scenario):
    ran = capture_scenario("host_writer", kernel="add_in_place")
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert ran.capture.wrong("before") == []
    assert ran.capture.extras["host_writers"] is True
    assert "warning: the program wrote to memory while it was captured" in ran.stderr
    assert [r["kind"] for r in ran.capture.extras["memory"]["regions"] if r["written_by_host"]] == [
        "host_pool"
    ]


def test_a_name_that_nothing_has_is_told_with_the_nearest(capture_scenario):
    ran = capture_scenario("in_place", kernel="acumulat")
    assert ran.exit_code == 1
    assert "none of 2 kernels has a name like 'acumulat'; the nearest are accumulate" in ran.stdout


def test_a_program_of_hip_is_taken_apart(isolated, hip_runtime, hip_program, rpl_cli):
    """Pinned, registered, managed, device memory, a variable, memory in pieces; a graph; other streams."""
    ran = isolated(
        hip_runtime,
        hip_program("hip_capture", hip_runtime),
        "vmm",
        kernel="demo::walk<int>",
        dispatch=1,
        faults="slow=20:add_in_place",
    )
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert ran.capture.wrong("before") == []
    assert ran.capture.wrong("after") == []
    assert ran.capture.dispatch["demangled_name"] == "void demo::walk<int>(Node*, int)"
    assert ran.capture.dispatch["group_segment_size"] == 512
    assert rpl_cli("capture", "verify", str(ran.capture.folder)).exit_code == 0


def test_a_capture_that_was_killed_is_known_to_be_cut_short(
    isolated_command, hsa_runtime, hsa_program, kernels, rpl_cli
):
    """By kill -9 while the captured launch, which is slow, goes on."""
    command, environment, folder = isolated_command(
        hsa_runtime, hsa_program("capture_scenarios"), "in_place", kernels,
        kernel="add_in_place", faults="slow=60000:add_in_place",
    )  # fmt: skip
    with subprocess.Popen(
        [Path(sys.executable).with_name("rpl"), *command], env=environment, stderr=subprocess.PIPE, text=True
    ) as rpl:
        while not (folder / "memory").exists():
            assert rpl.poll() is None, rpl.stderr.read()
            time.sleep(0.01)
        (program,) = Path(f"/proc/{rpl.pid}/task/{rpl.pid}/children").read_text().split()
        os.kill(int(program), signal.SIGKILL)
        said = rpl.stderr.read()
    assert rpl.returncode == 76, said
    ran = rpl_cli("capture", "verify", str(folder))
    assert ran.exit_code in (65, 69)
    assert "cut short" in ran.stdout + ran.stderr


@pytest.mark.long
def test_host_memory_that_the_program_freed_is_left_out_and_named(
    isolated, rocm_runtime, hip_program, rpl_cli, replay
):
    """HIP 5.7 keeps what it copied from locked, as a cache, after the program has freed it; 6.4 does not."""
    runtime = rocm_runtime("--suite", "trixie")
    ran = isolated(runtime, hip_program("freed_copies", runtime), kernel="add_in_place")
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    left = ran.capture.extras["memory"]["left_out"]
    assert [one["kind"] for one in left] == ["locked_host"] * len(left)
    assert sorted(one["size"] for one in left) == [4096, 8 << 20]  # one array in part, one as a whole
    for one in left:
        assert f"warning: {one['size']} bytes of host memory at 0x{one['base']:x} are left out" in ran.stderr
    captured = [(one["base"], one["size"]) for one in ran.capture.extras["memory"]["regions"]]
    (hole,) = (one for one in left if one["size"] == 4096)
    assert any(base + size == hole["base"] for base, size in captured)
    assert any(base == hole["base"] + 4096 for base, size in captured)
    assert rpl_cli("capture", "verify", str(ran.capture.folder)).exit_code == 0
    again = replay(ran.capture, runtime=runtime)
    assert (again.exit_code, again.document["reproduced"]) == (0, True), again.stderr


def test_unreadable_memory_to_which_nothing_leads_is_no_matter(isolated, hip_runtime, hip_program):
    program = hip_program("freed_copies", hip_runtime)
    ran = isolated(hip_runtime, program, kernel="add_in_place", options=("--regions", "referenced"))
    assert (ran.exit_code, ran.capture.extras["memory"]["left_out"]) == (0, []), ran.stderr


def test_a_full_disk_is_said_to_be_one_with_the_size_that_is_needed(capture_scenario, monkeypatch):
    """Writing fails in the program as the kernel says it: a disk that is full cannot be had in a test."""
    monkeypatch.setenv("FULL_AFTER", "2000")
    ran = capture_scenario("in_place", kernel="add_in_place", dispatch=1)
    assert (ran.exit_code, ran.said) == (69, "right 1"), ran.stderr
    assert "there is no space left for it. Likely cause: the capture takes up to" in ran.stderr
    needed = int(ran.stderr.partition("takes up to ")[2].split()[0])
    assert needed >= 2 * 4000
    assert "are free in" in ran.stderr
    monkeypatch.delenv("FULL_AFTER")


def test_a_failed_read_is_not_called_a_failed_write(capture_scenario):
    ran = capture_scenario("in_place", kernel="add_in_place", dispatch=1, faults="copy=2")
    assert ran.exit_code in (70, 75, 76), ran.stderr
    assert "written" not in ran.stderr
    assert "write" not in ran.stderr
