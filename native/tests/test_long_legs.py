"""What the test command leaves out: other runtimes, many runs, sanitizers, clang-tidy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rpl_testkit.requirements import require

from .conftest import one_at_a_time

ROOT = Path(__file__).parents[2]

#: Other statuses than the programs' own: a finding is never taken for an answer.
SANITIZED = {
    "ASAN_OPTIONS": "exitcode=99:allocator_may_return_null=1:max_allocation_size_mb=4096",
    "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1",
}

pytestmark = [pytest.mark.clang, pytest.mark.long, pytest.mark.timeout(1800)]


#: Nobody promises that these packages fit together on a given day.
_MOVING = pytest.mark.xfail(strict=False, reason="experimental moves")


_OTHER = pytest.mark.parametrize(
    "suite",
    [
        pytest.param(("--suite", "trixie"), id="trixie"),
        pytest.param(("--suite", "experimental"), id="experimental", marks=_MOVING),
    ],
)


@_OTHER
def test_other_runtimes_run_over_the_software_kfd(
    rocm_runtime, over_softkfd, hsa_program, hip_program, kernels, suite
):
    runtime = rocm_runtime(*suite)
    program = hsa_program("hsa_scenarios")
    for scenario in ("arithmetic", "in_flight", "virtual_memory", "sparse"):
        assert over_softkfd(runtime, program, scenario, kernels).status == 0, scenario
    for scenario in ("second_gpu", "peers"):
        assert over_softkfd(runtime, program, scenario, kernels, gpus=2).status == 0, scenario
    assert over_softkfd(runtime, hip_program("plain_hip", runtime)).status == 0


@_OTHER
def test_launches_are_captured_and_run_again_on_other_runtimes(
    rocm_runtime, capture_scenario, isolated, hip_program, replay, suite
):
    runtime = rocm_runtime(*suite)
    program, slow = hip_program("hip_capture", runtime), "slow=50:add_in_place"
    pieces = ("vmm",) if "experimental" in suite else ()  # HIP 5.7 maps nothing piece by piece
    runs = [
        capture_scenario("in_place", runtime=runtime, kernel="add_in_place", dispatch=1),
        capture_scenario("every_kind", runtime=runtime, kernel="follow_list", dispatch=1),
        capture_scenario("drain", runtime=runtime, kernel="accumulate", faults=slow),
        capture_scenario("two_gpus", runtime=runtime, kernel="add_arrays", gpus=2),
        isolated(runtime, program, *pieces, kernel="walk<", dispatch=1, faults=slow),
    ]
    if "experimental" not in suite:  # the software KFD has no sharing between processes for ROCr 7
        runs.append(capture_scenario("between_processes", runtime=runtime, kernel="add_in_place"))
    for ran in runs:
        assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
        assert (ran.capture.wrong("before"), ran.capture.wrong("after")) == ([], [])
        again = replay(ran.capture, "--iterations", "2", runtime=runtime, gpus=2)
        assert (again.exit_code, again.document["reproduced"]) == (0, True), again.stderr


@_OTHER
def test_freed_memory_and_pointers_to_code_on_other_runtimes(
    rocm_runtime, isolated, hip_program, hsa_program, module_pointers, replay, emulator, suite
):
    del emulator
    runtime = rocm_runtime(*suite)
    ran = isolated(runtime, hip_program("freed_copies", runtime), kernel="add_in_place")
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    again = replay(ran.capture, runtime=runtime)
    assert (again.exit_code, again.document["reproduced"]) == (0, True), again.stderr
    for kernel in ("call_functions", "call_virtual"):
        name = f"_Z{len(kernel)}{kernel}PK5TablePj"
        words = (runtime, hsa_program("module_scenarios"), name, module_pointers(0))
        ran = isolated(*words, kernel=kernel, executor="emu")
        assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
        again = replay(ran.capture, runtime=runtime, executor="emu")
        assert (again.exit_code, again.document["reproduced"]) == (0, True), again.stderr


@pytest.mark.parametrize("low", [True, False])
def test_twenty_captures_under_address_randomisation_are_right(capture_scenario, low):
    """With the runtime's switch for low addresses they are the same ones each time, too."""
    places = set()
    for _ in range(20):
        options = () if low else ("--no-low-addresses",)
        ran = capture_scenario("in_place", kernel="add_in_place", dispatch=1, options=options)
        assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
        assert (ran.capture.wrong("before"), ran.capture.wrong("after")) == ([], [])
        regions = ran.capture.extras["memory"]["regions"]
        places.add(tuple(region["base"] for region in regions if region["kind"] == "device_pool"))
    assert (len(places) == 1) is low


@pytest.mark.parametrize("low", [True, False])
def test_twenty_replays_under_address_randomisation_are_where_they_belong(capture_scenario, replay, low):
    options = () if low else ("--no-low-addresses",)
    captured = capture_scenario("in_place", kernel="add_in_place", dispatch=1, options=options)
    for _ in range(20):
        ran = replay(captured.capture)
        assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
        assert all(one["exact"] for one in ran.document["reservations"])


@pytest.mark.parametrize("gigabytes", [2, 11])
def test_sparse_gigabytes_stay_sparse(capture_scenario, gigabytes, rpl_cli):
    ran = capture_scenario(f"sparse_{gigabytes}", kernel="add_in_place")
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert (ran.capture.wrong("before"), ran.capture.wrong("after")) == ([], [])
    files = [path.stat() for path in ran.capture.folder.rglob("region_*.bin")]
    assert max(file.st_size for file in files) == gigabytes << 30
    assert sum(file.st_blocks * 512 for file in files) < 64 << 20
    assert rpl_cli("capture", "verify", str(ran.capture.folder)).exit_code == 0


def test_only_memory_to_which_the_arguments_lead_is_taken_when_asked_for(capture_scenario):
    options = ("--regions", "referenced")
    ran = capture_scenario("every_kind", kernel="follow_list", dispatch=1, options=options)
    assert (ran.exit_code, ran.said) == (0, "right 1"), ran.stderr
    assert (ran.capture.wrong("before"), ran.capture.wrong("after")) == ([], [])
    whole = capture_scenario("every_kind", kernel="follow_list", dispatch=1)
    taken = [len(one.capture.extras["memory"]["regions"]) for one in (ran, whole)]
    assert taken[0] < taken[1]


def test_twenty_runs_under_address_randomisation_are_alike(over_softkfd, hsa_runtime, hsa_program, kernels):
    program = hsa_program("hsa_scenarios")
    ran = [over_softkfd(hsa_runtime, program, "arithmetic", kernels) for _ in range(20)]
    assert {(one.status, one.stdout) for one in ran} == {(0, "gpus 1 name gfx942 wrong 0 timed 1\n")}


def _preset(name: str, folder: Path, target: str = "all") -> None:
    build = ["cmake", "--build", folder, "-j", "2", "--target", target]
    for command in (["cmake", "--preset", name, "-B", folder], build):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def _capture_replays_with_sanitizers(folder: Path) -> None:
    """The shipped capture, two launches with a log of their accesses."""
    capture = ROOT / "examples" / "captures" / "attention_values"
    words = ["replay", "full-vm", capture, "--device", "gfx942-emu", "--iterations", "2", "--json"]
    # Captured memory lies in a part of the address space that the sanitizer keeps others out of.
    asan = SANITIZED["ASAN_OPTIONS"] + ":protect_shadow_gap=0"
    settings = {**SANITIZED, "ASAN_OPTIONS": asan, "RPL_EMU_FOLDER": str(folder)}
    done = subprocess.run(
        [Path(sys.executable).with_name("rpl"), *words],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reproduced"] is True


@pytest.fixture
def sanitized(programs_folder: Path) -> Callable[[str], Path]:
    """``sanitized("rpl-replay")``: the folder of the build with sanitizers, with that target up to date."""

    def build(target: str = "all") -> Path:
        folder = programs_folder.with_name("sanitized")
        with one_at_a_time(folder):
            _preset("sanitizers", folder, target)
        return folder

    return build


def test_unit_tests_and_the_emulator_pass_with_sanitizers(native_build, sanitized):
    folder = sanitized()
    done = subprocess.run(["ctest", "--output-on-failure"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    _capture_replays_with_sanitizers(folder)
    # The emulator's own tests once more, each in a process of the sanitized build.
    names = ("test_emu", "test_emu_opcodes", "test_emu_scalar_model", "test_emu_corpus")
    files = [Path(__file__).parent / f"{name}.py" for name in names]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:xdist",
            "-m",
            "not long",
            "--timeout",
            "900",
            *files,
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "RPL_TEST_EMULATOR": str(folder / "native" / "emu" / "rpl-emu"),
            **SANITIZED,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]


def test_the_replayer_passes_with_sanitizers(capture_scenario, replay, sanitized, monkeypatch):
    """Of a capture without low addresses: the sanitizer's own memory lies among those."""
    folder = sanitized("rpl-replay")
    options = ("--no-low-addresses",)
    captured = capture_scenario("in_place", kernel="add_in_place", dispatch=1, options=options)
    for name, value in SANITIZED.items():
        monkeypatch.setenv(name, value)
    words = ("--iterations", "4", "--native-folder", str(folder))
    ran = replay(captured.capture, *words)
    assert (ran.exit_code, ran.document["reproduced"]) == (0, True), ran.stderr
    ran = replay(captured.capture, *words, faults="map=6")
    assert (ran.exit_code, ran.kind) == (1, "map_failed"), ran.stderr


def test_captures_pass_with_sanitizers(capture_scenario, replay, sanitized, monkeypatch):
    """The capture tool is instrumented; its program gets the libraries of the sanitizers first."""
    folder = sanitized("rpl_isolate")
    words = ["-print-file-name=libasan.so", "-print-file-name=libubsan.so"]
    asked = [subprocess.run(["g++", word], capture_output=True, text=True, check=True) for word in words]
    options = ("--native-folder", str(folder), "--no-low-addresses")
    # Leaks of the runtime are not ours, and it reserves what the sanitizer would keep others out of.
    asan = SANITIZED["ASAN_OPTIONS"] + ":protect_shadow_gap=0:detect_leaks=0:verbosity=1"
    settings = {**SANITIZED, "ASAN_OPTIONS": asan}
    settings["LD_PRELOAD"] = ":".join(str(Path(one.stdout.strip()).resolve()) for one in asked)
    for name, kernel, more in (
        ("every_kind", "follow_list", {"dispatch": 1}),
        ("drain", "accumulate", {"faults": "slow=50:add_in_place"}),
        ("two_gpus", "add_arrays", {"gpus": 2}),
    ):
        with monkeypatch.context() as patch:
            for variable, value in settings.items():
                patch.setenv(variable, value)
            ran = capture_scenario(name, kernel=kernel, options=options, **more)
        assert (ran.exit_code, ran.said) == (0, "right 1"), (name, ran.stderr[-4000:])
        assert "AddressSanitizer Init done" in ran.stderr
        assert (ran.capture.wrong("before"), ran.capture.wrong("after")) == ([], []), name
        again = replay(ran.capture, "--iterations", "2", gpus=more.get("gpus", 1))
        assert (again.exit_code, again.document["reproduced"]) == (0, True), again.stderr


def test_clang_tidy_finds_nothing(native_build, tmp_path):
    require("clang-tidy-22")
    _preset("clang-tidy", tmp_path)
