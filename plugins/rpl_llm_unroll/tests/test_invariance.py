"""Edits of a whole kernel, as a language model would send them: what may change and what may not."""

from __future__ import annotations

import pytest

from rpl_llm_unroll.invariance import check_invariance
from rpl_llm_unroll.syntax.source_file import read_source_file

_SOURCE = b"""// settings
#define N 16
template <typename T, int K>
__global__ __launch_bounds__(256) void saxpy(T* __restrict__ out, const T* in, int n) {
  // "}" in a comment, and a string:
  const char* brace = "}";
  for (int i = 0; i < N; ++i) out[i] += in[i] * T(brace[0]);
}
__global__ void other(float* out) { out[0] = 1.0f; }
int main() { return 0; }
"""


def _refusals(old: bytes, new: bytes, source: bytes = _SOURCE) -> set[str]:
    assert old in source
    file = read_source_file(source)
    verdicts = check_invariance(file, source.replace(old, new, 1), file.kernels[0])
    return {verdict.guard for verdict in verdicts if not verdict.passed}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"out[i] += in[i] * T(brace[0]);", b"{ out[i] += in[i] * T(brace[0]); }"),
        (b"  for (", b"  #pragma unroll 4\n  for ("),
        (b"  for (", b"#pragma clang loop unroll_count(4)\n  for ("),
        (b'"}"', b'"{{{"'),
        (
            b"(T* __restrict__ out, const T* in, int n)",
            b"(T* __restrict__ out,\n    const T* in,  /* size */ int n)",
        ),
    ],
)
def test_the_body_and_the_layout_may_change(old, new):
    assert _refusals(old, new) == set()


@pytest.mark.parametrize(
    ("guard", "old", "new"),
    [
        ("kernel-name", b"void saxpy(", b"void saxpy2("),
        ("kernel-parses", b"out[i] += in[i]", b"out[i] += in[i"),
        ("kernel-template", b"int K>", b"int K = 4>"),
        ("kernel-template", b"template <typename T, int K>", b"template <typename T, long K>"),
        ("kernel-attributes", b"__launch_bounds__(256)", b"__launch_bounds__(512)"),
        ("kernel-attributes", b"__launch_bounds__(256) ", b""),
        ("kernel-parameters", b"int n)", b"long n)"),
        ("kernel-parameters", b"T* __restrict__ out", b"T* out"),
        ("kernel-parameters", b", int n)", b")"),
        ("outside", b"#define N 16", b"#define N 8"),
        ("outside", b"// settings", b"// my settings"),
        ("outside", b"out[0] = 1.0f", b"out[0] = 2.0f"),
        ("outside", b"return 0", b'return system("true")'),
        ("constructs", b"  for (", b'  asm volatile("s_nop 0");\n  for ('),
        ("constructs", b"  for (", b'#include "/etc/passwd"\n  for ('),
        ("constructs", b"  for (", b"#define in out\n  for ("),
        ("constructs", b"  for (", b"#pragma GCC poison printf\n  for ("),
        ("constructs", b"  for (", b'  _Pragma("clang fp contract(fast)")\n  for ('),
        ("constructs", b"  for (", b"  [[clang::noinline]] for ("),
    ],
)
def test_a_forbidden_change_is_refused_by_its_guard_alone(guard, old, new):
    # Each guard alone refuses some change, so that a removed guard makes a case here fail.
    expected = {guard}
    if b"_Pragma" in new:
        expected.add("kernel-parses")  # the grammar wants a semicolon behind it
    assert _refusals(old, new) == expected


def test_a_kernel_of_the_same_name_in_a_comment_does_not_count():
    text = _SOURCE.replace(b"void saxpy(", b"void /* saxpy( */ renamed(")
    file = read_source_file(_SOURCE)
    (verdict,) = check_invariance(file, text, file.kernels[0])
    assert not verdict.passed
    assert "kernels now: renamed, other" in verdict.reason


def test_of_two_overloads_only_the_named_one_may_change():
    source = _SOURCE.replace(b"void other(float* out)", b"void saxpy(float* out)")
    file = read_source_file(source)
    edited = source.replace(b"out[0] = 1.0f", b"out[0] = 2.0f")
    first = check_invariance(file, edited, file.kernels[0])
    second = check_invariance(file, edited, file.kernels[1])
    assert {v.guard for v in first if not v.passed} == {"outside"}
    assert all(v.passed for v in second)


def test_a_refusal_names_the_line():
    edited = _SOURCE.replace(b"return 0", b"return 1")
    file = read_source_file(_SOURCE)
    lines = [v.line for v in check_invariance(file, edited, file.kernels[0]) if not v.passed]
    assert lines == [10]


def test_unroll_judges_the_edits_of_others():
    from rpl_llm_unroll.transformation import Unroll
    from rpl_optimize.interfaces.transformation import KernelSource

    text = b"""__global__ void k(float* p, int n) { p[0] = n; }
__global__ void k(float* p, long n) { p[1] = n; }
int main() { return 0; }
"""
    source = KernelSource("k.hip", text, "k")

    def refusing(after):
        return [verdict.guard for verdict in Unroll().invariance(source, after) if not verdict.passed]

    assert refusing(text.replace(b"p[0] = n", b"p[0] = n + 1")) == []
    assert refusing(text.replace(b"p[1] = n", b"p[1] = n + 1")) == [], (
        "the second overload may change as well"
    )
    assert "outside" in refusing(text.replace(b"return 0", b"return 1"))
    assert "kernel-parameters" in refusing(text.replace(b"int n)", b"short n)"))
    assert Unroll().invariance(KernelSource("k.hip", text, "unknown"), text) == ()
