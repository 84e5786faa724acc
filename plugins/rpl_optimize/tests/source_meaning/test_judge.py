"""Edits that mean what they seem to mean pass; those that only look like it are refused, by their guard."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import pytest

from rpl_optimize.interfaces.transformation import (
    LaunchBounds,
    LoopHints,
    ResizedArray,
    RestrictedParameter,
    StreamedStores,
)
from rpl_optimize.loop.meaning import SessionMeaning, instances_of
from rpl_optimize.source_meaning.front_end import FrontEnd, _preamble_length, front_end_of, line_directive
from rpl_optimize.source_meaning.judge import Meaning, MeaningJudge
from rpl_optimize.source_meaning.streams import with_assignments

pytestmark = pytest.mark.clang

_SOURCE = b"""#include <hip/hip_runtime.h>
#define DO(x) _Pragma(#x)
#define CLOSE }
#define OPEN extern "C" {
namespace a { __device__ int f(int x) { return x + 1; } }
namespace b { __device__ int f(int x) { __syncthreads(); return x + 2; } }
struct Sync { __device__ ~Sync() { __syncthreads(); } };
template <typename T> __device__ void twice(T work) { work(1); work(2); }
__device__ void step() { for (int i = 0; i < 3; ++i) __threadfence(); }
__global__ void other(int* p) { p[0] = __LINE__; }
namespace one {
__global__ void k(float* p, const float* q, int n) {
  __shared__ float tile[32][32];
  volatile float* seen = p;
  tile[threadIdx.x][0] = q[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < n; ++i) p[i] += a::f(i) * tile[i][0];
  if (n > 3) atomicAdd(p, 1.0f);
  asm volatile("s_nop 0");
  seen[0] = 2.0f;
}
}
namespace two { __global__ void k(float* p, const float* q, int n) { p[0] = q[n]; } }
template <typename T> __global__ void many(T* p, int n) { for (int i = 0; i < n; ++i) p[i] = b::f(i); }
template __global__ void many<int>(int*, int);
template __global__ void many<float>(float*, int);
__global__ void last(int* p) { p[0] = __LINE__; }
"""
_LOOP = b"p[i] += a::f(i) * tile[i][0];"


@pytest.fixture(scope="module")
def judge(tmp_path_factory, request):
    return {}


@pytest.fixture
def judged(judge, judge_of):
    """Judge a replacement in the source, which is read once for all tests."""
    if not judge:
        judge["it"] = judge_of(_SOURCE)

    def run(old: bytes, new: bytes, *declared, count: int = 1) -> Meaning:
        assert _SOURCE.count(old) >= count
        found: Meaning = judge["it"].judge(_SOURCE.replace(old, new, count), declared)
        return found

    return run


def _refused(meaning: Meaning) -> dict[str, str]:
    return {verdict.guard: verdict.reason for verdict in meaning.verdicts if not verdict.passed}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_LOOP, b"{ float t = a::f(i); p[i] += t * tile[i][0]; }"),
        (_LOOP, b"p[i] += a::f(i) * fmaf(tile[i][0], 1.0f, 0.0f);"),
        (
            b"  for (int i = 0; i < n; ++i) " + _LOOP,
            b"  for (int j = 0; j < n; ++j) p[j] += (j + 1) * tile[j][0];",
        ),
        (b"  for (int i = 0; i < n; ++i) p", b"#pragma unroll 4\n  for (int i = 0; i < n; ++i) p"),
        (b"__shared__ float tile[32][32];", b"__shared__ float tile[32][33]; __shared__ float more[4];"),
        (_LOOP, b"p[i] += [&](int j) { return tile[j][0] * (j + 1); }(i);  // #1: a comment"),
    ],
)
def test_a_rewritten_body_passes(judged, old, new):
    meaning = judged(old, new)
    if b"\n" in new:
        assert set(_refused(meaning)) == {"outside"}, "last() shows its line"
    else:
        assert _refused(meaning) == {}
    assert meaning.mangled == ("_ZN3one1kEPfPKfi",)


@pytest.mark.parametrize(
    "new",
    [
        b"",
        b"while (false) __syncthreads();",
        b"auto __syncthreads = [] {}; __syncthreads();",
        b"if (n > 3) __syncthreads();",
        pytest.param(b"__syncthreads(); __syncthreads();", marks=pytest.mark.long),
        pytest.param(b"n > 3 ? __syncthreads() : void();", marks=pytest.mark.long),
        b"(void)(n > 3 && (__syncthreads(), true));",
        pytest.param(b"if (n == 7) return; __syncthreads();", marks=pytest.mark.long),
        b"{ auto sync = &b::f; sync(1); }",
        b"struct S { __device__ void __syncthreads() {} } s; s.__syncthreads();",
        b"__syncthreads(); { Sync at_the_end; }",
        b"__syncthreads(); twice([](int) { __threadfence(); });",
        pytest.param(b"__syncthreads(); p[0] = __shfl(p[0], 1);", marks=pytest.mark.long),
        pytest.param(b'__syncthreads(); asm("s_nop 1");', marks=pytest.mark.long),
        pytest.param(b"__syncthreads(); *(volatile int*)p = 3;", marks=pytest.mark.long),
        pytest.param(b"__syncthreads(); new int(3);", marks=pytest.mark.long),
        pytest.param(b"__syncthreads(); __builtin_trap();", marks=pytest.mark.long),
        pytest.param(b"__syncthreads(); int (*g)(int) = &a::f; p[0] = g(1);", marks=pytest.mark.long),
    ],
)
def test_what_work_items_do_together_stays(judged, new):
    assert set(_refused(judged(b"__syncthreads();\n  for", new + b"\n  for"))) == {"cooperation"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a::f(i)", b"b::f(i)"),
        (b"if (n > 3) atomicAdd", b"if (n > 4) atomicAdd"),
        (b"s_nop 0", b"s_nop 1"),
        (b"volatile float* seen", b"float* seen"),
        (b"p[i] = b::f(i)", b"p[i] = a::f(i)"),
    ],
)
def test_a_changed_operation_is_refused(judged, old, new):
    assert set(_refused(judged(old, new))) == {"cooperation"}


@pytest.mark.parametrize(
    ("guard", "new"),
    [
        ("directives", _LOOP + b"\n#include </etc/passwd>\n"),
        ("directives", _LOOP + b"\n/* */ # \\\n define q p\n"),
        ("directives", _LOOP + b"\n%:define q p\n"),
        ("directives", _LOOP + b"\n??=define q p\n"),
        ("directives", _LOOP + b" { DO(clang fp contract(off)) p[0] = 1; }"),
        ("attributes", b"[[clang::noinline]] " + _LOOP),
        ("judged", b"p[i] += unknown(i);"),
        ("judged", b"p[i] += i / 0;"),
        ("outside", b"p[i] += 1;\n\n"),
    ],
)
def test_what_reaches_beyond_the_body_is_refused(judged, guard, new):
    assert guard in _refused(judged(_LOOP, new))


_END = b"seen[0] = 2.0f;"


@pytest.mark.parametrize(
    "new",
    [
        _END + b" } struct E { int x; }; __global__ void x(int* p) { p[0] = 1;",
        _END + b" } } namespace one { __device__ int g() { return 1;",
        _END + b" CLOSE struct E { E() {} } e; OPEN",
    ],
)
def test_a_reply_that_is_more_than_the_kernel_is_refused(judged, new):
    assert set(_refused(judged(_END, new))) == {"declaration"}


@pytest.mark.parametrize(
    ("guard", "old", "new"),
    [
        (
            "declaration",
            b"k(float* p, const float* q, int n) {\n",
            b"k(float* p, const float* q, long n) {\n",
        ),
        (
            "declaration",
            b"k(float* p, const float* q, int n) {\n",
            b"k(float* __restrict__ p, const float* q, int n) {\n",
        ),
        ("declaration", b"void k(", b"void l("),
        ("attributes", b"__global__ void k(", b"__global__ __launch_bounds__(64) void k("),
        ("declaration", b"return x + 1;", b"return x + 2;"),
    ],
)
def test_the_head_and_other_functions_stay(judged, guard, old, new):
    assert guard in _refused(judged(old, new))


_HINTED = b'_Pragma("unroll 4") for (int i = 0; i < n; ++i) p[i]'


@pytest.mark.parametrize(
    ("old", "new", "declared"),
    [
        (b"for (int i = 0; i < n; ++i) p[i] +=", _HINTED + b" +=", LoopHints()),
        (b"for (int i = 0; i < n; ++i) p[i] = b", _HINTED + b" = b", LoopHints()),
        (b"for (int i = 0; i < 3; ++i)", b'_Pragma("unroll 4") for (int i = 0; i < 3; ++i)', LoopHints()),
        (b"__global__ void k(", b"__global__ __launch_bounds__(64) void k(", LaunchBounds(64)),
        (b"k(float* p,", b"k(float* __restrict__ p,", RestrictedParameter("p")),
        (b"tile[32][32]", b"tile[32][33]", ResizedArray("tile")),
    ],
)
def test_a_declared_change_passes_alone(judged, old, new, declared):
    assert _refused(judged(old, new, declared)) == {}
    both = judged(old, new.replace(b"p[i]", b"p[i + 1]").replace(b"[33]", b"[33 + n]"), declared)
    changed = new.replace(b"p[i]", b"p[i + 1]").replace(b"[33]", b"[33 + n]") != new
    assert (_refused(both) != {}) is changed


def test_another_factor_in_a_hint_is_no_new_hint(judge_of):
    hinted = _SOURCE.replace(b"for (int i = 0; i < n; ++i) p[i] +=", _HINTED + b" +=")
    judge = judge_of(hinted)
    other = hinted.replace(b"unroll 4", b"unroll 8")
    assert other != hinted
    assert _refused(judge.judge(other, (LoopHints(0),))) == {}
    assert "declared" in _refused(judge.judge(other, (LoopHints(),)))


def test_a_hint_in_a_lambda_is_one(judge_of):
    """The compiler's tree has the body of a lambda twice."""
    source = _SOURCE.replace(
        b"  if (n > 3) atomicAdd",
        b"  [&] { for (int i = 0; i < n; ++i) p[i] += 1.0f; }();\n  if (n > 3) atomicAdd",
    )
    hinted = source.replace(b"{ for (int i = 0; i < n; ++i) p[i] += 1.0f", b"{ " + _HINTED + b" += 1.0f")
    assert hinted != source != _SOURCE
    assert _refused(judge_of(source).judge(hinted, (LoopHints(),))) == {}


@pytest.mark.parametrize(
    ("old", "new", "declared"),
    [
        (b"++i) p[i] +=", b"++i) p[i] -=", LoopHints()),
        (b"  for (int i = 0; i < n", b'  // _Pragma("unroll 4") \n  for (int i = 0; i < n', LoopHints()),
        (b"__global__ void k(", b"__global__ __launch_bounds__(128) void k(", LaunchBounds(64)),
        (
            b"k(float* p, const float* q",
            b"k(float* __restrict__ p, const float* __restrict__ q",
            RestrictedParameter("p"),
        ),
        (b"tile[32][32]", b"tile[32][33]", ResizedArray("other")),
    ],
)
def test_more_or_less_than_what_was_declared_is_refused(judged, old, new, declared):
    assert "declared" in _refused(judged(old, new, declared))


def test_edits_with_the_same_words_are_judged_without_the_headers(judge_of):
    judge = judge_of(_SOURCE)
    hinted = _SOURCE.replace(
        b"  for (int i = 0; i < n; ++i) p", b'  _Pragma("unroll 4") for (int i = 0; i < n; ++i) p'
    )
    assert _refused(judge.judge(hinted, (LoopHints(),))) == {}
    assert {behind for _, behind in judge.original._readings} == {True}
    # The tree is the same but for the name's own declaration, which a tree does not tell.
    other = hinted.replace(b"a::f(i) *", b"b::f(i) *")
    assert set(_refused(judge.judge(other, (LoopHints(),)))) == {"cooperation"}
    assert {behind for _, behind in judge.original._readings} == {True, False}


@pytest.mark.parametrize(
    ("new", "guards"),
    [
        (b"__builtin_nontemporal_store(q[n], &p[0]);", set()),
        (b"{ __builtin_nontemporal_store(q[n], &p[0]); }", {"declared"}),
        (b"__builtin_nontemporal_store(q[n], &p[1]);", {"declared"}),
        (b"__builtin_nontemporal_store(p[n], &p[0]);", {"declared"}),
        (b"__builtin_nontemporal_store(q[n], &p[0]), p[0] = q[n];", {"declared"}),
        (b"__builtin_nontemporal_store(q[n], p);", {"declared"}),
        (b"__builtin_nontemporal_store(q[n], (int*)&p[0]);", {"declared"}),
        (b"__builtin_nontemporal_store(q[n], (volatile float*)&p[0]);", {"declared", "cooperation"}),
        (b"__builtin_nontemporal_store(q[n] + 1, &p[0]);", {"declared"}),
        (b"p[0] = q[n] ;", {"declared"}),
    ],
)
def test_a_store_past_the_caches_is_the_assignment_that_it_stands_for(judged, new, guards):
    refused = set(_refused(judged(b"p[0] = q[n];", new, StreamedStores(1))))
    assert refused == set() if not guards else "declared" in refused


def test_a_store_whose_value_changes_its_place_is_no_assignment(judge_of):
    """C++ computes the value first for an assignment, and either first for a call."""
    text = _SOURCE.replace(b"p[0] = q[n];", b"p[n] = (n = 3);")
    new = text.replace(b"p[n] = (n = 3);", b"__builtin_nontemporal_store((n = 3), &p[n]);")
    assert _refused(judge_of(text).judge(new, (StreamedStores(1),))).keys() & {"declared", "judged"}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (b"__builtin_nontemporal_store(a, &p[i]);", b"p[i] = a;"),
        (b"x(__builtin_nontemporal_store(f(a, b), &p[g(i, j)]))", b"x(p[g(i, j)] = f(a, b))"),
        (b"__builtin_nontemporal_store(a", b"__builtin_nontemporal_store(a"),
        (b"my__builtin_nontemporal_store(a, &b)", b"my__builtin_nontemporal_store(a, &b)"),
    ],
)
def test_the_words_of_a_store_are_those_of_the_assignment(text, written):
    assert with_assignments(text) == written


@pytest.mark.parametrize(
    ("text", "length"),
    [
        (b"int a;\n", 0),
        (b'#include "a"\nint b;\n#include "c"\nint d;', len(b'#include "a"\nint b;\n#include "c"\n')),
        (b'#if A\n#include "a"\n#endif\nint b;', len(b'#if A\n#include "a"\n#endif\n')),
        (b'#if A\n#include "a"\nint b;', 0),
        (b'#include "a"\n__global__ void k();\n#include "b"\n', len(b'#include "a"\n')),
    ],
)
def test_a_preamble_ends_with_the_last_header_before_a_function_of_the_device(text, length):
    assert _preamble_length(text) == length


def test_an_edit_before_the_functions_and_a_source_without_headers_are_read_whole(front_end: FrontEnd):
    text = b"__attribute__((global)) void k(int* p, int n) { for (int i = 0; i < n; ++i) p[i] = 3; }\n"
    front_end.source.write_bytes(text)
    judge = MeaningJudge(front_end, text)
    hinted = text.replace(b"for (", b'_Pragma("unroll 4") for (')
    assert _refused(judge.judge(hinted, (LoopHints(),))) == {}
    assert {behind for _, behind in judge.original._readings} == {False}


def test_line_numbers_behind_the_kernel_are_kept_by_a_line_directive(judged):
    end = _SOURCE.index(b"  seen[0] = 2.0f;\n}") + len(b"  seen[0] = 2.0f;\n}")
    kept = b"  seen[0] = \n\n2.0f;\n}" + line_directive(_SOURCE, end)
    assert _refused(judged(b"  seen[0] = 2.0f;\n}", kept)) == {}
    wrong = kept.replace(b"#line ", b"#line 1")
    assert "directives" in _refused(judged(b"  seen[0] = 2.0f;\n}", wrong))


def test_of_two_kernels_of_one_name_the_edited_one_is_named(judged):
    assert judged(b"p[0] = q[n];", b"p[0] = q[n] + 1;").mangled == ("_ZN3two1kEPfPKfi",)


def test_every_instance_of_a_template_is_named(judged):
    meaning = judged(b"p[i] = b::f(i);", b"{ p[i] = b::f(i); }")
    assert meaning.passed
    assert {"_Z4manyIfEvPT_i", "_Z4manyIiEvPT_i"} <= set(meaning.mangled)


def test_a_kernel_in_a_header_is_judged_where_it_is_included(front_end: FrontEnd):
    header = front_end.source.with_name("kernel.h")
    text = b"__global__ void k(int* p) { p[0] = 1; __syncthreads(); }\n"
    header.write_bytes(text)
    front_end.source.write_bytes(b'#include <hip/hip_runtime.h>\n#include "kernel.h"\n')
    judge = MeaningJudge(attrs.evolve(front_end, source=header), text)
    assert judge.judge(text.replace(b"= 1", b"= 2")).passed
    assert set(_refused(judge.judge(text.replace(b"__syncthreads();", b"")))) == {"cooperation"}


def test_without_a_compiler_every_edit_is_refused_with_the_reason(front_end: FrontEnd):
    front_end.source.write_bytes(_SOURCE)
    missing = attrs.evolve(front_end, words=("no-such-compiler",))
    reasons = _refused(MeaningJudge(missing, _SOURCE).judge(_SOURCE.replace(b"a::f(i)", b"1")))
    assert "no-such-compiler can't be started" in reasons["judged"]
    why = front_end_of((("make", "app"),), front_end.source, front_end.directory)
    assert why == "no command of the build names kernels.hip, so its options are not known"
    assert _refused(MeaningJudge(why, _SOURCE).judge(_SOURCE)) == {"judged": why}


def test_messages_about_other_files_are_not_repeated(judged):
    reasons = _refused(judged(_LOOP, b"p[i] = threadIdx.nothing;"))
    assert "line 17" in reasons["judged"]
    assert "nothing" in reasons["judged"]


def test_the_options_of_the_build_are_taken_without_inputs_and_outputs(front_end: FrontEnd):
    build = ("hipcc", "-O3", "--offload-arch=gfx942", "--offload-arch=gfx90a", "-I", "inc", "-DN=3", "-c")
    rest = ("/scratch/source/kernels.hip", "-o", "/scratch/bin/app", "-lm", "other.o", "-MF", "deps")
    found = front_end_of(((*build, *rest), ("ld", "x.o")), front_end.source, front_end.directory)
    assert isinstance(found, FrontEnd)
    assert found.words == ("hipcc", "-O3", "--offload-arch=gfx942", "-I", "inc", "-DN=3")


def test_instances_that_other_sources_make_are_judged_by_the_program(front_end: FrontEnd):
    """Only an instance tells what ``T`` does: one of them waits for the others."""
    text = _SOURCE.replace(b"template __global__ void many<", b"// void many<")
    text += b"struct Waits { __device__ Waits& operator=(int) { __syncthreads(); return *this; } };\n"
    front_end.source.write_bytes(text)
    kernels = [
        SimpleNamespace(name=name) for name in ("_Z4manyIfEvPT_i", "_Z4manyI5WaitsEvPT_i", "_Z4lastPi")
    ]
    build = SimpleNamespace(code_objects=(SimpleNamespace(kernels=kernels),))
    meaning = SessionMeaning.__new__(SessionMeaning)
    meaning._unknown, meaning._judge, meaning._of_templates = None, MeaningJudge(front_end, text), {}
    same, twice = (
        text.replace(b"p[i] = b::f(i);", new)
        for new in (b"{ p[i] = b::f(i); }", b"p[i] = b::f(i), p[0] = 1;")
    )
    meaning._code_objects = ()
    (refused,) = (guard.reason for guard in meaning.judge(same, ()) if not guard.passed)
    assert refused == "no instance of this template is compiled, so its calls are unknown"
    meaning._of_templates.clear()
    meaning._code_objects = build.code_objects
    assert all(guard.passed for guard in meaning.judge(same, ()))
    (refused,) = (guard.guard for guard in meaning.judge(twice, ()) if not guard.passed)
    assert refused == "cooperation", "what waits is done once more in one instance"
    assert instances_of("last", build.code_objects) == {}


@pytest.mark.parametrize(
    ("guard", "new"),
    [
        ("directives", b"p[i] += __TIME__[7] == '3';"),
        ("directives", b"p[i] += __DA\\\nTE__[0];"),
        ("directives", b"p[i] += __TIMESTAMP__[0];"),
        ("directives", b"p[i] += __COUNTER__;"),
        ("directives", b"p[i] += __FILE__[0] + __LINE__;"),
        ("directives", b"p[i] += __builtin_LINE();"),
        ("judged", b"p[i] += NOW[7] == '3';"),
    ],
)
def test_an_edit_may_not_ask_when_or_where_it_is_compiled(front_end, judge_of, guard, new):
    """``-w`` of the user's build hides nothing from the judge."""
    text = _SOURCE.replace(b"#define CLOSE }", b"#define CLOSE }\n#define NOW __TIME__")
    front_end.source.write_bytes(text)
    judge = MeaningJudge(attrs.evolve(front_end, words=(*front_end.words, "-w")), text)
    assert guard in _refused(judge.judge(text.replace(_LOOP, new)))


@pytest.mark.parametrize(
    "new",
    [
        b"{ float* __restrict__ r = p; r[i] += a::f(i) * tile[i][0]; }",
        b"{ using R = float* __restrict; R r = p; r[i] += a::f(i) * tile[i][0]; }",
        b"[&](float* __restrict__ r) { r[i] += a::f(i) * tile[i][0]; }(p);",
        b"{ struct { float* __restrict__ r; } s{p}; s.r[i] += a::f(i) * tile[i][0]; }",
    ],
)
def test_a_pointer_of_the_body_gets_no_restrict(judged, new):
    assert "attributes" in _refused(judged(_LOOP, new))


def test_a_restrict_that_was_there_may_stay(judge_of):
    text = _SOURCE.replace(
        b"volatile float* seen = p;", b"volatile float* seen = p; float* __restrict__ r = p;"
    )
    text = text.replace(b"k(float* p,", b"k(float* __restrict__ p,")
    changed = text.replace(_LOOP, b"[=] { r[i] += (i + 1) * p[i]; }();")
    assert changed != text
    assert _refused(judge_of(text).judge(changed)) == {}
