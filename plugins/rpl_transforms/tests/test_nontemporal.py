"""Stores past the caches: what is only stored to is proven, hostile twins are refused, results stay."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import rpl_testkit
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts import assert_transformation
from rpl_transforms.coarsening import Coarsening, WideElements
from rpl_transforms.nontemporal import NontemporalStores

pytestmark = pytest.mark.clang

_HARMLESS = {
    "guarded": "if (n > 3) out[n] = in[n];",
    "looped": "for (int i = 0; i < n; ++i) out[i] = in[i] * 2;",
    "both branches": "if (n > 40) out[0] = 1; else out[1] = 2.5;",
    "converted": "out[3] = n; out[4] = 1.0 / n;",
    "commas in calls": "out[5] = twice(in[1], in[2]);",
    "index of variables": "int i = n % 5; out[i + 2 * (n % 3)] = in[i];",
    "over two lines": "out[7] =\n      in[7];",
    "nested braces": "{ { out[n] = in[(n * 3) % 16]; } }",
    "a call in a loop": "for (int i = 0; i < n; ++i) out[i + 8] = twice(in[i], i);",
    "choice": "out[8] = n > 5 ? in[8] : in[9];",
}
_HOSTILE = {
    "read again": "out[0] = 1; out[1] = out[0];",
    "compound": "out[0] += in[0];",
    "counted": "out[0] = 1; out[1]++;",
    "value used": "float x = out[0] = in[1]; (void)x;",
    "in a condition": "if (out[0] = in[0]) out[1] = 2;",
    "address taken": "float* p = &out[0]; out[1] = 3; *p = 4;",
    "handed on": "set(out); out[1] = 3;",
    "moved pointer": "out = out + 1; out[0] = 3;",
    "dereferenced": "*out = 3; out[1] = 2;",
    "comma": "out[0] = 1, out[1] = 2;",
    "from a macro": "#define PUT(x) out[x] = 2\n  PUT(1);",
    "ends in a macro": "#define ONE 1.0f\n  out[1] = ONE;",
    "volatile": "((volatile float*)out)[0] = 1;",
    "index that counts": "int i = 0; out[i++] = in[i];",
    "value that counts": "int i = 0; out[i] = in[++i];",
    "value that assigns": "int i = 0; out[i] = (i = 3);",
    "lambda in the value": "int i = 0; out[i] = [&] { i = 3; return 1; }();",
    "captured": "[&] { out[0] = 1; float y = out[0]; (void)y; }();",
    "braces": "out[0] = {1};",
    "a function counts": "int i = 0; out[i] = counted(i);",
    "a function counts by address": "int i = 0; int* p = &i; out[i] = counted(*p);",
    "a lambda counts": "int i = 0; auto f = [&] { return ++i; }; out[i] = f();",
    "a place that a function moves": "int a[2] = {}; out[a[1]] = counted(a[1]);",
    "a name for a variable": "int i = 0; const int& r = i; out[r] = counted(i);",
    "a variable of the file": "out[of_file] = moved();",
    "a place in memory that a function moves": "Place a, *p = &a; out[p->at] = next(p);",
    "other way around": "0[out] = 1;",
}


def _text(bodies: dict[str, str]) -> str:
    kernels = [
        f"__global__ void k{number}(float* out, const float* in, int n) {{\n  {body}\n}}"
        for number, body in enumerate(bodies.values())
    ]
    helpers = (
        "__device__ float twice(float a, float b) { return a + 2 * b; }\n"
        "__device__ void set(float* p) { p[0] = 1; }\n"
        "__device__ float counted(int& i) { return ++i; }\n"
        "struct Place { int at; };\n__device__ float next(Place* p) { return ++p->at; }\n"
        "__device__ int of_file;\n__device__ float moved() { return ++of_file; }\n"
    )
    return "#include <hip/hip_runtime.h>\n" + helpers + "\n".join(kernels) + "\n"


def _read(rpl_require, folder: Path, text: str) -> CompilerReading:
    path = folder / "kernels.hip"
    path.write_text(text, encoding="utf-8")
    headers = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"
    words = ("-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-I", str(headers))
    front_end = FrontEnd((str(rpl_require("clang++-22")), *words), path, path, folder)
    reading = CompilerReading(front_end, text.encode())
    assert not isinstance(reading.parsed(), str), reading.parsed()
    return reading


def _offered(text: str, reading: CompilerReading):
    source = KernelSource("kernels.hip", text.encode(), reading=reading)
    return {one.kernel: one for one in NontemporalStores().propose(source)}


def test_hostile_kernels_are_refused(rpl_require, tmp_path):
    text = _text(_HOSTILE)
    offered = _offered(text, _read(rpl_require, tmp_path, text))
    assert {
        what for (what, _), one in zip(_HOSTILE.items(), offered.values(), strict=True) if one.allowed
    } == set()
    assert all(one.edits == () for one in offered.values())


@pytest.mark.long
def test_harmless_twins_are_offered_pass_the_judge_and_keep_their_results(rpl_require, tmp_path):
    text = _text(_HARMLESS)
    reading = _read(rpl_require, tmp_path, text)
    assert_transformation(NontemporalStores(), KernelSource("kernels.hip", text.encode(), reading=reading))
    offered = _offered(text, reading)
    refused = {
        what: one.guards for what, one in zip(_HARMLESS, offered.values(), strict=True) if not one.allowed
    }
    assert refused == {}
    judge = MeaningJudge(reading.front_end, text.encode())
    for what, one in zip(_HARMLESS, offered.values(), strict=True):
        meaning = judge.judge(apply_edits(text.encode(), one.edits), one.declares)
        assert meaning.passed, (what, [verdict for verdict in meaning.verdicts if not verdict.passed])
    edits = [edit for one in offered.values() for edit in one.edits]
    edited = apply_edits(text.encode(), edits).decode()
    assert edited.count("__builtin_nontemporal_store") == len(edits) >= len(_HARMLESS)
    compiler = rpl_require("clang++-22")
    assert _results(compiler, edited, tmp_path) == _results(compiler, text, tmp_path)


def test_static_members_of_classes_are_kernels_too(rpl_require, tmp_path):
    text = (
        "#include <hip/hip_runtime.h>\n"
        "template <typename T> struct Sums {\n"
        "  T kept;\n"
        "  __global__ static void halve(T* out, const T* in, int n) {\n"
        "    auto safe = [&](int i) { return i < 9 ? in[i] : T(0); };\n"
        "    if (n > 3) out[n] = safe(n) / 2;\n  }\n"
        "  __global__ static void keep(T* out, const T* in) { out[0] = in[0]; out[1] = out[0]; }\n"
        "};\n"
        "template struct Sums<float>;\n"
        "template struct Sums<unsigned>;\n"
    )
    reading = _read(rpl_require, tmp_path, text)
    source = KernelSource("sums.hpp", text.encode(), reading=reading)
    halve, keep = NontemporalStores().propose(source)
    assert (halve.allowed, keep.allowed) == (True, False)
    meaning = MeaningJudge(reading.front_end, text.encode()).judge(
        apply_edits(text.encode(), halve.edits), halve.declares
    )
    assert meaning.passed, [verdict for verdict in meaning.verdicts if not verdict.passed]
    assert meaning.mangled == ("_ZN4SumsIfE5halveEPfPKfi", "_ZN4SumsIjE5halveEPjPKji")


def test_elements_may_have_names_that_a_typedef_gave_them(rpl_require, tmp_path):
    """A name may also hide what the builtin or an assignment would do otherwise."""
    names = {"plain": "unsigned long", "own": "word", "hidden": "noticed", "pair": "Pair", "truth": "bool"}
    body = "{ int i = blockIdx.x * blockDim.x + threadIdx.x; p[i] = v; }"
    kernels = "".join(f"__global__ void {k}({v}* p, {v} v) {body}\n" for k, v in names.items())
    text = (
        "#include <hip/hip_runtime.h>\n"
        "typedef unsigned long word;\nusing noticed = volatile int;\nstruct Pair { int a, b; };\n" + kernels
    )
    reading = _read(rpl_require, tmp_path, text)
    offered = _offered(text, reading)
    assert {kernel for kernel, one in offered.items() if one.allowed} == {"plain", "own"}
    source = KernelSource("kernels.hip", text.encode(), reading=reading)
    assert {one.kernel for one in WideElements().propose(source) if one.allowed} == {"plain", "own"}
    judge = MeaningJudge(reading.front_end, text.encode())
    meaning = judge.judge(apply_edits(text.encode(), offered["own"].edits), offered["own"].declares)
    assert meaning.passed, [verdict for verdict in meaning.verdicts if not verdict.passed]


def test_headers_are_asked_only_where_no_other_instance_can_matter():
    assert {".h", ".hpp", ".cuh"} <= set(NontemporalStores.suffixes)
    assert not set(NontemporalStores.suffixes[5:]) & set(Coarsening.suffixes)


def test_a_macro_of_the_builtins_name_refuses(rpl_require, tmp_path):
    body = "out[0] = 1; }\n#define __builtin_nontemporal_store(a, b) (*(b) = 7)\n__global__ void z() {"
    text = _text({"": body})
    (one,) = (c for c in _offered(text, _read(rpl_require, tmp_path, text)).values() if c.kernel == "k0")
    assert [guard.guard for guard in one.guards if not guard.passed] == ["names-free"]


def test_without_a_compiler_nothing_is_offered():
    for reading in (None, CompilerReading("no HIP compiler is installed", b"")):
        source = KernelSource("k.hip", b"__global__ void k(float* p) { p[0] = 1; }\n", reading=reading)
        (one,) = NontemporalStores().propose(source)
        assert (one.allowed, one.edits) == (False, ())


def _results(compiler: Path, text: str, folder: Path) -> str:
    """What the kernels store on the CPU, each 64 times for every size, one line per kernel."""
    calls = "\n".join(f"  run(k{number});" for number in range(len(_HARMLESS)))
    program = f"""#include <stdio.h>
#define __global__ static
#define __device__ static
{text.replace("#include <hip/hip_runtime.h>", "")}
static void run(void (*kernel)(float*, const float*, int)) {{
  unsigned long seen = 14695981039346656037ul;
  for (int n = 0; n < 64; ++n) {{
    float in[192], out[64] = {{}};
    for (int i = 0; i < 192; ++i) in[i] = (i * 7 + 3) % 61;
    kernel(out, in, n);
    for (int i = 0; i < 64; ++i) seen = (seen ^ (unsigned)(out[i] * 64)) * 1099511628211ul;
  }}
  printf("%lx\\n", seen);
}}
int main() {{
{calls}
}}
"""
    path, binary = folder / "program.cpp", folder / "program"
    path.write_text(program, encoding="utf-8")
    subprocess.run([compiler, "-O1", "-w", "-std=c++20", path, "-o", binary], check=True, capture_output=True)
    done = subprocess.run([binary], check=True, capture_output=True, text=True)
    assert len(set(done.stdout.split())) == len(_HARMLESS), "each kernel stores something of its own"
    return done.stdout
