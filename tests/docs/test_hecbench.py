"""How tools/hecbench/run.py judges what a program printed, and that the page says what it recorded."""

from __future__ import annotations

import csv
import importlib.util
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import create_autospec

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tools/hecbench"
OUTCOMES = {
    "pass",
    "x86",
    "no-check",
    "differs",
    "unfit",
    "wrong",
    "refused",
    "limit",
    "not-built",
    "not-run",
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("hecbench", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("PASS", "pass"),
        ("correctness : PASS", "pass"),
        ("Found 0 errors in 8192 locations (PASS).", "pass"),
        ("FAIL", "wrong"),
        ("PASS or FAIL? FAIL", "wrong"),
        ("Test failed", "wrong"),
        ("Number of errors: 0", "pass"),
        ("mismatches: 3", "wrong"),
        ("Max error: 2.5e-06", "pass"),
        ("Error = 0.019465", None),
        ("Error (L2norm): 3.14329e-09", "pass"),
        ("error: invalid argument", "wrong"),
        ("Error statistics for the kernels:", None),
        ("Computing the error between host and device", None),
        ("failed 0 of 4096", "pass"),
        ("Backward3 pass benchmarks:", None),
        ("number of bypasses 3", None),
        ("checksum 12.5", None),
        ("Error: version 1.2.3 is too old", None),
        ("errors: 0, failed: 12", "wrong"),
        ("PASSED tests: 3, failed tests: 2", "wrong"),
        ("max error -nan, 0 of 5", None),
        ("Error tolerance: 1e-5", None),
    ],
)
def test_a_line_speaks_for_its_program_or_says_nothing(script, line, verdict):
    assert script._verdict(line) == verdict


@pytest.mark.parametrize(
    ("ours", "x86", "differs"),
    [
        (["sum = 1.00000"], ["sum = 1.00001"], False),
        (["sum = 1.0"], ["sum = 1.001"], True),
        (["size=8", "a"], ["size = 8", "a"], False),
        (["sum = 1"], ["total = 1"], True),
        (["sum = 1"], ["sum = 1", "more"], True),
        (["x nan"], ["x 1"], True),
        (["0.5 0.25"], ["0.50 .25"], False),
        (["##"], ["1 #"], True),
    ],
)
def test_equal_to_x86_is_equal_words_and_close_numbers(script, ours, x86, differs):
    assert (script._difference(ours, x86) is not None) == differs


def test_times_are_no_results(script):
    assert script._results("Average kernel time 3.5 us\nchecksum  7\n\n12.3 GB/s\n") == ["checksum 7"]


@pytest.mark.parametrize(
    ("status", "printed", "outcome"),
    [
        (0, "PASS", "pass"),
        (1, "error = 0", "wrong"),
        (3, "Errors 0 PASS", "wrong"),
        (0, "PASS" + "\n" * (4 << 20), "limit"),
        (2, "failed to open file x.csv", "not-run"),
    ],
)
def test_a_program_that_ends_with_an_error_never_passes(script, tmp_path, status, printed, outcome):
    class Ran(script.Checkout):
        def __init__(self):
            self.sources, self.outputs, self.seconds, self.words = tmp_path, tmp_path / "out", 1.0, {}

        def make(self, *_):
            return script.subprocess.CompletedProcess((), 0, "", "")

        def commands(self, *_):
            return [["./main"]]

        def call(self, *_):
            return status, printed, ""

    assert Ran().tried("it").outcome == outcome


@pytest.mark.parametrize(
    ("sibling", "own_text", "outcome", "detail"),
    [
        (["7"], ["8"], "x86", "as its OpenMP sibling has it, 1 lines, among them 7"),
        (["8"], ["7"], "x86", "as its own text alone has it, 1 lines, among them 7"),
        (None, ["7"], "x86", "as its own text has it, 1 lines, among them 7"),
        (["8"], None, "differs", "'7', x86 '8'"),
        (["8"], ["9"], "differs", "'7', x86 '8'; '7', x86 '9'"),
        (
            ["8", "9", "10"],
            None,
            "no-check",
            "no check; its OpenMP sibling prints another result each time; none",
        ),
        (None, None, "no-check", "no check; none; none"),
    ],
)
def test_what_checks_nothing_is_compared_with_x86(script, sibling, own_text, outcome, detail):
    class Ran(script.Checkout):
        def __init__(self):
            self.words = {}

        def one_of(self, results):
            if not results:
                raise script.NoReferenceError("none")
            return results.pop(0) if len(results) > 1 else results[0]

        def sibling(self, *_):
            return self.one_of(sibling)

        def own_text(self, *_):
            return self.one_of(own_text)

    row = Ran().judged("it", "", "7", [["./main"]], alike=True)
    assert (row.outcome, row.detail) == (outcome, detail)


def test_sources_are_changed_once(script, tmp_path, monkeypatch):
    (tmp_path / "it-hip").mkdir()
    source = tmp_path / "it-hip/main.cu"
    source.write_text("n = 4096; a <= 1; a <= 4; free(p);")
    (tmp_path / "sizes.tsv").write_text(
        "it\tit-hip/main.cu\t4096\t64\nit\tit-hip/main.cu\ta <= 4;\ta <= 1;\nother\tgone\t1\t2\n"
    )
    (tmp_path / "prints.tsv").write_text("it\tit-hip/main.cu\tfree(p)\tprint(p); free(p)\n")
    monkeypatch.setattr(script, "HERE", tmp_path)
    checkout = create_autospec(script.Checkout, instance=True, sources=tmp_path)
    for _ in range(2):
        assert script.Checkout.changed(checkout, "it") == "[4096 -> 64] [a <= 4; -> a <= 1;] [prints.tsv] "
        assert source.read_text() == "n = 64; a <= 1; a <= 1; print(p); free(p);"
    source.write_text("another text")
    with pytest.raises(SystemExit, match="this is another commit"):
        script.Checkout.changed(checkout, "it")


def test_programs_run_in_their_folders_by_the_emulator_that_was_named(script, tmp_path, monkeypatch):
    for folder in ("usr/lib/llvm-21/lib/clang/21/amdgcn/bitcode", "usr/lib/x86_64-linux-gnu", "omp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "usr/lib/x86_64-linux-gnu/libamdhip64.so.6").touch()
    monkeypatch.setattr(script, "compiler", lambda: "clang++-22")
    # As it is called, too.
    monkeypatch.setattr(
        script, "fetched_runtime", create_autospec(script.fetched_runtime, return_value=tmp_path)
    )
    monkeypatch.setattr(
        script.subprocess, "run", lambda *_, **__: script.subprocess.CompletedProcess((), 0, "include", "")
    )
    monkeypatch.setenv("RPL_EMU_FOLDER", "build")
    monkeypatch.chdir(tmp_path)
    checkout = script.Checkout(tmp_path, tmp_path / "omp", 1.0)
    assert checkout.environment["RPL_EMU_FOLDER"] == str(tmp_path / "build")


HIP = r"""
#include <hip/hip_runtime.h>
template <class T, int N>
__global__ void sums(T *out) {
  extern __shared__ T lds[];
  __shared__ T first;
  int i = threadIdx.x;
  lds[i] = T(blockIdx.x * N + i);
  for (int half = N / 2; half; half /= 2) {
    __syncthreads();
    if (i < half) lds[i] += lds[i + half];
  }
  if (i == 0) first = lds[0];
  __syncthreads();
  if (i == N - 1) out[blockIdx.x] = first;
}
__global__ void lanes(unsigned long long *out) {
  int i = threadIdx.x;
  int before = i;
  for (unsigned by = 1; by < 64; by *= 2) {
    int from = __shfl_up(before, by);
    if (i % 64 >= int(by)) before += from;
  }
  if (i == 63 || i == 127) out[i / 64] = before;
  if (i % 64 < 10) {
    unsigned long long odd = __ballot(i & 1);
    if (i == 0) out[2] = odd;
  } else {
    unsigned long long all = __ballot(1);
    if (i == 10) out[3] = all;
  }
  int other = __shfl_xor(i, 33, 32), down = __shfl_down(i, 1, 16), chosen = __shfl(i, 3, 8);
  if (i == 13) out[4] = other * 10000 + down * 100 + chosen;
  if (i >= 100) return;
  int odd = __syncthreads_count(i & 1), all = __syncthreads_and(i < 100), any = __syncthreads_or(i > 98);
  if (i == 0) out[5] = odd * 100 + all * 10 + any;
  atomicAdd(&out[6], 1ull);
  atomicMax(&out[7], (unsigned long long)i);
}
int main() {
  float *f, sum[2];
  hipMalloc((void **)&f, sizeof sum);
  sums<float, 128><<<dim3(2), 128, 128 * sizeof(float)>>>(f);
  hipMemcpy(sum, f, sizeof sum, hipMemcpyDeviceToHost);
  unsigned long long *d, out[8];
  hipMalloc(&d, sizeof out);
  hipMemset(d, 0, sizeof out);
  hipLaunchKernelGGL(lanes, 1, 128, 0, 0, d);
  hipMemcpy(out, d, sizeof out, hipMemcpyDeviceToHost);
  printf("%g %g", sum[0], sum[1]);
  for (auto one : out) printf(" %llu", one);
}
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++ to compile HIP for x86 with")
def test_hip_on_x86_waits_where_threads_wait(tmp_path):
    (tmp_path / "main.cu").write_text(HIP)
    hipcc = [sys.executable, str(FOLDER / "x86/hipcc"), "-std=c++17", "-O0", "--offload-arch=gfx942"]
    subprocess.run([*hipcc, "-c", "main.cu"], cwd=tmp_path, check=True)
    subprocess.run([*hipcc, "main.o", "-o", "main"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    # 0 + ... + 127 and 128 + ... + 255; 0 + ... + 63 and 64 + ... + 127; the odd ones of ten; all others.
    # Thread 13 reads itself, since 44 is above its 32 lanes; 14; 11, the fourth of its eight.
    # 50 odd ones of the first hundred, all below 100, one above 98; a hundred additions; the largest.
    other = 13 * 10000 + 14 * 100 + 11
    assert printed == f"8128 24512 2016 6112 {0b1010101010} {2**64 - 2**10} {other} 5011 100 99"


@pytest.mark.parametrize(("given", "absent"), [(["gone"], "gone"), ([], "program")])
def test_a_program_that_is_not_there_has_no_row(script, tmp_path, monkeypatch, given, absent):
    class Empty(script.Checkout):
        def __init__(self, folder, *_):
            self.sources = folder / "src"

    monkeypatch.setattr(script, "Checkout", Empty)
    monkeypatch.setattr(
        script.sys, "argv", ["run.py", str(tmp_path), *given, "--record", str(tmp_path / "r")]
    )
    with pytest.raises(SystemExit, match=f"there is no {absent} in"):
        script.main()
    assert not (tmp_path / "r").exists()


def test_the_page_states_the_recorded_outcomes(documentation):
    with (FOLDER / "results.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    counted = Counter(row["outcome"] for row in rows)
    assert set(counted) <= OUTCOMES
    stated = {
        cells[0].strip("`"): int(cells[1])
        for cells in documentation.rows("docs/validation.md", "outcome", "programs", "which")
    }
    assert stated == dict(counted)
