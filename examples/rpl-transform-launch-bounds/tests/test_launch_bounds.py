"""What the transformation proposes, refuses, and that the compiler takes the promise."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rpl_launch_bounds.transformation import LaunchBounds
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_testkit.contracts import assert_transformation

SAXPY = Path(__file__).parent / "sources" / "saxpy.hip"

# Enough of HIP for the device side, so that no HIP installation is needed. HIP's own header expands the
# one-argument form to the same attribute (hip/amd_detail/amd_hip_runtime.h, launch_bounds_impl0).
DEVICE_HEADER = b"""
#define __global__ __attribute__((global))
#define __launch_bounds__(N) __attribute__((amdgpu_flat_work_group_size(1, N)))
extern const __attribute__((device)) struct Index { int x, y, z; } blockIdx, blockDim, threadIdx;
"""


def propose(text: bytes, kernel: str | None = None):
    return {c.kernel: c for c in LaunchBounds().propose(KernelSource("a.hip", text, kernel))}


def program(kernel: bytes, launch: bytes, more: bytes = b"") -> bytes:
    return more + kernel + b" { x[0] = 1; }\nint main() { float *p = 0; " + launch + b" }\n"


KERNEL = b"__global__ void k(float *x)"


def refusals(candidate):
    return {guard.guard for guard in candidate.guards if not guard.passed}


def applied(text, candidate):
    (edit,) = candidate.edits
    return text[: edit.begin] + edit.replacement + text[edit.end :]


def test_it_keeps_the_contract():
    assert_transformation(LaunchBounds(), KernelSource(str(SAXPY), SAXPY.read_bytes()))


def test_the_sample_program():
    found = propose(SAXPY.read_bytes())
    assert {name: c.allowed for name, c in found.items()} == {
        "saxpy": True,
        "transpose": True,
        "any_size": False,
        "by_address": False,
    }
    assert found["saxpy"].summary == "add __launch_bounds__(256)"
    assert found["transpose"].summary == "add __launch_bounds__(256)"
    assert refusals(found["any_size"]) == {"block-size-known"}
    assert refusals(found["by_address"]) == {"only-launched"}


@pytest.mark.parametrize(
    ("launch", "threads"),
    [
        (b"k<<<1, 128>>>(p);", 128),
        (b"k<<<dim3(4, 4), dim3(8, 8, 2)>>>(p);", 128),
        (b"k <<< 1, 0x40 >>> (p);", 64),
        (b"k<<<1, 64>>>(p); k<<<1, 512>>>(p);", 512),
        (b"hipLaunchKernelGGL(k, dim3(1), dim3(96), 0, 0, p);", 96),
        (b"hipLaunchKernelGGL((k), 1, 32u, 0, 0, p);", 32),
        (b"dim3 b(16, 4); k<<<1, b>>>(p);", 64),
        (b"dim3 b = dim3(16, 8); k<<<1, b, 0>>>(p);", 128),
        (b"const int n = 192; k<<<1, n>>>(p);", 192),
        (b"constexpr unsigned n{320}; k<<<1, dim3(n)>>>(p);", 320),
    ],
)
def test_the_largest_launch_decides(launch, threads):
    candidate = propose(program(KERNEL, launch))["k"]
    assert candidate.allowed, candidate.guards
    assert candidate.summary == f"add __launch_bounds__({threads})"


@pytest.mark.parametrize(
    ("launch", "guard"),
    [
        (b"k<<<1, size()>>>(p);", "block-size-known"),
        (b"int n = 64; k<<<1, n>>>(p);", "block-size-known"),
        (b"k<<<1, 64>>>(p); k<<<1, other>>>(p);", "block-size-known"),
        (b"dim3 b(64); b.x = 512; k<<<1, b>>>(p);", "block-size-known"),
        (b"dim3 b(64); tune(&b); k<<<1, b>>>(p);", "block-size-known"),
        (b"dim3 b(64); { dim3 b(512); k<<<1, b>>>(p); }", "block-size-known"),
        (b"const int n = 64; { const int n = 512; k<<<1, n>>>(p); }", "block-size-known"),
        (b"const int n = 64; } void run(int n, float *p) { k<<<1, n>>>(p);", "block-size-known"),
        (b"const int n = 64; } void run(const int &n, float *p) { k<<<1, n>>>(p);", "block-size-known"),
        (b"dim3 b(64); } void run(dim3 b, float *p) { k<<<1, b>>>(p);", "block-size-known"),
        (b"k<<<1, 1024>>>(p);", "bound-in-range"),
        (b"k<<<1, 2048>>>(p);", "bound-in-range"),
        (b"auto f = k; f<<<1, 512>>>(p); k<<<1, 64>>>(p);", "only-launched"),
        (b"hipLaunchKernelGGL(other, 1, 64, 0, 0, k);", "only-launched"),
        (b"k<<<1, 64>>>(p);\n#define RUN k<<<1, 512>>>(p)\nRUN;", "only-launched"),
        (b"", "only-launched"),
    ],
)
def test_every_doubt_refuses(launch, guard):
    assert guard in refusals(propose(program(KERNEL, launch))["k"])


def test_a_kernel_that_other_files_may_launch_is_refused():
    text = KERNEL + b" {}\nvoid run(float *p) { k<<<1, 64>>>(p); }\n"
    assert refusals(propose(text)["k"]) == {"launched-here-only"}
    assert propose(b"static " + text)["k"].allowed


@pytest.mark.parametrize(
    "kernel",
    [
        b"__global__ void __launch_bounds__(64, 2) k(float *x)",
        b"__launch_bounds__(64) __global__ void k(float *x)",
        b"__global__ __attribute__((amdgpu_flat_work_group_size(1, 64))) void k(float *x)",
    ],
)
def test_a_bounded_kernel_is_left_alone(kernel):
    assert propose(program(kernel, b"k<<<1, 64>>>(p);")) == {}


@pytest.mark.parametrize(
    "text",
    [
        b"// __global__ void k(float *x) {}\n",
        b"/* __global__ void k(float *x) {} */",
        b'const char *s = "__global__ void k(float *x) {}";',
        b'const char *s = R"(__global__ void k(float *x) {})";',
        b"#define K __global__ void k(float *x) \\\n {}\n",
        b"__global__ void k(float *x);\n",
    ],
)
def test_what_is_not_a_definition_is_left_alone(text):
    assert propose(text + b"int main() { k<<<1, 64>>>(0); }") == {}


def test_overloads_are_left_alone():
    text = KERNEL + b" {}\n__global__ void k(int *x) {}\nint main() { k<<<1, 64>>>(0); }"
    assert propose(text) == {}


@pytest.mark.parametrize("kernel", ["saxpy", "transpose"])
def test_the_compiler_takes_the_promise(rpl_require, tmp_path, kernel):
    compiler = rpl_require("clang-22")
    text = SAXPY.read_bytes()
    before, after = (
        compile_device(compiler, tmp_path, t) for t in (text, applied(text, propose(text)[kernel]))
    )
    assert before[kernel] == 1024
    assert after == {**before, kernel: 256}


def compile_device(compiler, folder, text):
    """The kernels of ``text`` with the largest workgroup that the compiler prepared them for."""
    device = text.split(b"int main")[0].replace(b"#include <hip/hip_runtime.h>", DEVICE_HEADER)
    source = folder / "device.hip"
    source.write_bytes(device + b"template __global__ void transpose<float>(const float *, float *, int);\n")
    command = [compiler, "-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "-nogpulib"]
    done = subprocess.run(
        [*map(str, command), "-nogpuinc", "-S", "-o", "-", str(source)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    pattern = r"\.max_flat_workgroup_size:\s+(\d+)\n\s+\.name:\s+_Z\d+([a-z_]+?)(?:f|P|I)"
    return {name: int(size) for size, name in re.findall(pattern, done.stdout)}


def test_its_invariance_knows_its_own_edit_and_refuses_any_other():
    text = SAXPY.read_bytes()
    source = KernelSource("a.hip", text, "saxpy")
    (own,) = LaunchBounds().invariance(source, applied(text, propose(text)["saxpy"]))
    (other,) = LaunchBounds().invariance(source, text.replace(b"a * x[i]", b"x[i]"))
    assert (own.passed, other.passed, other.line) == (True, False, 10)


def test_what_a_run_says_for_it():
    text = program(KERNEL, b"k<<<1, 64>>>(p);")
    documents = {
        "analysis": {"kernels": [{"kernel": "k(float*)", "critical_path_score": 0.25}]},
        "profile": {"kernels": [{"name": "k(float*)", "resources": {"scratch_bytes": 16}}]},
    }
    transformation, source = LaunchBounds(), KernelSource("a.hip", text)
    candidates = transformation.propose(source)
    (found,) = transformation.evidence(source, candidates, documents).values()
    assert found.expected_gain == (0.0, 0.25)
    assert found.facts == {"critical_path_score": 0.25, "scratch_bytes": 16}
    (unknown,) = transformation.evidence(source, candidates, {}).values()
    assert unknown.expected_gain is None
