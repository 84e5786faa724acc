"""A barrier that is written down and not done is a barrier that was taken away."""

from __future__ import annotations

import pytest

from rpl_optimize.source_meaning.judge import Meaning

pytestmark = pytest.mark.clang

_SOURCE = b"""#include <hip/hip_runtime.h>
namespace std { class type_info { public: const char* name() const; }; }
struct Free { int none; };
__device__ int waits(int x) { __syncthreads(); return x; }
template <int N> __device__ int held() { return N; }
__global__ void k(float* p, const float* q, int n) {
  __shared__ float tile[256];
  for (int step = 0; step < n; ++step) {
    tile[threadIdx.x] = q[step * 256 + threadIdx.x];
    __syncthreads();
    p[step * 256 + threadIdx.x] = tile[255 - threadIdx.x];
    /* here */ __syncthreads();
  }
}
"""
_HERE = b"/* here */ __syncthreads();"

#: Ways to name a barrier without doing it.
_NOT_DONE = {
    "decltype": "using V = decltype(__syncthreads()); (void)(V*)0;",
    "decltype of a variable": "decltype(__syncthreads(), 1) v = 2; (void)v;",
    "typeof": "__typeof__(waits(1)) v = 2; (void)v;",
    "sizeof": "(void)sizeof(waits(1));",
    "sizeof of a comma": "(void)sizeof((__syncthreads(), 1));",
    "alignof": "(void)__alignof__(waits(1));",
    "noexcept": "(void)noexcept(__syncthreads());",
    "static_assert": 'static_assert(!noexcept(waits(1)), "");',
    "_Generic, the question": "_Generic(waits(1), int: 0, default: 1);",
    "_Generic, another answer": "_Generic(1, float: waits(1), default: 1);",
    "__builtin_constant_p": "(void)__builtin_constant_p(waits(1));",
    "__builtin_object_size": "(void)__builtin_object_size((__syncthreads(), p), 0);",
    "__builtin_dynamic_object_size": "(void)__builtin_dynamic_object_size((__syncthreads(), p), 0);",
    "__builtin_assume": "__builtin_assume((__syncthreads(), true));",
    "__builtin_classify_type": "(void)__builtin_classify_type(waits(1));",
    "__builtin_nondeterministic_value": "(void)__builtin_nondeterministic_value(waits(1));",
    "requires": "(void)requires { __syncthreads(); };",
    "a requirement of a lambda": "[](auto x) requires(sizeof((__syncthreads(), 1)) == 4) { return x; }(1);",
    "if constexpr": "if constexpr (false) __syncthreads();",
    "if constexpr with a value": "if constexpr (sizeof(int) == 8) { __syncthreads(); }",
    "if consteval": "if consteval { __syncthreads(); }",
    "a lambda that nobody calls": "(void)[] { __syncthreads(); };",
    "a default argument that is given": "[](int x = (__syncthreads(), 0)) { return x; }(5);",
    "a default argument of a function that is declared": "int g(int x = (__syncthreads(), 0));",
    "the default of a member": "struct S { int a = (__syncthreads(), 1); }; S s{3}; (void)s;",
    "a method of a local class": "struct S { __device__ void f() { __syncthreads(); } }; (void)sizeof(S);",
    "a trailing result type": "auto f = [](int x) -> decltype(waits(x)) { return x; }; f(1);",
    "an array bound": "(void)sizeof(int[sizeof(waits(1))]);",
    "a template argument": "held<sizeof(waits(1))>();",
    "an enumerator": "enum { value = sizeof(waits(1)) };",
    "a bit-field": "struct S { int a : sizeof(waits(1)); };",
    "alignas": "alignas(sizeof(waits(1)) * 4) int v; (void)v;",
    "behind or": "(void)(true || (__syncthreads(), true));",
    "behind and": "(void)(false && (__syncthreads(), true));",
    "the other branch": "true ? (void)0 : __syncthreads();",
    "a loop that runs never": "for (; false;) __syncthreads();",
    "a case that is never taken": "switch (0) { case 1: __syncthreads(); }",
    "jumped over": "goto end; __syncthreads(); end:;",
    "the address alone": "(void)&__syncthreads;",
    "typeid": "(void)&typeid(waits(1));",
}
#: Twins that do what they did, each in a form like those above.
_DONE = {
    "a block": "{ __syncthreads(); }",
    "beside decltype": "decltype(n) v = n; (void)v; __syncthreads();",
    "beside sizeof": "(void)sizeof(tile[0]); __syncthreads();",
    "beside a constant": "(void)__builtin_constant_p(n); __syncthreads();",
    "beside _Generic": "(void)_Generic(1, int: 2, default: 3); __syncthreads();",
    "the answer of _Generic": "_Generic(1, int: __syncthreads(), default: 1);",
    "a cast": "(void)__syncthreads();",
    "a comma": "(void)0, __syncthreads();",
    "a statement expression": "(void)({ __syncthreads(); 1; });",
}
#: The quick leg takes one of each kind of place.
_QUICK = {"decltype", "_Generic, another answer", "__builtin_constant_p", "__builtin_object_size"} | {
    *("a default argument that is given", "the default of a member", "__builtin_assume", "requires"),
}


@pytest.fixture(scope="module")
def known() -> dict:
    return {}


@pytest.fixture
def judged(known, front_end, judge_of):
    """Judge another text in the barrier's place; the original is read once."""
    if not known:
        known["judge"] = judge_of(_SOURCE)

    def run(old: bytes, new: bytes) -> Meaning:
        assert _SOURCE.count(old) == 1
        return known["judge"].judge(_SOURCE.replace(old, new))

    return run


def _refused(meaning: Meaning) -> set[str]:
    return {verdict.guard for verdict in meaning.verdicts if not verdict.passed}


@pytest.mark.parametrize(
    "way", [pytest.param(w, marks=() if w in _QUICK else pytest.mark.long) for w in _NOT_DONE]
)
def test_a_barrier_that_is_not_done_counts_as_removed(judged, way):
    # Some of the ways warn as well, or are no HIP: then the compiler refuses them.
    assert _refused(judged(_HERE, _NOT_DONE[way].encode())) & {"cooperation", "judged"}


@pytest.mark.parametrize("way", [pytest.param(w, marks=pytest.mark.long) for w in _DONE])
def test_a_barrier_that_is_done_counts(judged, way):
    assert _refused(judged(_HERE, _DONE[way].encode())) == set()


_STORE = b"    tile[threadIdx.x] = q[step * 256 + threadIdx.x];\n    __syncthreads();\n"
_LOAD = b"p[step * 256 + threadIdx.x] = tile[255 - threadIdx.x];\n    " + _HERE
_AT = b"p[step * 256 + threadIdx.x] = "


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_STORE, b"    __syncthreads(); tile[threadIdx.x] = q[step * 256 + threadIdx.x];\n\n"),
        (_LOAD, b"__syncthreads(); " + _AT + b"tile[255 - threadIdx.x];\n"),
        (_LOAD, b"const float& r = tile[255 - threadIdx.x]; __syncthreads(); " + _AT + b"r;\n"),
        (_LOAD, b"auto f = [&](int i) { return tile[i]; }; __syncthreads(); " + _AT + b"f(3);\n"),
        (_LOAD, b"float* r = tile; r += 3; float* s; s = r; __syncthreads(); " + _AT + b"*s;\n"),
        (_STORE, b"    float v = tile[255 - threadIdx.x];" + _STORE.replace(b"\n", b" ") + b"(void)v;\n\n"),
    ],
)
def test_a_barrier_that_moved_over_a_load_or_store_is_found(judged, old, new):
    assert _refused(judged(old, new)) == {"cooperation"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_LOAD, b"{ float v = tile[255 - threadIdx.x]; " + _AT + b"v; } __syncthreads();\n"),
        (_LOAD, b"float v = tile[255 - threadIdx.x]; __syncthreads(); " + _AT + b"v;\n"),
        (_LOAD, b"float* r = tile; " + _AT + b"*(r + 255 - threadIdx.x); __syncthreads();\n"),
        (
            _STORE,
            b"    float v = q[step * 256 + threadIdx.x]; tile[threadIdx.x] = v;\n    __syncthreads();\n",
        ),
    ],
)
def test_what_is_loaded_and_stored_between_the_same_barriers_may_be_written_otherwise(judged, old, new):
    assert _refused(judged(old, new)) == set()
