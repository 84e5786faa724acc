"""Programs on the real runtimes over the software KFD, with the emulator for their kernels."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from rpl_testkit.requirements import require

from .conftest import CODE_OBJECT

pytestmark = [pytest.mark.clang, pytest.mark.timeout(900)]

_NOT_OFFERED = """
extern "C" __attribute__((global)) void add_in_place(int* values, unsigned count, int amount) {
  values[0] = __builtin_amdgcn_s_getreg(GETREG) + amount;
}
"""


@pytest.fixture
def emulated(over_softkfd, emulator):
    """``emulated(runtime, program, ...)``: over the software KFD, with no native function for any kernel."""
    del emulator

    def run(*words, **settings):
        return over_softkfd(*words, executor="emu", **settings)

    return run


def test_a_program_of_hip_runs_with_the_code_that_the_compiler_made(emulated, hip_runtime, hip_program):
    """Its kernels and those that HIP brings; ROCr's own, which are bare code, are native functions."""
    ran = emulated(hip_runtime, hip_program("plain_hip", hip_runtime))
    assert (ran.status, ran.stdout) == (0, "devices 1 arch gfx942:sramecc+:xnack- wrong 0\n"), ran.stderr
    assert {"add_arrays", "add_in_place", "__amd_rocclr_fillBufferAligned"} <= set(ran.kernels())


def test_memory_of_every_kind_is_reached_where_it_lies(emulated, hsa_runtime, hsa_program, kernels):
    """Of a region, locked and shared: the GPU's addresses are not always the program's."""
    ran = emulated(hsa_runtime, hsa_program("hsa_scenarios"), "other_memory", kernels)
    assert (ran.status, ran.stdout) == (0, "wrong 0 0 0\n"), ran.stderr


def test_a_log_that_can_not_be_written_ends_the_program(native_build, hsa_runtime, hsa_program, kernels):
    """Launches that are not in it would be taken for launches that never were."""
    launcher = native_build / "native" / "softkfd" / "softkfd-run"
    words = [
        "--executor",
        "emu",
        "--runtime",
        hsa_runtime,
        hsa_program("hsa_scenarios"),
        "arithmetic",
        kernels,
    ]
    done = subprocess.run(
        [launcher, *words], env={**os.environ, "SOFTKFD_LOG": "/dev/full"}, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 74
    assert "softkfd: its log can't be written: No space left on device" in done.stderr


def test_an_address_that_no_gpu_maps_is_the_fault_that_it_is_on_hardware(
    emulated, hsa_runtime, hsa_program, kernels
):
    ran = emulated(hsa_runtime, hsa_program("hsa_scenarios"), "unmapped", kernels)
    assert ran.status == -signal.SIGABRT
    assert ran.log_of("fault") == [f"fault gpu=0 address={0x123456000}"]


def test_an_instruction_that_is_not_offered_is_refused_by_name(
    emulated, hsa_runtime, hsa_program, tmp_path: Path
):
    source, code = tmp_path / "kernel.hip", tmp_path / "kernel.hsaco"
    source.write_text(_NOT_OFFERED.replace("GETREG", "4 | 31 << 11"))
    device = ["-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "--no-gpu-bundle-output"]
    options = ["-nogpulib", "-nogpuinc", CODE_OBJECT, "-O3", source, "-o", code]
    subprocess.run([require("clang++-22"), *device, *options], check=True)
    ran = emulated(hsa_runtime, hsa_program("hsa_scenarios"), "ends", code)
    assert ran.status == 69
    assert "the kernel 'add_in_place' can't run here" in ran.stderr
    assert "s_getreg_b32" in ran.stderr
