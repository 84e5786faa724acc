"""Reductions from lane to lane: what is one is proven, hostile twins are refused, and so are other edits.

That the edits leave the same bits is shown on the emulated device (native/tests/test_shuffled_reductions.py).
"""

# ruff: noqa: E501 - a kernel stands on its line

from __future__ import annotations

from pathlib import Path

import pytest

import rpl_testkit
from rpl_optimize.interfaces.transformation import KernelSource, LoopHints, ShuffledReduction
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.judge import MeaningJudge
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits
from rpl_testkit.contracts import assert_transformation
from rpl_transforms.shuffles import ShuffledReductions

pytestmark = pytest.mark.clang

_HEADERS = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"
_BEGIN = "__shared__ float a[1024]; const unsigned t = threadIdx.x; a[t] = in[t]; __syncthreads();"
_END = "out[blockIdx.x] = a[0];"
_HEAD = "for (unsigned s = blockDim.x / 2; s > 0; s >>= 1)"
_ADD = "if (t < s) a[t] += a[t + s];"
_INTS = _BEGIN.replace("float", "int")


def _loop(step: str = f"{_ADD} __syncthreads();", head: str = _HEAD, begin: str = _BEGIN) -> str:
    return f"{begin} {head} {{ {step} }} {_END}"


HARMLESS = {
    "as usual": _loop(),
    "written out": _loop("if (s > threadIdx.x) { a[t] = a[threadIdx.x] + a[s + t]; } __syncthreads();"),
    "barrier in front": _loop(f"__syncthreads(); {_ADD}"),
    "by a number": _loop(head="for (int s = HALF; s != 0; s = s / 2)"),
    "by an argument": _loop(head="for (int s = n; s >= 1; s /= 2)"),
    "by a constant of blockDim": _loop(
        begin=f"const int size = blockDim.x; {_BEGIN}", head="for (size_t s = size / 2; s; s >>= 1)"
    ),
    "the larger": _loop("if (t < s) a[t] = fmaxf(a[t], a[t + s]); __syncthreads();"),
    "the smaller": _loop("if (t < s) a[t] = a[t] < a[t + s] ? a[t] : a[t + s]; __syncthreads();"),
    "a function": _loop("if (t < s) a[t] = added(a[t], a[t + s]); __syncthreads();"),
    "integers, a lot": _loop(
        "if (t < s) a[t] = 3 * a[t] + mixed(a[t + s], n); __syncthreads();", begin=_INTS
    ),
    "signed overflow": _loop("if (t < s) a[t] *= a[t + s]; __syncthreads();", begin=_INTS),
    "in a block of its own": f"{_BEGIN} {{ {_HEAD} {{ {_ADD} __syncthreads(); }} }} {_END}",
    "returns behind": f"{_loop()} if (t > 3) return; out[t] = 1;",
    "numbers of a class": _loop(
        "if (t < s) a[t] += a[t + s] * scales.by + scales.twice(); __syncthreads();",
        begin=f"{_INTS} Scales scales{{3}};",
    ),
    "constructed in front": _loop(begin=f"{_BEGIN} Scales scales{{3}}; a[t] += scales.by;"),
    "lambda that returns": _loop(
        begin=f"auto f = [&](int k) {{ if (k > n) return 1; return 2; }}; {_BEGIN} a[t] += f(t);"
    ),
}
HOSTILE = {
    "volatile": _loop(begin=_BEGIN.replace("float", "volatile float")),
    "early return": _loop(begin=f"if (threadIdx.x > n) return; {_BEGIN}"),
    "leaves by a builtin": _loop(begin=f"{_BEGIN} if (t > n) __builtin_amdgcn_endpgm();"),
    "leaves in a constructor": _loop(begin=f"{_BEGIN} Leaver leaver(n);"),
    "leaves in a destructor of a part": _loop(begin=f"{_BEGIN} {{ Holder holder; }}"),
    "leaves in a function": _loop(begin=f"{_BEGIN} leaves(n);"),
    "assembly in front": _loop(begin=f'{_BEGIN} asm volatile("s_mov_b64 exec, 1");'),
    "goto": f"{_BEGIN} if (t > n) goto end; {_HEAD} {{ {_ADD} __syncthreads(); }} end: {_END}",
    "divergent": f"{_BEGIN} if (t < n) {_HEAD} {{ {_ADD} __syncthreads(); }} {_END}",
    "in a loop that ends for some": f"{_BEGIN} for (unsigned k = 0; k < t; ++k) {_HEAD} {{ {_ADD} __syncthreads(); }} {_END}",
    "barrier for some": _loop("if (t < s) { a[t] += a[t + s]; __syncthreads(); }"),
    "no barrier": f"{_BEGIN} {_HEAD} {_ADD} {_END}",
    "two arrays": _loop(
        "if (t < s) { a[t] += a[t + s]; b[t] += b[t + s]; } __syncthreads();",
        begin=f"__shared__ float b[1024]; {_BEGIN}",
    ),
    "partner of another array": _loop(
        "if (t < s) a[t] += b[t + s]; __syncthreads();", begin=f"__shared__ float b[1024]; {_BEGIN}"
    ),
    "to another array": _loop(
        "if (t < s) b[t] = a[t] + a[t + s]; __syncthreads();", begin=f"__shared__ float b[1024]; {_BEGIN}"
    ),
    "other readers": _loop("if (t < s) a[t] += a[t + s]; out[t] = a[t / 2]; __syncthreads();"),
    "reader behind the barrier": _loop(f"{_ADD} __syncthreads(); out[t] += a[0];"),
    "another tree": _loop("if (t < s) a[t] += a[2 * t + s]; __syncthreads();"),
    "from the other end": _loop("if (t < s) a[t] += a[2 * s - 1 - t]; __syncthreads();"),
    "neighbours first": _loop(
        head="for (unsigned s = 1; s < blockDim.x; s *= 2)",
        step="if (t % (2 * s) == 0) a[t] += a[t + s]; __syncthreads();",
    ),
    "to the partner": _loop("if (t < s) a[t + s] += a[t]; __syncthreads();"),
    "three elements": _loop("if (t < s) a[t] = a[t + s] + a[t + 2 * s]; __syncthreads();"),
    "one more": _loop("if (t < s) a[t] += a[t + s + 1]; __syncthreads();"),
    "element of an element": _loop("if (t < s) a[t] += a[t + s] + a[a[t]]; __syncthreads();", begin=_INTS),
    "all of them": _loop("a[t] += a[t + s]; __syncthreads();"),
    "up to the step": _loop("if (t <= s) a[t] += a[t + s]; __syncthreads();"),
    "others, too": _loop("if (t < s || t == n) a[t] += a[t + s]; __syncthreads();"),
    "else": _loop("if (t < s) a[t] += a[t + s]; else a[t] = 0; __syncthreads();"),
    "down to 32": _loop(head="for (unsigned s = blockDim.x / 2; s > 32; s >>= 1)"),
    "by thirds": _loop(head="for (unsigned s = blockDim.x / 2; s > 0; s /= 3)"),
    "two halves at once": _loop(head="for (unsigned s = blockDim.x / 2; s > 0; s >>= 2)"),
    "halved twice": _loop(f"{_ADD} __syncthreads(); s /= 2;"),
    "halved by a reference": _loop(
        head="for (unsigned s = blockDim.x / 2; s > 0; s >>= 1)", step=f"{_ADD} __syncthreads(); shrink(s);"
    ),
    "depends on the step": _loop("if (t < s) a[t] += a[t + s] * s; __syncthreads();"),
    "first step of its own": _loop(head="for (unsigned s = t; s > 0; s >>= 1)"),
    "first step out of memory": _loop(head="for (unsigned s = in[t]; s > 0; s >>= 1)"),
    "another work-item": _loop(begin=_BEGIN.replace("= threadIdx.x", "= threadIdx.x ^ 1")),
    "work-item that changes": _loop(
        begin=f"unsigned t = threadIdx.x; {_BEGIN.replace('const unsigned t = threadIdx.x;', '')} t ^= 32;"
    ),
    "work-item in a byte": _loop(begin=_BEGIN.replace("unsigned t", "unsigned char t")),
    "work-item of y": _loop(begin=_BEGIN.replace("threadIdx.x", "threadIdx.y")),
    "step in a byte": _loop(head="for (unsigned char s = blockDim.x / 2; s > 0; s >>= 1)"),
    "index in a byte": _loop("if (t < s) a[t] += a[(unsigned char)(t + s)]; __syncthreads();"),
    "sum of products": _loop("if (t < s) a[t] = a[t] * 0.5f + a[t + s]; __syncthreads();"),
    "product of sums in a function": _loop("if (t < s) a[t] = half(a[t], a[t + s]); __syncthreads();"),
    "sum of products of integers": _loop(
        "if (t < s) a[t] = a[t] * 0.5f + a[t + s]; __syncthreads();", begin=_INTS
    ),
    "element by another name": _loop(
        "if (t < s) a[t] += a[t + s] + (t == 0 ? named.r : 0); __syncthreads();",
        begin=f"{_INTS} Named named{{a[0]}};",
    ),
    "element by a method": _loop(
        "if (t < s) a[t] += a[t + s] + (t == 0 ? named.get() : 0); __syncthreads();",
        begin=f"{_INTS} Named named{{a[0]}};",
    ),
    "counts": _loop("if (t < s) a[t] += a[t + s] + n++; __syncthreads();", begin=_INTS),
    "loads": _loop("if (t < s) a[t] += a[t + s] + in[t]; __syncthreads();", begin=_INTS),
    "loads in a function": _loop("if (t < s) a[t] = loaded(a[t], a[t + s]); __syncthreads();", begin=_INTS),
    "keeps in a function": _loop("if (t < s) a[t] = kept(a[t], a[t + s]); __syncthreads();", begin=_INTS),
    "changes its argument": _loop("if (t < s) a[t] = taken(a[t], a[t + s]); __syncthreads();", begin=_INTS),
    "asks other lanes": _loop("if (t < s) a[t] += __shfl_down(a[t + s], 1); __syncthreads();", begin=_INTS),
    "lambda that takes all": _loop(
        "if (t < s) a[t] = f(a[t], a[t + s]); __syncthreads();",
        begin=f"{_INTS} auto f = [&](int x, int y) {{ return x + y + n; }};",
    ),
    "atomic": _loop(
        "if (t < s) __hip_atomic_fetch_add(&a[t], a[t + s], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); __syncthreads();"
    ),
    "memory of the grid": _loop("if (t < s) out[t] += out[t + s]; __syncthreads();"),
    "by a pointer": _loop(
        "if (t < s) b[t] += b[t + s]; __syncthreads();", begin=f"{_BEGIN} float* b = a + n;"
    ),
    "small elements": _loop(begin=_BEGIN.replace("float", "_Float16")),
    "fence only": _loop(f"{_ADD} __threadfence_block();"),
    "barrier of its own": _loop(f"{_ADD} wait();"),
    "two barriers": _loop(f"{_ADD} __syncthreads(); __syncthreads();"),
    "macro": _loop("STEP __syncthreads();"),
    "macro that names the element": _loop("if (t < s) a[t] += PARTNER; __syncthreads();"),
    "directive": _loop(f"\n#if 1\n{_ADD}\n#endif\n __syncthreads();"),
    "index of its own": _loop(begin=f"unsigned hipThreadIdx_x = 3; {_BEGIN} a[hipThreadIdx_x] = 1;"),
    "step of outside": f"{_BEGIN} unsigned s; for (s = blockDim.x / 2; s > 0; s >>= 1) {{ {_ADD} __syncthreads(); }} out[0] = s;",
}
_HELPERS = """#define HALF 512
#define STEP if (t < s) a[t] += a[t + s];
#define PARTNER a[t + s]
__device__ float added(float x, const float& y) { return x + y; }
__device__ int mixed(int x, int y) { int z = x; z ^= y << 3; if (z > 9) return z * 7; return z; }
__device__ float half(float x, float y) { return 0.5f * (x + y); }
__device__ int word;
__device__ int loaded(int x, int y) { return x + y + word; }
__device__ int kept(int x, int y) { static int z; return z += x + y; }
__device__ int taken(int& x, int y) { x = y; return x; }
__device__ void leaves(int n) { if (threadIdx.x > n) __builtin_amdgcn_endpgm(); }
struct Named { int& r; __device__ int get() const { return r; } };
struct Scales { int by; __device__ int twice() const { return 2 * by; } };
struct Leaver { __device__ Leaver(int n) { leaves(n); } };
struct Ending { __device__ ~Ending() { leaves(3); } };
struct Holder { Ending ending; };
__device__ void shrink(unsigned& s) { s /= 2; }
__device__ void wait() { __syncthreads(); }
"""


def _text(bodies: dict[str, str]) -> str:
    kernels = (
        f"__global__ void k{number}(float* out, const float* in, int n) {{\n  {body}\n}}"
        for number, body in enumerate(bodies.values())
    )
    return "#include <hip/hip_runtime.h>\n" + _HELPERS + "\n".join(kernels) + "\n"


def _read(rpl_require, folder: Path, text: str, *options: str) -> CompilerReading:
    path = folder / "kernels.hip"
    path.write_text(text, encoding="utf-8")
    words = (
        "-x",
        "hip",
        "--offload-arch=gfx942",
        "-nogpuinc",
        "-nogpulib",
        "-O3",
        "-I",
        str(_HEADERS),
        *options,
    )
    front_end = FrontEnd((str(rpl_require("clang++-22")), *words), path, path, folder)
    return CompilerReading(front_end, text.encode())


def _offered(text: str, reading: CompilerReading):
    source = KernelSource("kernels.hip", text.encode(), reading=reading)
    return {str(one.kernel): one for one in ShuffledReductions().propose(source)}


def test_hostile_kernels_are_refused(rpl_require, tmp_path):
    text = _text(HOSTILE)
    offered = _offered(text, _read(rpl_require, tmp_path, text))
    named = {what: offered[f"k{number}"] for number, what in enumerate(HOSTILE)}
    assert {what for what, one in named.items() if one.allowed or one.edits} == set()
    # Each for a reason of its own, none for what its neighbours in the file say.
    reasons = {what: one.guards[0].reason for what, one in named.items()}
    assert {what: why for what, why in reasons.items() if "compile" in why or "no such" in why} == {}
    unlike = {what for what, why in reasons.items() if why.startswith("no loop of it")}
    assert unlike == {
        "no barrier",
        "neighbours first",
        "by thirds",
        "two halves at once",
        "fence only",
        "barrier of its own",
    }
    assert len(set(reasons.values())) > 20


def test_harmless_twins_are_offered_and_pass_the_judge(rpl_require, tmp_path):
    text = _text(HARMLESS)
    reading = _read(rpl_require, tmp_path, text, "-Wall", "-Wextra")
    assert_transformation(ShuffledReductions(), KernelSource("kernels.hip", text.encode(), reading=reading))
    offered = _offered(text, reading)
    named = {what: offered[f"k{number}"] for number, what in enumerate(HARMLESS)}
    assert {what: one.guards for what, one in named.items() if not one.allowed} == {}
    judge = MeaningJudge(reading.front_end, text.encode())
    for what in ("barrier in front", "integers, a lot"):
        edited = apply_edits(text.encode(), named[what].edits)
        assert edited.count(b"\n") == text.encode().count(b"\n")
        meaning = judge.judge(edited, named[what].declares)
        assert meaning.passed, (what, [verdict for verdict in meaning.verdicts if not verdict.passed])


_EDITED = _text({"": _loop()})


@pytest.fixture
def judged(rpl_require, tmp_path):
    """``judged(b"old", b"new")``: what refuses the edit with that change in it, and declared as it is."""
    reading = _read(rpl_require, tmp_path, _EDITED)
    judge = MeaningJudge(reading.front_end, _EDITED.encode())
    one = _offered(_EDITED, reading)["k0"]
    edited = apply_edits(_EDITED.encode(), one.edits)

    def judged(old=b"", new=b"", declares=one.declares):
        assert old in edited
        meaning = judge.judge(edited.replace(old, new, 1) if old else edited, declares)
        return {verdict.guard: verdict.reason for verdict in meaning.verdicts if not verdict.passed}

    return judged


_WRONG = (
    (b"rpl_by = rpl_wave / 2", b"rpl_by = rpl_wave / 4"),
    (b"blockDim.y * blockDim.z != 1", b"false"),
    (b"if (rpl_item < rpl_last) a[t]", b"a[t]"),
    (b"out[blockIdx.x] = a[0]", b"out[blockIdx.x] = a[1]"),
)


def test_only_the_one_text_passes_and_only_as_it_is_declared(judged):
    assert judged() == {}
    assert "declared" in judged(*_WRONG[0])
    assert "cooperation" in judged(declares=())
    begin = _EDITED.index("for (unsigned s")
    assert "another loop" in judged(declares=(ShuffledReduction(begin + 1),))["declared"]


@pytest.mark.long
def test_other_texts_and_declarations_are_refused(judged):
    for old, new in _WRONG[1:]:
        assert "declared" in judged(old, new), new
    assert {"cooperation", "declared"} & judged(declares=(LoopHints(),)).keys()


def test_sums_in_another_order_are_refused(rpl_require, tmp_path):
    for text, options in (
        (_EDITED, ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")),
        (_EDITED.replace("__global__", "#pragma clang fp reassociate(on)\n__global__", 1), ()),
    ):
        (guard,) = _offered(text, _read(rpl_require, tmp_path, text, *options))["k0"].guards
        assert "another order" in guard.reason
    for pragma in ("#pragma clang fp reassociate(on)", '_Pragma("clang fp reassociate(on)")'):
        (tmp_path / "ordered.h").write_text(f"{pragma}\n")
        text = _EDITED.replace("__global__", '#include "ordered.h"\n__global__', 1)
        (guard,) = _offered(text, _read(rpl_require, tmp_path, text))["k0"].guards
        assert "another order" in guard.reason
    whole = _EDITED.replace("float a[", "int a[")
    assert _offered(whole, _read(rpl_require, tmp_path, whole, "-ffast-math"))["k0"].allowed


def test_a_name_that_is_taken_refuses(rpl_require, tmp_path):
    used = _loop("if (t < s) a[t] += a[t + s] + rpl_own; __syncthreads();", begin=_INTS)
    bodies = {
        "in the loop": f"const int rpl_own = 3; {used}",
        "elsewhere": f"const int rpl_own = 3; {_loop()}",
    }
    text = _text(bodies)
    one, other = _offered(text, _read(rpl_require, tmp_path, text)).values()
    assert [guard.guard for guard in one.guards if not guard.passed] == ["tree-reduction"]
    assert other.allowed, "the new block has variables of its own"
    path = tmp_path / "words.h"
    path.write_text("#define rpl_wave t\n")
    for word in ("#define rpl_wave t", '#include "words.h"'):
        text = _EDITED.replace("__global__", f"{word}\n__global__", 1)
        assert not _offered(text, _read(rpl_require, tmp_path, text))["k0"].allowed


@pytest.mark.parametrize("word", ["x y", "blockIdx threadIdx"])
def test_an_index_that_is_another_one_refuses(rpl_require, tmp_path, word):
    text = _text({"": _loop(head="for (unsigned s = blockIdx.x; s > 0; s >>= 1)")})
    assert _offered(text, _read(rpl_require, tmp_path, text))["k0"].allowed
    text = text.replace("__global__", f"#define {word}\n__global__", 1)
    assert not _offered(text, _read(rpl_require, tmp_path, text))["k0"].allowed
    if word == "x y":
        (tmp_path / "words.h").write_text(f"#define {word}\n")
        text = text.replace(f"#define {word}", '#include "words.h"', 1)
        assert not _offered(text, _read(rpl_require, tmp_path, text))["k0"].allowed


def test_every_instance_of_a_template_has_to_be_one(rpl_require, tmp_path):
    kernel = (
        "template <class T> __global__ void k0(float* out, const float* in, int n) { "
        + _loop().replace("float a[", "T a[")
        + " }\n"
    )
    text = (
        "#include <hip/hip_runtime.h>\n"
        + kernel
        + "template __global__ void k0<float>(float*, const float*, int);\n"
    )
    assert _offered(text, _read(rpl_require, tmp_path, text))["k0"].allowed
    text += "template __global__ void k0<short>(float*, const float*, int);\n"
    assert not _offered(text, _read(rpl_require, tmp_path, text))["k0"].allowed


def test_without_a_compiler_nothing_is_offered():
    for reading in (None, CompilerReading("no HIP compiler is installed", b"")):
        source = KernelSource("k.hip", _EDITED.encode(), reading=reading)
        (one,) = ShuffledReductions().propose(source)
        assert (one.allowed, one.edits) == (False, ())
