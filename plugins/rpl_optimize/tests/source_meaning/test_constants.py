"""Constants that launches follow can be tuned; those that mean something else to the host can't."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rpl_optimize.interfaces.source_reading import Constant
from rpl_optimize.interfaces.transformation import TunedConstants
from rpl_optimize.source_meaning.constants import Retuned, judge_constants
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.source_meaning.unit import Original

pytestmark = pytest.mark.clang

RIGHT = b"""#include <hip/hip_runtime.h>
#define TILE 16
#define CELLS (TILE * TILE)
constexpr int BLOCK = 256;
constexpr int HALF = BLOCK / 2;
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__device__ float scaled(float x) { constexpr int UNROLL = 4; float y = x;
  for (int i = 0; i < UNROLL; ++i) y += 1.0f / UNROLL; return y; }
__global__ void turn(float* p, const float* q, int n) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = threadIdx.y;
  tile[y][x % TILE] = scaled(q[x * n + y]);
  __syncthreads();
  p[x * n + y] = tile[x % TILE][y];
}
__global__ __launch_bounds__(BLOCK) void sum(float* p, int n) {
  __shared__ float part[BLOCK];
  part[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  for (int s = HALF; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  p[blockIdx.x] = part[0];
}
int main(int argc, char** argv) {
  float *p = nullptr, *q = nullptr;
  int n = argc;
  (void)argv;
  const dim3 block(TILE, TILE);
  dim3 grid((n + TILE - 1) / TILE, ceil_div(n, block.y));
  const unsigned bytes = CELLS * sizeof(float);
  turn<<<grid, block, bytes>>>(p, q, n);
  const int blocks = ceil_div(n, BLOCK);
  sum<<<blocks, BLOCK>>>(p, n);
}
"""


@pytest.fixture
def reading(front_end: FrontEnd) -> Callable[[bytes], CompilerReading]:
    def make(text: bytes) -> CompilerReading:
        front_end.source.write_bytes(text)
        return CompilerReading(front_end, text)

    return make


def _judged(reading: CompilerReading, after: bytes, kernel: str, **values: int) -> Retuned:
    assert isinstance(reading.front_end, FrontEnd)
    original = Original(reading.front_end, reading.text)
    return judge_constants(original, reading.text, after, TunedConstants(tuple(values.items())), kernel)


def test_constants_that_launches_follow(reading):
    found = reading(RIGHT).constants("turn")
    assert [(one.name, one.value, one.line, one.changes_launches) for one in found] == [
        ("TILE", 16, 2, True),
        ("UNROLL", 4, 7, False),
    ]
    assert all(RIGHT[one.begin : one.end] == b"%d" % one.value and one.refused is None for one in found)
    (block,) = (one for one in reading(RIGHT).constants("sum") if one.refused is None)
    assert (block.name, block.changes_launches) == ("BLOCK", True)


def test_several_at_once_and_the_limit_of_a_workgroup(reading):
    one = reading(RIGHT)
    after = RIGHT.replace(b"TILE 16", b"TILE 32").replace(b"UNROLL = 4", b"UNROLL = 8")
    found = _judged(one, after, "turn", TILE=32, UNROLL=8)
    assert (found.refused, found.changes_launches, found.workgroup) == (None, True, 1024)
    assert "4096" in str(_judged(one, RIGHT.replace(b"TILE 16", b"TILE 64"), "turn", TILE=64).refused)
    # More than the declared values changed.
    more = RIGHT.replace(b"TILE 16", b"TILE 32").replace(b"p[x * n + y] =", b"p[0] =")
    assert "more than the declared" in str(_judged(one, more, "turn", TILE=32).refused)
    assert "no constant" in str(_judged(one, RIGHT, "turn", MISSING=32).refused)


#: A program with one constant, and what makes it one that must stay: what is put where, and the reason.
PROGRAM = """#include <hip/hip_runtime.h>
extern "C" int printf(const char*, ...);
{definition}
{top}
__global__ void k(float* p, int n) {{
  __shared__ float part[N];
  part[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[blockIdx.x * N + threadIdx.x] = part[N - 1 - threadIdx.x] * n;
}}
int main(int argc, char** argv) {{
  float* p = nullptr;
  (void)argv;
  {body}
}}
"""
LAUNCH = "k<<<(argc + N - 1) / N, N>>>(p, argc);"
QUICK = (
    ("#define N 128", "", f"float kept[N]; {LAUNCH} p = kept;", "of a size that depends on it: kept"),
    ("#define N 128", "", "k<<<(argc + 127) / 128, 128>>>(p, argc);", "the source also says 12"),
    ("constexpr int N = 128;", "", "k<<<argc / N, N>>>(p, N);", "a kernel gets it as an argument"),
    ("#define N 128", "", f"for (int i = 0; i < N; ++i) {LAUNCH}", "for something else than a launch"),
    ("#define N 128\n#if N > 64\n#define M 1\n#endif", "", LAUNCH, "a directive asks for it"),
)
LONG = (
    ("#define N 128", "", "k<<<(argc + N - 1) / N, 1 << 7>>>(p, argc);", "does not follow|also says"),
    ("#ifndef N\n#define N 128\n#endif", "", LAUNCH, "a directive asks for it"),
    ("#define N 128\n#define N 128", "", LAUNCH, "defined more than once"),
    ("constexpr int N = 128;", "", f"const int N = 128; {LAUNCH}", "defined more than once"),
    ("inline constexpr int N = 128;", "", LAUNCH, "other files can share it"),
    (
        "#define N 128\n#define T(x) #x\n#define S(x) T(x)",
        "",
        f"printf(S(N)); {LAUNCH}",
        "else than a launch|hands",
    ),
    ("constexpr int N = 128;", "", f'printf("%d", N); {LAUNCH}', "hands it to a function"),
    (
        "#define N 128",
        "struct Room { float of[N]; };",
        f"{LAUNCH} p = new float[sizeof(Room)];",
        "a type depends",
    ),
    ("#define N 128", "float room[N];", f"{LAUNCH} p = room;", "a variable of the file that may change"),
    (
        "#define N 128",
        "int size = N * 4;",
        f"{LAUNCH} argc = size;",
        "a variable of the file that may change",
    ),
    (
        "#define N 128",
        "template <int M> void f(float* p) { p[0] = M; }",
        f"{LAUNCH} f<N>(p);",
        "another name",
    ),
    (
        "#define N 128",
        "__global__ void other(float* p) { p[0] = N; }",
        f"{LAUNCH} other<<<1, 1>>>(p);",
        "the kernel other depends on it, too",
    ),
    ("#define N 128", "void go(float* p, int n, int b);", f"{LAUNCH} go(p, 9, N);", "hands it"),
    ("#define N 128", "", "int b = N; b += argc; k<<<argc, b>>>(p, argc);", "else than a launch"),
    ("#define N 128", "", f"if (argc % N) return 1; {LAUNCH}", "else than a launch"),
    ("#define N 128", "", f"auto f = &k; (void)f; {LAUNCH}", "used otherwise"),
    ("#define N 128", "", "", "no launch of k stands in this file"),
    ("#define N 128\n#include <hip/hip_runtime.h>", "", LAUNCH, "included behind it"),
    ("constexpr int N = 128;", "static_assert(N == 128);", LAUNCH, "not judged with 64 in its place"),
)


@pytest.mark.parametrize(
    ("definition", "top", "body", "reason"),
    [*QUICK, *(pytest.param(*one, marks=pytest.mark.long) for one in LONG)],
)
def test_what_else_depends_on_it_refuses(reading, definition, top, body, reason):
    text = PROGRAM.format(definition=definition, top=top, body=body).encode()
    found = reading(text).constants("k")
    assert isinstance(found, tuple), found
    refused = {one.name: one for one in found}["N"].refused
    assert refused is not None
    assert any(part in refused for part in reason.split("|")), refused


@pytest.mark.long
def test_the_program_itself_is_right(reading):
    """Without what the corpus adds: so that nothing but that is refused."""
    asserted = "constexpr int N = 128; static_assert(N < 200);"  # so half of it is tried
    for definition in ("#define N (128)  // work-items", "const unsigned N = 128u;", asserted):
        body = f"static_assert(N % 2 == 0); {LAUNCH}"
        text = PROGRAM.format(definition=definition, top="", body=body).encode()
        (one,) = reading(text).constants("k")
        assert isinstance(one, Constant)
        assert (one.refused, one.changes_launches) == (None, True)


@pytest.mark.long
def test_a_constexpr_function_of_a_header_is_followed(reading, front_end):
    header = front_end.source.parent / "rounding.h"
    header.write_bytes(
        b"template <typename T> constexpr T parts(const T& a, const T& b) { return (a + b - 1) / b; }\n"
    )
    body = "k<<<parts(argc, N), N>>>(p, argc);"
    text = PROGRAM.format(
        definition='#include "rounding.h"\nconstexpr int N = 128;', top="", body=body
    ).encode()
    (one,) = reading(text).constants("k")
    assert (one.refused, one.changes_launches) == (None, True)
    header.write_bytes(header.read_bytes().replace(b"constexpr", b""))
    (one,) = reading(text).constants("k")
    assert "hands it to a function" in str(one.refused)


@pytest.mark.long
def test_another_file_that_launches_by_the_same_name(reading, front_end):
    text = PROGRAM.format(definition="#define N 128", top="", body=LAUNCH).encode()
    (front_end.source.parent / "other.cpp").write_bytes(b"#define N 128\nvoid k(float*, int);\n")
    (one,) = reading(text).constants("k")
    assert "other.cpp" in str(one.refused)


# Block sizes without a name.

UNNAMED = """#include <hip/hip_runtime.h>
extern "C" int printf(const char*, ...);
constexpr int ceil_div(int a, int b) {{ return (a + b - 1) / b; }}
constexpr int larger(int a, int b) {{ return a > b ? a : b; }}
{top}
__global__ {bounds} void k(float* p, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  {inside}
  if (i < n) p[j * n + i] += 1.0f;  // 128 of them
}}
int main(int argc, char** argv) {{
  float* p = nullptr;
  (void)argv;
  {body}
}}
"""


def _unnamed(reading, body: str, *, bounds: str = "", top: str = "", inside: str = ""):
    text = UNNAMED.format(body=body, bounds=bounds, top=top, inside=inside).encode()
    one = reading(text)
    found = one.constants("k")
    assert isinstance(found, tuple), found
    return one, {constant.name: constant for constant in found}


@pytest.mark.parametrize(
    ("body", "bounds", "sizes", "places"),
    [
        ("k<<<(argc + 127) / 128, 128>>>(p, argc);", "__launch_bounds__(128)", {"block.x": 128}, 4),
        pytest.param(
            "const dim3 block(32, 8); dim3 grid((argc + 31) / 32, ceil_div(argc, 8)); "
            "k<<<grid, block>>>(p, argc);",
            "",
            {"block.x": 32, "block.y": 8},
            3,
            marks=pytest.mark.long,
        ),
        pytest.param(
            "int threads = 128; int blocks = argc / threads + (argc % threads ? 1 : 0); "
            "k<<<blocks, threads>>>(p, argc);",
            "",
            {"block.x": 128},
            1,
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_block_size_that_the_launch_says_as_a_number(reading, body, bounds, sizes, places):
    one, found = _unnamed(reading, body, bounds=bounds)
    assert {name: (c.value, c.refused, c.changes_launches) for name, c in found.items()} == {
        name: (value, None, True) for name, value in sizes.items()
    }
    block = found["block.x"]
    assert len(block.written(64)) == places
    after = one.text
    for begin, end, digits in sorted(block.written(64), reverse=True):
        after = after[:begin] + digits + after[end:]
    assert b"// 128 of them" in after  # a comment is nobody's number
    judged = judge_constants(Original(one.front_end, one.text), one.text, after, _tuned("block.x", 64), "k")
    assert judged.refused is None
    assert judged.workgroup == 64 * sizes.get("block.y", 1)
    # One number is left behind.
    begin, end, digits = block.written(64)[0]
    half = one.text[:begin] + digits + one.text[end:]
    if places > 1:
        judged = judge_constants(
            Original(one.front_end, one.text), one.text, half, _tuned("block.x", 64), "k"
        )
        assert "more than the declared values" in str(judged.refused)


def _tuned(name: str, value: int) -> TunedConstants:
    return TunedConstants(((name, value),))


GRID = "k<<<(argc + 127) / 128, 128>>>(p, argc);"
NOT_FOLLOWED = "not proven to follow its block"
UNNAMED_QUICK = (
    ({"body": "k<<<80, 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": "k<<<128, 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": GRID, "inside": "__shared__ float t[128]; t[threadIdx.x] = 0;"}, "k says the number, too"),
    ({"body": f"{GRID} for (int i = 0; i < 128; ++i) p = p + i;"}, "else than a launch"),
)
UNNAMED_LONG = (
    ({"body": "k<<<argc * 128 / 128, 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": "k<<<larger(argc, 128), 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": "k<<<(128 + 127) / 128, 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": "k<<<argc % 128, 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": "k<<<argc / 128 + argc % 128, 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": "k<<<(argc + 127) / 128, 64>>>(p, argc);"}, "does not say it|" + NOT_FOLLOWED),
    ({"body": GRID + " k<<<argc, 128>>>(p, argc);"}, NOT_FOLLOWED),
    ({"body": GRID, "inside": "if (n == 127) return;"}, "k says the number, too"),
    ({"body": GRID, "top": "constexpr int BINS = 128;", "inside": "p += BINS;"}, "k says the number, too"),
    ({"body": GRID, "top": "__device__ float room[128];", "inside": "p = room;"}, "k says the number, too"),
    ({"body": GRID, "top": "struct S { float of[128]; };"}, "a type depends on it"),
    ({"body": GRID, "top": "__global__ void other(float* p) { p[0] = 128; }"}, "other says the number, too"),
    ({"body": "k<<<(argc + 127) / 128, 128>>>(p, 128);"}, "a kernel gets it as an argument"),
    ({"body": f'{GRID} printf("%d", 128);'}, "hands it to a function"),
    ({"body": f"{GRID} float kept[128]; p = kept;"}, "of a size that depends on it"),
    ({"body": f"{GRID} float kept[0x80]; p = kept;"}, "says it as 0x80"),
    ({"body": f"{GRID} argc = int(argc * 128.0f);"}, "says it as 128.0f"),
    ({"body": f"{GRID} argc = 0200;"}, "says it as 0200"),
    ({"body": GRID, "top": "#if 128 > 64\n#define M 1\n#endif"}, "the directive in line"),
    ({"body": f'{GRID} printf(R"(128 " )");'}, "a raw string"),
    ({"body": f"int t = 128; {GRID} t += argc; k<<<argc / t, t>>>(p, t);"}, "else than a launch|gets it"),
)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [*UNNAMED_QUICK, *(pytest.param(*one, marks=pytest.mark.long) for one in UNNAMED_LONG)],
)
def test_a_number_that_means_more_than_a_launch_refuses(reading, parts, reason):
    _, found = _unnamed(reading, **parts)
    for one in (one for name, one in found.items() if "." in name):
        assert one.refused is not None, one
        assert any(part in one.refused for part in reason.split("|")), one.refused
        assert one.line > 1
    assert found or "does not say it" in reason


@pytest.mark.long
def test_an_array_whose_extent_is_left_behind_refuses(reading):
    """The tree has no number for it."""
    body = "__shared__ float part[N];"
    for text in (PROGRAM, PROGRAM.replace(body, body.replace("N", "128"))):
        made = text.format(definition="#define N 128", top="", body=LAUNCH).encode()
        (one,) = reading(made).constants("k")
        assert (one.refused is None) == (text is PROGRAM), one.refused
    assert "the source also says 128" in str(one.refused)
