"""Controls: which stores are made wrong, and what clang makes of the result for gfx942."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rpl_codeobject.disassembly import disassemble
from rpl_codeobject.kernel_code import CodeObject
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.transform import apply_edits
from rpl_transforms.controls import PRELUDE, find_stores
from rpl_transforms.source_file import read_source_file
from rpl_transforms.syntax import text_of
from rpl_transforms.unroll import Unroll

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.hip"))
_BROKEN = {"parsed_syntax_error"}
#: Three compilations each: these show the kinds of store, the others take half a minute.
_SAMPLE = {"atomic_hip_builtin", "barrier_through_macro", "hidden_writes_lambda", "parsed_loop_macro"}
_SAMPLE |= {"safe_two_kernels", "safe_template", "volatile_typedef"}
_WHOLE = [
    pytest.param(path, id=path.stem, marks=() if path.stem in _SAMPLE else pytest.mark.long)
    for path in CORPUS
    if path.stem not in _BROKEN
]


def controls(text: bytes, kernel: str = "k") -> dict[str, bytes]:
    found = Unroll().controls(KernelSource("k.hip", text, kernel))
    return {control.id: apply_edits(text, control.edits) for control in found}


def stores(body: str, parameters: str = "float* p, int i", before: str = "") -> list[str]:
    file = read_source_file(f"{before}\n__global__ void k({parameters}) {{ {body} }}\n".encode())
    found = find_stores(file, file.kernels[0])
    return [text_of(store.value) if store.target is None else text_of(store.target) for store in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("p[i] = 1;", ["p[i]"]),
        ("p[i] += 1; *p = 2; (*p) = 3;", ["p[i]", "*p", "(*p)"]),
        ("for (;;) { if (i) p[i] = 1; }", ["p[i]"]),
        ("p[i]++; --p[0];", ["++", "--"]),
        ("atomicAdd(&p[i], 1.0f); atomicMax(p, i);", ["1.0f", "i"]),
        ("__hip_atomic_fetch_add(p, 3, 0, 1); __hip_atomic_load(p, 0, 1);", ["3"]),
        ("__builtin_nontemporal_store(4, p + i);", ["4"]),
        ("float* row = p + 8; row[i] = 1;", ["row[i]"]),
        ("float& x = p[i]; x = 1;", ["x"]),
        ("auto f = [=](int j) { p[j] = 1; }; f(i);", ["p[j]"]),
        (
            "reinterpret_cast<int*>(p)[i] = 1; *(int*)&p[i] = 2;",
            ["reinterpret_cast<int*>(p)[i]", "*(int*)&p[i]"],
        ),
        ("p[i] = p[0] = 1;", ["p[i]"]),
        ("p[int(i)] = 1;", ["p[int(i)]"]),
        ("float x; x = 1; x += 2; ++i;", []),
        ("float acc[4]; acc[i] = 1; acc[0]++; float* q = acc; *q = 1;", []),
        ("__shared__ float s[64]; s[i] = 1; float* q = &s[i]; q[1] = 2; atomicAdd(&s[0], 1.0f);", []),
        ("extern __shared__ float s[]; s[i] = 1;", []),
        ("float4 v; v.x = 1;", []),
    ],
)
def test_stores_that_outlive_the_kernel_are_found(body: str, expected: list[str]) -> None:
    assert stores(body) == expected


def test_stores_through_parameters_of_other_kinds_are_found() -> None:
    assert stores("a.out[i] = 1; a.out->x = 2; a.n = 3;", "Args a, int i") == ["a.out[i]", "a.out->x"]
    assert stores("view(i, 0) = 1;", "View view, int i") == ["view(i, 0)"]
    assert stores("total = 1;", "int i", "__device__ float total;") == ["total"]
    assert stores("OUT = 1;", "float* p", "#define OUT p[0]") == ["OUT"]
    assert stores("T (*row)[4] = x;", "T* x", "struct T {};") == []


def test_empty_keeps_everything_but_the_body() -> None:
    text = b"// c\nint a;\ntemplate <int N> __global__ void k(float* p) { p[0] = N; }\nint b;\n"
    assert controls(text)["empty"] == PRELUDE + text.replace(b"{ p[0] = N; }", b"{ }")


def test_all_kernels_of_the_name_are_edited_and_no_other() -> None:
    text = b"__global__ void k(int* p) { *p = 1; }\n__global__ void k(float* p) { *p = 1; }\n"
    other = b"__global__ void other(int* p) { *p = 1; }\n"
    changed = controls(text + other)
    assert changed["broken"].count(b"*p = ::rpl_control::changed(1);") == 2
    assert changed["empty"].count(b"{ }") == 2
    assert all(after.endswith(other) for after in changed.values())


def test_a_lock_is_left_alone_beside_other_stores() -> None:
    text = b"__global__ void k(int* l, int* p) { while (atomicCAS(l, 0, 1)) ; *p = 2; atomicExch(l, 0); }"
    wrong = b"while (atomicCAS(l, 0, 1)) ; *p = ::rpl_control::changed(2); atomicExch(l, 0);"
    assert wrong in controls(text)["broken"]
    assert b"changed(1)" in controls(text.replace(b"*p = 2;", b""))["broken"]


def test_without_a_visible_store_half_of_the_threads_do_nothing() -> None:
    text = b"__device__ void put(int*, int);\n__global__ void k(int* p) { put(p, 1); }\n"
    assert b"return; put(p, 1);" in controls(text)["broken"]


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        (b"__global__ void k(int* p) { *p = 1; }", None),
        (b"__global__ void k(int* p) { *p = 1; }", "other"),
        (b"__global__ void k(int* p) { if (1) { *p = ; }", "k"),
        (b"__global__ void k(int* p) { }", "k"),
        (b"", "k"),
    ],
)
def test_no_controls_where_the_kernel_is_not_clear(text: bytes, kernel: str | None) -> None:
    assert Unroll().controls(KernelSource("k.hip", text, kernel)) == ()


def test_a_byte_order_mark_stays_first() -> None:
    text = b"\xef\xbb\xbf__global__ void k(int* p) { *p = 1; }"
    assert all(after.startswith(b"\xef\xbb\xbf#pragma") for after in controls(text).values())


@pytest.mark.clang
@pytest.mark.parametrize("path", _WHOLE)
def test_both_controls_of_the_corpus_compile_to_other_code(path: Path, gfx942) -> None:
    text = path.read_bytes()
    for kernel in sorted({k.name for k in read_source_file(text).kernels}):
        made = controls(text, kernel)
        versions = [_code(gfx942, version) for version in (text, made["empty"], made["broken"])]
        assert all(versions[0].keys() == version.keys() for version in versions)
        assert versions[0] != versions[1], "empty is the baseline"
        assert versions[0] != versions[2], "broken is the baseline"
        assert versions[1] != versions[2], "broken is empty"


# Types that numbers, vectors, classes and bits of C++ have in real kernels.
_TYPES = b"""
typedef float vec4 __attribute__((ext_vector_type(4)));
struct Half {
  unsigned short bits;
  Half() = default;
  __device__ Half(float v) : bits((unsigned short)v) {}
  __device__ operator float() const { return bits; }
};
struct Pair { float value; int index; };
enum Colour { RED, GREEN };
struct Args { float* out; Pair* pairs; int n; };
extern "C" {
__global__ void linkage(const float* in, double* out) { out[0] = in[0]; }
}
namespace app { namespace {
template <typename T> __global__ void generic(T* out, T v) { out[0] = v; out[1] = {}; }
template __global__ void generic<float4>(float4*, float4);
template __global__ void generic<unsigned char>(unsigned char*, unsigned char);
} }
__global__ void types(vec4* v, float4* f, Half* h, Pair* p, Colour* c, bool* b, _Float16* x, Args a,
                      unsigned long long* u, volatile int* o, signed char* s, const float* in) {
  v[0] = v[1] * 2.0f;
  v[0].x = in[0];
  f[0] = float4{in[0], 1, 2, 3};
  f[1] = {in[1], 1.0f, 2.0f, 3.0f};
  h[0] = Half(in[2]);
  h[1] = in[3];
  p[0] = {in[4], 5};
  p[1] = Pair{1.0f, 2};
  c[0] = in[0] > 1 ? RED : GREEN;
  b[0] = in[0] > in[1];
  x[0] = (_Float16)in[5];
  a.out[0] = 0;
  a.pairs->index = 7;
  u[0] = 1ull << 40;
  *o = 3;
  s[0] = 'a';
  u[1] |= 4;
}
"""


@pytest.mark.clang
@pytest.mark.parametrize("kernel", ["linkage", "generic", "types"])
def test_values_of_every_kind_can_be_made_wrong(kernel: str, gfx942) -> None:
    strict = attrs_with_errors(gfx942)
    made = controls(_TYPES, kernel)
    assert _code(gfx942, _TYPES) != _code(strict, made["broken"])
    _code(strict, made["empty"])


def attrs_with_errors(compiler):
    import attrs

    return attrs.evolve(compiler, flags=(*compiler.flags, "-Wall", "-Wextra", "-Werror"))


def _code(compiler, text: bytes) -> dict[str, object]:
    built = compiler.compile(text)
    assert isinstance(built, CodeObject), built
    return dict(disassemble(built))


_HOST = """
#define __global__
%s
#include <cmath>
#include <cstdio>
template <typename T> int same(T v) { T w = ::rpl_control::changed(v); return w == v || (v != v && w != w); }
int main() {
  int bad = 0;
  for (long v = -70000; v <= 70000; ++v) {
    bad += same<int>(v) + same<long>(v) + same<unsigned>(v) + same<long long>(v) + same<unsigned long>(v);
    bad += same<float>(v) + same<double>(v) + same<float>(v / 256.0f);
    bad += same<short>(v) + same<unsigned short>(v) + same<char>(v) + same<signed char>(v);
    bad += same<unsigned char>(v);
  }
  bad += same(true) + same(false) + same(NAN) + same(INFINITY) + same(-INFINITY);
  bad += ::rpl_control::changed(1) == 0;  // or a counter would add nothing, as the empty kernel does
  std::printf("%%d\\n", bad);
}
"""


@pytest.mark.clang
def test_no_value_stays_as_it_is(tmp_path: Path) -> None:
    compiler = shutil.which("clang++-22")
    if compiler is None:
        pytest.skip("clang++-22 is not installed")
    source, program = tmp_path / "t.cpp", tmp_path / "t"
    source.write_text(_HOST % PRELUDE.decode())
    subprocess.run([compiler, "-O1", "-std=c++17", "-Wno-everything", source, "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "0\n"
