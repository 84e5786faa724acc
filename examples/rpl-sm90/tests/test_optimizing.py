"""What rpl optimize needs for CUDA sources: nvcc's programs read and compared, and counters by ncu."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from rpl_core.errors import BadDataError, MissingError
from rpl_core.interfaces.collector import CollectRequest
from rpl_core.model.trace import TraceRole
from rpl_optimize.interfaces.builder import Build, BuildRequest, CodeComparison
from rpl_sm90 import builder as building
from rpl_sm90.builder import NvccBuilds, reading_command
from rpl_sm90.collector import CuptiCollector
from rpl_sm90.cubin import cubins_of
from rpl_sm90.device_code import CudaCode
from rpl_sm90.ncu import NcuReader

RESULTS = Path(__file__).parents[1] / "device" / "results"
SOURCE = """#include <cstdio>
__global__ void smooth(const float* in, float* out, int taps) {
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < taps; ++k) sum += s[(threadIdx.x + k) & 255] * 0.5f;
    atomicAdd(&out[threadIdx.x], sum);
}
__global__ void other(float* out) { out[threadIdx.x] = 1; }
int main() {
    float* a = nullptr;
    if (cudaMalloc(&a, 4096) != cudaSuccess) return std::printf("line %d\\n", __LINE__);
    smooth<<<4, 256>>>(a, a, 16);
    other<<<1, 32>>>(a);
    return cudaDeviceSynchronize();
}
"""


def only(path: Path):
    reader = NcuReader()
    (inputs,) = reader.claim([path])
    (trace,) = reader.read(inputs)
    return trace


def per_launch(trace, kernel: str) -> dict[str, float]:
    index = next(i for i, one in enumerate(trace.kernels) if one.symbol == kernel)
    rows = np.isin(trace.counters.dispatch, np.flatnonzero(trace.dispatches.kernel == index))
    launches = int(np.count_nonzero(trace.dispatches.kernel == index))
    values, counters = trace.counters.value[rows], trace.counters.counter[rows]
    return {n: values[counters == i].sum() / launches for i, n in enumerate(trace.counter_names)}


def test_counters_of_a_real_table_are_those_of_the_algorithm() -> None:
    """2^24 points of four floats are read once; 67584^2 pairs of bodies take 18 operations each."""
    trace = only(RESULTS / "counters_luminance.ncu.csv")
    assert trace.role is TraceRole.COUNTERS
    assert {kernel.name for kernel in trace.kernels} == {
        "fill(float*, unsigned int, unsigned int)",
        "luminance(float const*, float*, int)",
    }
    assert per_launch(trace, "_Z9luminancePKfPfi")["dram__bytes_read"] == pytest.approx(
        4 * 4 * 2**24, rel=1e-3
    )
    found = per_launch(only(RESULTS / "counters_nbody.ncu.csv"), "_Z5nbodyPKfPfi")
    operation = "smsp__sass_thread_inst_executed_op_f{}_pred_on"
    add, multiply, both = (found[operation.format(word)] for word in ("add", "mul", "fma"))
    assert add + multiply + 2 * both == 18 * 67584**2


def test_a_table_without_a_number_is_refused(tmp_path) -> None:
    text = (RESULTS / "counters_nbody.ncu.csv").read_text().splitlines()[:5]  # a head and one number
    path = tmp_path / "damaged.csv"
    path.write_text("\n".join([*text[:-1], text[-1].rpartition(",")[0] + ',"many"']))
    reader = NcuReader()
    (inputs,) = reader.claim([path])
    with pytest.raises(BadDataError, match="can't be read as a table"):
        reader.read(inputs)


def test_counters_take_a_pass_of_their_own(tmp_path, monkeypatch) -> None:
    """A stand-in for ncu writes a real table where it is told to, and gets the application's words whole."""
    table = RESULTS / "counters_nbody.ncu.csv"
    for name, text in (
        ("ncu", f'#!/bin/sh\nfor w; do [ "$l" = --log-file ] && cp {table} "$w"; l=$w; done; echo "$@"\n'),
        ("app", "#!/bin/sh\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("rpl_sm90.collector.find_cuda", lambda: type("C", (), {"library": "x"})())
    monkeypatch.setattr("rpl_sm90.collector.recorder_library", lambda _cuda: "y")
    collector = CuptiCollector()
    words = (str(tmp_path / "app"), "{directory}")
    (planned,) = collector.plan(CollectRequest(words, runs=0, counters=("dram__bytes_read",))).passes
    assert "dram__bytes_read.sum,gpu__time_duration.sum" in planned.command
    outcome = collector.run(planned, tmp_path / "run", lambda _line: None)
    assert outcome.files == ("artifacts/counters/counters.ncu.csv",)
    assert "{directory}" in (tmp_path / "run" / (outcome.log or "")).read_text()
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingError, match="ncu was not found"):
        collector.plan(CollectRequest((str(tmp_path / "app"),), runs=0, counters=("dram__bytes_read",)))


def test_without_clang_nothing_is_judged(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingError, match="no clang"):
        reading_command(("nvcc", "x.cu"), Path("x.cu"))


def test_clang_reads_with_the_options_of_nvcc(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(building, "_toolkit", lambda: tmp_path)
    monkeypatch.setattr(building.shutil, "which", lambda name: f"/usr/bin/{name}")
    words = "nvcc -O3 -std c++17 -I inc -DN=4 -gencode arch=compute_90a,code=sm_90a -lineinfo {source} -o x"
    found = reading_command(words.split(), Path("/x.cu"))
    assert "--cuda-gpu-arch=sm_90a" in found
    assert found[-6:] == ("-O3", "-std=c++17", "-I", "inc", "-DN=4", "/x.cu")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A builder by the real nvcc, and builds of some texts."""
    for tool in ("nvcc", "clang++-22"):
        if shutil.which(tool) is None:
            if os.environ.get("CI") == "true" and "cuda" not in os.environ.get("RPL_ALLOW_SKIP", ""):
                pytest.fail(f"{tool} is not installed")
            pytest.skip(f"{tool} is not installed")
    place = tmp_path_factory.mktemp("nvcc")
    source = place / "smooth.cu"
    source.write_text(SOURCE)
    request = BuildRequest(("./smooth",), source, place, architecture="sm_90")
    builder = NvccBuilds().builder(request)
    assert builder is not None

    def build(text: str) -> Build:
        found = builder.build_candidate(
            text.encode(), SOURCE.encode(), place / str(len(list(place.iterdir())))
        )
        assert isinstance(found, Build), found
        return found

    return builder, build, build(SOURCE)


def guards(before: Build, after: Build) -> dict[str, bool]:
    assert before.code is not None
    assert after.code is not None
    asked = CodeComparison("smooth", lambda _name: None, 256, changes_loop=True)
    return {one.guard: one.passed for one in before.code.guards(after.code, asked)}


def test_an_unrolled_loop_passes_and_a_lost_barrier_does_not(built) -> None:
    _, build, base = built
    unrolled = build(SOURCE.replace("for (int k", '_Pragma("unroll 8") for (int k'))
    assert unrolled.host_code is not None
    assert unrolled.host_code.passed
    assert all(guards(base, unrolled).values())
    assert guards(base, base)["binary-isa"] is False
    assert not guards(base, build(SOURCE.replace("__syncthreads();", "")))["binary-cooperation"]
    assert not guards(base, build(SOURCE.replace("= 1; }", "= 2; }")))["other-code"]


def test_changed_host_code_is_seen(built) -> None:
    _, build, _ = built
    for change in (("line %d", "Line %d"), ("#include <cstdio>\n", "#include <cstdio>\n\n")):
        found = build(SOURCE.replace(*change))
        assert found.host_code is not None
        assert not found.host_code.passed


def test_padding_moves_the_same_code(built) -> None:
    builder, build, base = built
    shifted = build(builder.padded(SOURCE.encode(), 4352).decode())
    assert shifted.host_code is not None
    assert shifted.host_code.passed
    assert base.code.why_not_moved(shifted.code, "smooth") is None
    assert base.code.why_not_moved(base.code, "smooth") == "the padding did not move the kernel"


def test_what_ptxas_says_of_a_kernel_is_read(built) -> None:
    *_, base = built
    (cubin,) = cubins_of(base.binary)
    smooth = cubin.functions["_Z6smoothPKfPfi"]
    assert (smooth.kernel, smooth.frame_bytes, smooth.shared_bytes) == (True, 0, 2048)
    assert cubin.kernels == ("_Z5otherPf", "_Z6smoothPKfPfi")
    assert isinstance(base.code, CudaCode)


def test_damaged_device_code_is_refused(built, tmp_path) -> None:
    *_, base = built
    content = bytearray(base.binary.read_bytes())
    at = content.rindex(bytes.fromhex("50ed55ba"))
    content[at + 8 : at + 16] = (1 << 40).to_bytes(8, "little")
    (tmp_path / "damaged").write_bytes(content)
    with pytest.raises(BadDataError, match="damaged"):
        cubins_of(tmp_path / "damaged")
