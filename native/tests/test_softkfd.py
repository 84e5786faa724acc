"""The real ROCr and HIP of Debian run over the software KFD, and its fault knobs do what they say."""

from __future__ import annotations

import signal
import subprocess

import pytest

#: The first of them builds the native part.
pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]


@pytest.fixture
def scenario(over_softkfd, hsa_runtime, hsa_program, kernels):
    """``scenario("arithmetic", ...)``: one of the programs in hsa_scenarios.cpp."""

    def run(name: str, **settings):
        return over_softkfd(hsa_runtime, hsa_program("hsa_scenarios"), name, kernels, **settings)

    return run


def test_the_unit_tests_pass(native_build):
    if not (native_build / "native" / "softkfd" / "tests" / "softkfd-tests").exists():
        pytest.skip("needs doctest-dev: without it the unit tests are not built")
    done = subprocess.run(["ctest", "--output-on-failure"], cwd=native_build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "100% tests passed" in done.stdout


def test_a_program_of_plain_hsa_runs_to_its_end(scenario):
    ran = scenario("arithmetic")
    assert (ran.status, ran.stdout) == (0, "gpus 1 name gfx942 wrong 0 timed 1\n"), ran.stderr
    assert ran.kernels()[-4:] == ["add_arrays", "add_in_place", "add_in_place", "add_in_place"]


def test_a_program_of_hip_runs_to_its_end(over_softkfd, hip_runtime, hip_program):
    ran = over_softkfd(hip_runtime, hip_program("plain_hip", hip_runtime))
    assert (ran.status, ran.stdout) == (0, "devices 1 arch gfx942:sramecc+:xnack- wrong 0\n"), ran.stderr
    assert ran.kernels().count("add_in_place") == 3
    assert "__amd_rocclr_fillBufferAligned" in ran.kernels()


def test_kernels_reach_memory_of_every_kind(scenario, over_softkfd, hip_runtime, hip_program):
    """Pinned, registered, managed, rectangles and graphs by HIP; of a region, locked and shared by HSA."""
    assert scenario("other_memory").stdout == "wrong 0 0 0\n"
    ran = over_softkfd(hip_runtime, hip_program("hip_memory", hip_runtime))
    assert (ran.status, ran.stdout.split(" at ")[0]) == (0, "wrong 0"), ran.stderr


def test_the_runtime_s_own_switch_gives_the_same_low_addresses_in_each_run(
    over_softkfd, hip_runtime, hip_program
):
    program = hip_program("hip_memory", hip_runtime)
    runs = [over_softkfd(hip_runtime, program, HSA_RESERVE_SVM="1").stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert int(runs[0].split(" at ")[1], 16) < 1 << 40


def test_parent_and_child_of_a_fork_each_use_a_gpu(scenario):
    line = "gpus 1 name gfx942 wrong 0 timed 1\n"
    assert scenario("forked").stdout == 2 * line


def test_a_process_reads_the_memory_that_another_shares(scenario):
    ran = scenario("shared_memory")
    assert (ran.status, ran.stdout) == (0, "last 1000\n"), ran.stderr


def test_two_gpus_have_memory_of_their_own_and_copy_to_each_other(scenario):
    assert scenario("second_gpu", gpus=2).stdout == "gpus 2 name gfx942 wrong 0 timed 1\n"
    assert scenario("peers", gpus=2).stdout == "last 1000\n"


def test_an_address_that_no_gpu_maps_is_the_fault_that_it_is_on_hardware(scenario):
    ran = scenario("unmapped")
    assert ran.status == -signal.SIGABRT
    assert "Memory access fault by GPU" in ran.stderr
    assert "on address 0x123456000" in ran.stderr
    assert ran.log_of("fault") == [f"fault gpu=0 address={0x123456000}"]


def test_slow_kernels_are_still_on_their_way_when_a_copy_looks(scenario):
    ran = scenario("in_flight", faults="slow=100:add_in_place")
    assert (ran.status, ran.stdout) == (0, "before 100 after 112\n"), ran.stderr


def test_memory_that_is_reserved_created_and_mapped_one_by_one(scenario):
    assert scenario("virtual_memory").stdout == "reserved as asked same 1\n"


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [("reserve=relocate", "reserved elsewhere same 1"), ("reserve=refuse", "reserved no")],
)
def test_a_reservation_is_moved_or_refused(scenario, faults, outcome):
    assert scenario("virtual_memory", faults=faults).stdout == outcome + "\n"


def test_a_completion_that_is_lost_never_comes(scenario):
    ran = scenario("ends", faults="lost=1")
    assert (ran.status, ran.stdout) == (1, "ended 0\n"), ran.stderr


def test_a_mapping_and_a_copy_fail_when_asked_to(scenario):
    assert scenario("ends", faults="map=8").status == 70
    failed = scenario("in_flight", faults="copy=1")
    assert "Memory access fault by GPU" in failed.stderr


def test_sparse_memory_stays_sparse_when_it_is_copied(scenario):
    ran = scenario("sparse")
    words = ran.stdout.split()
    assert words[:2] == ["last", "1000"], ran.stderr
    assert int(words[3]) < 256


def test_a_knob_that_does_not_exist_is_named(scenario):
    ran = scenario("ends", faults="nap=1")
    assert (ran.status, ran.stderr) == (64, "softkfd: no fault knob 'nap=1'\n")


def test_a_kernel_that_nobody_can_run_is_refused_by_its_name(native_build, hsa_runtime, hsa_program, kernels):
    launcher = native_build / "native" / "softkfd" / "softkfd-run"
    command = [launcher, "--runtime", hsa_runtime, hsa_program("hsa_scenarios"), "ends", kernels]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 69
    assert "nothing here can run the kernel 'add_in_place'" in done.stderr
