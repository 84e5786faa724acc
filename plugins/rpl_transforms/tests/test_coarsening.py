"""More work for each work-item: what does its work for itself is proven, hostile twins are refused."""

# ruff: noqa: E501 - a kernel stands on its line

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import rpl_testkit
from rpl_optimize.interfaces.transformation import KernelSource, Transformation
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts import assert_transformation
from rpl_transforms.coarsening import Coarsening, WideElements

pytestmark = pytest.mark.clang

_HEADERS = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"
_I = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
ELEMENTS_HARMLESS = {
    "guarded": f"{_I} if (i < n) out[i] = in[i] * 2;",
    "returns": "const unsigned i = threadIdx.x + blockDim.x * blockIdx.x; if (i >= n) return; out[i] = in[i] + 1;",
    "no bound": "size_t i = (blockDim.x * blockIdx.x) + threadIdx.x; out[i] = in[i];",
    "two stores": f"{_I} if (i <= n) {{ out[i] = in[i]; more[i] = out[i] + 1; }}",
    "own variables": f"{_I} if (n > i) {{ float a = in[i]; const int b = 3 * i; out[i] = a + b; }}",
    "other loads": f"{_I} if (i < n) out[i] = in[(7 * i) % 40] - in[i + 2];",
    "unsigned arithmetic": "unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = in[i % 9] + i;",
    "a function": f"{_I} if (i < n) out[i] = twice(in[i], i);",
    "a bound that is computed": f"{_I} if (i < n / 2 + 1) more[i] = -in[i];",
    "lines and comments": f"{_I} // the own one\n  if (i < n) /* all\n of them */\n    out[i] =\n      in[i]; // end",
    "negative size": f"{_I} if (i < n - 50) out[i] = in[i]; ",
}
ELEMENTS_HOSTILE = {
    "parameter changes": f"{_I} if (i < n) out[i] = counted(&n);",
    "neighbour": f"{_I} if (i < n) out[i] = out[i + 1];",
    "neighbour of another store": f"{_I} if (i < n) {{ out[i] = in[i]; more[i] = out[i + 1]; }}",
    "other branch": f"{_I} if (i < n) out[i] = in[i]; else more[i] = 1;",
    "index changes": f"{_I} ++i; if (i < n) out[i] = in[i];",
    "index by reference": f"{_I} int& j = i; if (i < n) out[i] = j;",
    "other index": f"{_I} if (i < n) out[i + 1] = in[i];",
    "bound of what is loaded": f"{_I} if (in[i] < n) out[i] = 1;",
    "equal": f"{_I} if (i == n) out[i] = 1;",
    "from below": f"{_I} if (i > n) out[i] = 1;",
    "returns below": f"{_I} if (i < n) return; out[i] = 1;",
    "two bounds": f"{_I} if (i < n && i != 3) out[i] = 1;",
    "bound of the index": f"{_I} if (i < n - i) out[i] = 1;",
    "fraction": f"{_I} if (i < n * 0.5f) out[i] = 1;",
    "behind the bound": f"{_I} if (i < n) out[i] = 1; more[i] = 2;",
    "another coordinate": f"{_I} if (i < n) out[i] = threadIdx.y;",
    "the block": f"{_I} if (i < n) out[i] = blockIdx.x;",
    "stride of blocks": "int i = blockIdx.x + blockDim.x * threadIdx.x; if (i < n) out[i] = 1;",
    "product of a sum": "int i = blockIdx.x * (blockDim.x + threadIdx.x); if (i < n) out[i] = 1;",
    "index of y": "int i = blockIdx.y * blockDim.y + threadIdx.y; if (i < n) out[i] = 1;",
    "short": "short i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = 1;",
    "two indices": f"{_I} int j = i; if (j < n) out[j] = 1;",
    "counts": f"{_I} int j = 0; if (i < n) out[i] = j++;",
    "moved pointer": f"{_I} out += 1; if (i < n) out[i] = in[i];",
    "sums up": f"{_I} if (i < n) out[i] += in[i];",
    "asks elsewhere": f"{_I} if (i < n) out[i] = own(in);",
    "loop": f"{_I} for (; i < n; i += 64) out[i] = in[i];",
    "variables and two stores": f"{_I} if (i < n) {{ float a = out[i]; out[i] = 1; more[i] = a; }}",
    "macro": f"{_I} if (GUARD) out[i] = in[i];",
    "directive": f"{_I}\n#if 1\n  if (i < n) out[i] = in[i];\n#endif\n",
    "small elements": f"{_I} char* c = (char*)out; if (i < n) c[i] = 1;",
    "shared": f"{_I} __shared__ float t[4]; if (i < n) out[i] = t[0];",
}
BLOCKS_HARMLESS = {
    "one element": f"{_I} if (i < n) out[i] = in[i] * 2;",
    "returns": f"{_I} if (i >= n) return; float s = 0; for (int k = 0; k < 5; ++k) s += in[i + k]; out[i] = s;",
    "only the block": "if (threadIdx.x == 0) out[blockIdx.x] = in[blockIdx.x] + blockIdx.y;",
    "returns from a branch": f"{_I} if (i >= n) {{ more[i % 8] = 0; return; }} else {{ out[i] = 3; }}",
    "sums up": f"{_I} if (i < n) {{ out[i] += in[i]; more[2 * i] -= 1; }}",
    "braces": "{ { const unsigned b = blockIdx.x; out[b * blockDim.x + threadIdx.x] = b; } }",
    "a function": f"{_I} out[i] = twice(in[i], blockIdx.x); // the last line\n",
    "loops": f"{_I} for (int k = 0; k < n % 7; ++k) {{ if (k == 2) continue; out[i] += k; if (k > 4) break; }}",
}
#: What one block's work leaves of its arguments the next one must not find.
ARGUMENTS_CHANGE = {
    "parameter changes": f"{_I} n -= 1; if (i < n) out[i] = 1;",
    "pointer changes": "out += blockIdx.x * blockDim.x; out[threadIdx.x] = 2;",
    "parameter by reference": f"{_I} int& m = n; m -= 2; if (i < n) out[i] = 3;",
    "address of a parameter": f"{_I} int* m = &n; *m -= 3; if (i < n) out[i] = 4;",
    "array in a parameter": f"{_I} rows.of[0] += i + 1; out[i] = rows.of[0];",
    "two of them": f"{_I} if (i >= n) return; in += i; for (; n > 3; n -= 3) out[i] += *in++;",
}
BLOCKS_HARMLESS |= ARGUMENTS_CHANGE
BLOCKS_HOSTILE = {
    "returns from a loop": f"{_I} for (int k = 0; k < 4; ++k) {{ if (i == k) return; out[i] += k; }}",
    "returns from a switch": f"{_I} switch (i) {{ case 1: return; }} out[i] = 1;",
    "knows the grid": f"{_I} for (; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];",
    "no block": "out[threadIdx.x] = 1;",
    "asks elsewhere": f"{_I} out[i] = own(in);",
    "asks by a macro": "#define BLOCK blockIdx.x\n  out[BLOCK * blockDim.x + threadIdx.x] = blockIdx.x;",
    "whole index": f"{_I} auto b = blockIdx; out[i] = b.x;",
    "shared": f"__shared__ float t[64]; {_I} t[threadIdx.x] = i; out[i] = t[threadIdx.x];",
    "goto": f"{_I} if (i >= n) goto end; out[i] = 1; end: return;",
    "lambda": f"{_I} auto f = [&] {{ return i; }}; out[i] = f();",
    "of the file": f"{_I} kept += 1; out[i] = kept;",
    "knows the grid elsewhere": f"{_I} out[i] = whole();",
    "knows the grid by a macro": f"#define GRID gridDim.x\n  {_I} out[i] = GRID;",
    "returns from do": f"{_I} do {{ if (i == n) return; out[i] += 1; }} while (--n > 4);",
    "returns by a macro": f"#define LEAVE return\n  {_I} if (i >= n) LEAVE; out[i] = 1;",
    "index of its own": "unsigned hipBlockIdx_x = 3; out[hipBlockIdx_x + blockIdx.x] = 1;",
    "static": f"static float sum; {_I} sum += 1; out[i] = sum;",
    "object": f"{_I} Object one(i); out[i] = one.v;",
    "assembly": f'asm volatile("s_nop 0"); {_I} out[i] = 1;',
    "statements in an expression": f"{_I} out[i] = ({{ if (i >= n) return; 1; }});",
}
#: These only the judge refuses: what work-items do together stands under other statements then.
TOGETHER = {
    "atomic": f"{_I} if (i < n) __hip_atomic_fetch_add(out, in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
    "volatile": f"{_I} if (i < n) out[i] = ((volatile const float*)in)[n];",
}
_HELPERS = """#define GUARD i < n
struct Rows { float of[4]; };
__device__ float kept;
__device__ float twice(float a, float b) { return a + 2 * b; }
__device__ float counted(int* p) { return ++*p; }
__device__ unsigned whole() { return gridDim.x * blockDim.x; }
struct Object { int v; constexpr Object(int a) : v(a) {} };
__device__ float own(const float* p) { return p[blockIdx.x]; }
"""
_HEAD = "(float* out, float* more, const float* in, int n, Rows rows)"


def _text(bodies: dict[str, str]) -> str:
    kernels = (
        f"__global__ void k{number}{_HEAD} {{\n  {body}\n}}" for number, body in enumerate(bodies.values())
    )
    return "#include <hip/hip_runtime.h>\n" + _HELPERS + "\n".join(kernels) + "\n"


def _read(rpl_require, folder: Path, text: str) -> CompilerReading:
    path = folder / "kernels.hip"
    path.write_text(text, encoding="utf-8")
    words = ("-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-O3", "-I", str(_HEADERS))
    front_end = FrontEnd((str(rpl_require("clang++-22")), *words), path, path, folder)
    return CompilerReading(front_end, text.encode())


def _offered(transformation: Transformation, text: str, reading: CompilerReading):
    source = KernelSource("kernels.hip", text.encode(), reading=reading)
    assert_transformation(transformation, source)
    kernels: dict[str, list] = {}
    for one in transformation.propose(source):
        kernels.setdefault(str(one.kernel), []).append(one)
    return kernels


_PROVEN = {"wide-elements": "element", "coarsening": "block"}


@pytest.mark.parametrize(
    ("transformation", "hostile"),
    [(WideElements(), ELEMENTS_HOSTILE), (Coarsening(), BLOCKS_HOSTILE)],
    ids=["wide-elements", "coarsening"],
)
def test_hostile_kernels_are_refused(rpl_require, tmp_path, transformation, hostile):
    text = _text(hostile)
    offered = _offered(transformation, text, _read(rpl_require, tmp_path, text))
    named = {what: offered[f"k{number}"] for number, what in enumerate(hostile)}
    assert {what for what, found in named.items() if any(one.allowed or one.edits for one in found)} == set()
    # Each for a reason of its own, none for what its neighbours in the file say.
    against = {
        what: [guard for guard in found[0].guards if not guard.passed] for what, found in named.items()
    }
    assert {guard.guard for guards in against.values() for guard in guards} == {
        f"own-{_PROVEN[transformation.name]}"
    }
    assert not any(word in guards[0].reason for guards in against.values() for word in ("compile", "no such"))


@pytest.mark.parametrize(
    ("transformation", "harmless"),
    [(WideElements(), ELEMENTS_HARMLESS), (Coarsening(), BLOCKS_HARMLESS)],
    ids=["wide-elements", "coarsening"],
)
def test_harmless_twins_are_offered_and_keep_their_results(rpl_require, tmp_path, transformation, harmless):
    text = _text(harmless)
    offered = _offered(transformation, text, _read(rpl_require, tmp_path, text))
    named = {what: offered[f"k{number}"] for number, what in enumerate(harmless)}
    assert {what: found for what, found in named.items() if not all(one.allowed for one in found)} == {}
    compiler = rpl_require("clang++-22")
    before = _results(compiler, text, tmp_path, len(harmless))
    assert len(set(before)) == len(harmless), "each kernel stores something of its own"
    for at in range(max(len(found) for found in named.values())):
        edits = [edit for found in named.values() for edit in found[at].edits]
        edited = apply_edits(text.encode(), edits).decode()
        assert edited.count("\n") == text.count("\n")
        assert _results(compiler, edited, tmp_path, len(harmless)) == before
        # The run can tell: with one element or block left out nothing agrees.
        wrong = re.sub(r"rpl_k < [24];|rpl_blocks\) \{", lambda m: _WRONG[m[0][-1]], edited)
        other = _results(compiler, wrong, tmp_path, len(harmless))
        assert all(a != b for a, b in zip(before, other, strict=True))


_WRONG = {";": "rpl_k < 1;", "{": "2 * rpl_blocks) {"}


def test_each_block_begins_with_the_arguments_of_the_launch(rpl_require, tmp_path):
    """With those that the block before left, every one of these kernels stores something else."""
    text = _text(ARGUMENTS_CHANGE)
    offered = _offered(Coarsening(), text, _read(rpl_require, tmp_path, text))
    edited = apply_edits(text.encode(), [edit for found in offered.values() for edit in found[0].edits])
    compiler, count = rpl_require("clang++-22"), len(ARGUMENTS_CHANGE)
    kept = re.sub(r" auto (\w+) = rpl_first_\1;", "", edited.decode())
    before, after = (_results(compiler, version, tmp_path, count) for version in (text, kept))
    assert all(a != b for a, b in zip(before, after, strict=True))


@pytest.mark.long
@pytest.mark.parametrize(
    ("transformation", "harmless"),
    [(WideElements(), ELEMENTS_HARMLESS), (Coarsening(), BLOCKS_HARMLESS)],
    ids=["wide-elements", "coarsening"],
)
def test_harmless_twins_pass_the_judge(rpl_require, tmp_path, transformation, harmless):
    text = _text(harmless)
    reading = _read(rpl_require, tmp_path, text)
    judge = MeaningJudge(reading.front_end, text.encode())
    for found in _offered(transformation, text, reading).values():
        meaning = judge.judge(apply_edits(text.encode(), found[0].edits), found[0].declares)
        assert meaning.passed, [verdict for verdict in meaning.verdicts if not verdict.passed]


@pytest.mark.long
@pytest.mark.parametrize(
    "transformation", [WideElements(), Coarsening()], ids=["wide-elements", "coarsening"]
)
def test_what_work_items_do_together_is_refused_by_the_judge(rpl_require, tmp_path, transformation):
    text = _text(TOGETHER)
    reading = _read(rpl_require, tmp_path, text)
    judge = MeaningJudge(reading.front_end, text.encode())
    found = [one for several in _offered(transformation, text, reading).values() for one in several]
    assert any(one.allowed for one in found)
    for one in found:
        meaning = judge.judge(apply_edits(text.encode(), one.edits), one.declares)
        refused = {verdict.guard for verdict in meaning.verdicts if not verdict.passed}
        assert not one.allowed or "cooperation" in refused


def test_what_a_header_declares_is_looked_into(rpl_require, tmp_path):
    """What stands in the file is read alone first, and says nothing of these."""
    (tmp_path / "more.h").write_text(
        "#pragma once\n__device__ float sum_of_header;\n"
        "__device__ inline float own_of_header(const float* p) { return p[blockIdx.x]; }\n"
        "__device__ inline float half_of_header(float a) { return a / 2; }\n"
    )
    values = {"half_of_header(in[i])": True, "own_of_header(in)": False, "sum_of_header++": False}
    values["sum_of_header"] = True
    text = _text({value: f"{_I} if (i < n) out[i] = {value};" for value in values})
    text = text.replace(_HELPERS, f'#include "more.h"\n{_HELPERS}')
    reading = _read(rpl_require, tmp_path, text)
    found = [not isinstance(reading.block_work(f"k{number}"), str) for number in range(len(values))]
    assert found == list(values.values())


@pytest.mark.parametrize(
    ("transformation", "name"),
    [(WideElements(), "rpl_k"), (Coarsening(), "rpl_block")],
    ids=["wide-elements", "coarsening"],
)
def test_a_name_that_is_taken_refuses(rpl_require, tmp_path, transformation, name):
    text = _text({"": f"{_I} if (i < n) {{ const float {name} = 3; out[i] = {name}; }}"})
    for one in _offered(transformation, text, _read(rpl_require, tmp_path, text))["k0"]:
        assert [guard.guard for guard in one.guards if not guard.passed] == ["names-free"]


def test_accesses_become_wide(rpl_require, tmp_path):
    """For each type of index, and of elements of 8 bytes two at a time."""
    kernel = (
        "template <class T> __global__ void copy(const T* a, T* b, unsigned n) {{ "
        "{0} i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] = a[i]; }}\n"
        "template __global__ void copy<{1}>(const {1}*, {1}*, unsigned);\n"
    )
    for index, element in (("int", "float"), ("unsigned", "int"), ("size_t", "double")):
        text = "#include <hip/hip_runtime.h>\n" + kernel.format(index, element)
        reading = _read(rpl_require, tmp_path, text)
        (one,) = _offered(WideElements(), text, reading)["copy"]
        assert one.allowed, one.guards
        for source, wide in ((text.encode(), False), (apply_edits(text.encode(), one.edits), True)):
            built = reading.compiled(source, "gfx942")
            assert isinstance(built, bytes), built
            (tmp_path / "code").write_bytes(built)
            shown = subprocess.run(
                [rpl_require("llvm-objdump-22"), "-d", tmp_path / "code"], check=True, capture_output=True
            ).stdout.decode()
            assert ("global_load_dwordx4" in shown and "global_store_dwordx4" in shown) == wide


def test_without_a_compiler_nothing_is_offered():
    for reading in (None, CompilerReading("no HIP compiler is installed", b"")):
        source = KernelSource(
            "k.hip", b"__global__ void k(float* p) { p[blockIdx.x] = 1; }\n", reading=reading
        )
        for transformation in (WideElements(), Coarsening()):
            (one,) = transformation.propose(source)
            assert (one.allowed, one.edits) == (False, ())


def _results(compiler: Path, text: str, folder: Path, kernels: int) -> list[str]:
    """What the kernels store on the CPU, for several grids and sizes; the last block runs first."""
    calls = "\n".join(f"  run(k{number});" for number in range(kernels))
    program = f"""#include <stdio.h>
#include <stddef.h>
#define __global__ static
#define __device__ static
static struct {{ unsigned x, y, z; }} blockIdx, blockDim, threadIdx, gridDim;
{text.replace("#include <hip/hip_runtime.h>", "")}
static void run(void (*kernel)(float*, float*, const float*, int, Rows)) {{
  unsigned long seen = 14695981039346656037ul;
  for (unsigned grid = 1; grid < 10; ++grid)
    for (unsigned block = 3; block < 9; block += 5)
      for (int n = -2; n < 90; n += 13) {{
        static float in[512], out[512], more[512];
        for (int i = 0; i < 512; ++i) in[i] = (i * 7 + 3) % 61, out[i] = i % 5, more[i] = 0;
        gridDim.x = grid; blockDim.x = block; blockDim.y = gridDim.y = 1;
        for (unsigned b = grid; b-- > 0;)
          for (unsigned t = 0; t < block; ++t) {{
            blockIdx.x = b; threadIdx.x = t;
            kernel(out, more, in + 4, n, Rows());
          }}
        for (int i = 0; i < 512; ++i)
          seen = ((seen ^ (unsigned)(out[i] * 64)) * 1099511628211ul ^ (unsigned)(more[i] * 64)) * 1099511628211ul;
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
    return subprocess.run([binary], check=True, capture_output=True, text=True).stdout.split()
