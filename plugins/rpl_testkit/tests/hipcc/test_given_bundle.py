"""Host code with a bundle of somebody else: what runs is what the bundle holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rpl_testkit.rocprofv3_standin.scenario import embedded_source

pytestmark = pytest.mark.clang

HOST = """#include <hip/hip_runtime.h>
#include <cstdio>
struct Odd {{ float a, b, c; }};
__global__ void {kernel}(float* out, char c, Odd odd, double d, short s, const float* in, float f) {{
  extern __shared__ float lds[];
  lds[0] = c + odd.a + odd.b + odd.c + d + s + *in + f;
  odd.b = 0;
  out[threadIdx.x] = {result};
}}
{more}
int main() {{
  float *out, *in;
  (void)hipMalloc(&out, 2 * sizeof(float));
  (void)hipMalloc(&in, sizeof(float));
  *in = 32;
  {kernel}<<<1, 2, 64>>>(out, 1, Odd{{2, 4, 8}}, 16, 64, in, 128);
  std::printf("%s %g %g\\n", hipGetErrorName(hipGetLastError()), out[0], out[1]);
}}
"""
#: Prints before main does, where it gets into the program.
HOSTILE = 'struct E { E() { std::puts("the host ran it"); } } e;'


def device(bench, name: str, **parts: str) -> Path:
    filled = {"kernel": "weigh", "result": "lds[0]", "more": "", **parts}
    (bench.folder / f"{name}.hip").write_text(HOST.format(**filled))
    done = bench.hipcc("-cuid=1", "--offload-device-only", "-c", f"{name}.hip", "-o", f"{name}.hipfb")
    assert done.returncode == 0, done.stderr
    return bench.folder / f"{name}.hipfb"


def mixed(bench, bundle: Path, program: str) -> str:
    """The output of the host code of original.hip with ``bundle``."""
    given = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", bundle)
    host = bench.hipcc("-cuid=1", "--offload-host-only", *given, "-c", "original.hip", "-o", "mix.o")
    assert host.returncode == 0, host.stderr
    assert bench.hipcc("mix.o", "-o", program).returncode == 0
    return subprocess.run([bench.folder / program], capture_output=True, text=True, check=True).stdout


def test_what_runs_is_what_the_bundle_holds(rpl_closed_loop_bench) -> None:
    bench = rpl_closed_loop_bench
    own = device(bench, "original")
    other = device(bench, "candidate", result="lds[0] + threadIdx.x", more=HOSTILE)
    assert bench.hipcc("-cuid=1", "-c", "original.hip", "-o", "plain.o").returncode == 0
    assert mixed(bench, own, "same") == "hipSuccess 255 255\n"
    assert (bench.folder / "mix.o").read_bytes() == (bench.folder / "plain.o").read_bytes()
    assert mixed(bench, other, "mixed") == "hipSuccess 255 256\n"
    source = embedded_source((str(bench.folder / "mixed"),))
    assert source == (bench.folder / "candidate.hip").read_bytes()


def test_a_kernel_that_the_bundle_lacks_fails_when_it_is_launched(rpl_closed_loop_bench) -> None:
    bench = rpl_closed_loop_bench
    device(bench, "original")
    renamed = device(bench, "candidate", kernel="weigh_all")
    assert mixed(bench, renamed, "mixed").startswith("hipErrorInvalidDeviceFunction ")


def test_host_code_of_its_own_runs_in_a_plain_build(rpl_closed_loop_bench) -> None:
    """So that the tests above can fail: nothing else keeps it from running."""
    bench = rpl_closed_loop_bench
    device(bench, "original", more=HOSTILE)
    assert bench.hipcc("original.hip", "-o", "plain").returncode == 0
    done = subprocess.run([bench.folder / "plain"], capture_output=True, text=True, check=True)
    assert done.stdout == "the host ran it\nhipSuccess 255 255\n"
