"""What the test command leaves out: other runtimes, many runs, sanitizers, clang-tidy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rpl_testkit.requirements import require

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.clang, pytest.mark.long, pytest.mark.timeout(1800)]


#: Nobody promises that these packages fit together on a given day.
_MOVING = pytest.mark.xfail(strict=False, reason="experimental moves")


@pytest.mark.parametrize(
    "suite",
    [
        pytest.param(("--suite", "forky"), id="forky"),
        pytest.param(("--suite", "sid", "--also", "experimental"), id="experimental", marks=_MOVING),
    ],
)
def test_newer_runtimes_run_over_the_software_kfd(
    rocm_runtime, over_softkfd, hsa_program, hip_program, kernels, suite
):
    runtime = rocm_runtime("--hip", *suite)
    program = hsa_program("hsa_scenarios")
    for scenario in ("arithmetic", "in_flight", "virtual_memory", "sparse"):
        assert over_softkfd(runtime, program, scenario, kernels).status == 0, scenario
    for scenario in ("second_gpu", "peers"):
        assert over_softkfd(runtime, program, scenario, kernels, gpus=2).status == 0, scenario
    assert over_softkfd(runtime, hip_program("plain_hip", runtime)).status == 0


def test_twenty_runs_under_address_randomisation_are_alike(over_softkfd, hsa_runtime, hsa_program, kernels):
    program = hsa_program("hsa_scenarios")
    ran = [over_softkfd(hsa_runtime, program, "arithmetic", kernels) for _ in range(20)]
    assert {(one.status, one.stdout) for one in ran} == {(0, "gpus 1 name gfx942 wrong 0 timed 1\n")}


def _preset(name: str, folder: Path) -> None:
    for command in (["cmake", "--preset", name, "-B", folder], ["cmake", "--build", folder, "-j", "2"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_the_unit_tests_pass_with_sanitizers(native_build, tmp_path):
    _preset("sanitizers", tmp_path)
    done = subprocess.run(["ctest", "--output-on-failure"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_clang_tidy_finds_nothing(native_build, tmp_path):
    require("clang-tidy-22")
    _preset("clang-tidy", tmp_path)
