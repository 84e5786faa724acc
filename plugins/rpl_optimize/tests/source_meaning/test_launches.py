"""Block sizes as people write them are worked out; what may be another one at run time is not."""

from __future__ import annotations

import pytest

from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.reading import CompilerReading

pytestmark = pytest.mark.clang

_PROGRAM = """#include <hip/hip_runtime.h>
constexpr unsigned int block_size = 16;
const dim3 of_file(block_size, 2);
int changing = 64;
struct Shape {{ static constexpr int width = 8; }};
__global__ void kernel(float* p) {{ p[threadIdx.x] = 1; }}
template <class T, class U> T rounded(const T& whole, const U& part) {{ return (whole + part - 1) / part; }}
template <unsigned N> __global__ void many(float* p) {{ p[threadIdx.x] = N; }}
template <int N> void run(float* p) {{ kernel<<<1, 2 * N>>>(p); }}
void helper(float* p, int n, dim3 given) {{ (void)p; (void)n; (void)given; {helper} }}
int main(int argc, char** argv) {{
  float* p = nullptr;
  (void)argv;
  helper(p, argc, dim3(1));
  {body}
}}
"""


def _launches(front_end: FrontEnd, body: str, helper: str = "", kernel: str = "kernel"):
    text = _PROGRAM.format(body=body, helper=helper).encode()
    front_end.source.write_bytes(text)
    found = CompilerReading(front_end, text).launches(kernel)
    return found if isinstance(found, str) else sorted({one.block or (0, 0, 0) for one in found})


@pytest.mark.parametrize(
    ("body", "block"),
    [
        ("kernel<<<1, 256>>>(p);", (256, 1, 1)),
        ("const dim3 block_dim(block_size, block_size); kernel<<<1, block_dim>>>(p);", (16, 16, 1)),
        (
            "dim3 block{block_size}; dim3 grid((1 + block.x - 1) / block.x); kernel<<<grid, block>>>(p);",
            (16, 1, 1),
        ),
        ("auto block = dim3(4, 4, 4); kernel<<<dim3(1), block, 0, 0>>>(p);", (4, 4, 4)),
        ("kernel<<<1, of_file>>>(p);", (16, 2, 1)),
        ("int threads = 4 * block_size; kernel<<<1, threads>>>(p);", (64, 1, 1)),
        ("constexpr static int n = Shape::width << 2; kernel<<<1, n>>>(p);", (32, 1, 1)),
        ("kernel<<<1, argc > 2 ? dim3(32) : dim3(8, 8)>>>(p);", (32, 8, 1)),
        ("kernel<<<1, argc % 65>>>(p);", (0, 0, 0)),  # an int may be negative
        ("kernel<<<1, (unsigned)argc % 65>>>(p);", (64, 1, 1)),
        ("run<32>(p);", (64, 1, 1)),
        ("hipLaunchKernelGGL(kernel, dim3(1), dim3(block_size), 0, 0, p);", (16, 1, 1)),
        ("constexpr int n = 64; kernel<<<rounded(argc, n), n>>>(p);", (64, 1, 1)),
        (
            "const unsigned n = 64; const void* q = &n; (void)q; kernel<<<1, dim3(n, n / 32)>>>(p);",
            (64, 2, 1),
        ),
        ("int n = 64; kernel<<<rounded(argc, n), n>>>(p);", (0, 0, 0)),  # a cast may take its const away
        ("const int n = argc; kernel<<<rounded(argc, n), n>>>(p);", (0, 0, 0)),
        ("const int& n = changing; kernel<<<rounded(argc, n), n>>>(p);", (0, 0, 0)),
        ("static const int n = argc; kernel<<<rounded(argc, n), n>>>(p);", (0, 0, 0)),
        ("const volatile int n = 64; kernel<<<rounded(argc, 2), n>>>(p);", (0, 0, 0)),
        ("const int n[] = {64}; kernel<<<rounded(argc, n[0]), n[0]>>>(p);", (0, 0, 0)),
        ("kernel<<<1, changing>>>(p);", (0, 0, 0)),
        ("kernel<<<1, argc>>>(p);", (0, 0, 0)),
        ("dim3 block(8); block.x = argc; kernel<<<1, block>>>(p);", (0, 0, 0)),
        ("dim3 block(8); dim3& other = block; other.y = argc; kernel<<<1, block>>>(p);", (0, 0, 0)),
        ("dim3 block(8); auto f = [&] { block = dim3(argc); }; f(); kernel<<<1, block>>>(p);", (0, 0, 0)),
        ("int n = 8; n += argc; kernel<<<1, n>>>(p);", (0, 0, 0)),
        ("int n = 8; int* q = &n; *q = argc; kernel<<<1, n>>>(p);", (0, 0, 0)),
    ],
)
def test_a_block_size_is_worked_out_or_not_settled(front_end: FrontEnd, body: str, block: tuple[int, ...]):
    assert _launches(front_end, body) == [block]


def test_a_parameter_is_not_settled_and_every_instance_counts(front_end: FrontEnd):
    assert _launches(front_end, "", "kernel<<<1, given>>>(p);") == [(0, 0, 0)]
    assert _launches(front_end, "run<2>(p); run<16>(p);") == [(4, 1, 1), (32, 1, 1)]
    both = "many<3><<<1, 3>>>(p); many<block_size><<<1, block_size>>>(p);"
    assert _launches(front_end, both, kernel="many") == [(3, 1, 1), (16, 1, 1)]


@pytest.mark.parametrize(
    "other",
    [
        "auto f = &kernel; f<<<1, 1024>>>(p);",
        "void* f = reinterpret_cast<void*>(kernel); (void)f;",
        "void (*f)(float*) = argc > 1 ? kernel : kernel; f<<<1, 8>>>(p);",
    ],
)
def test_a_kernel_that_is_used_otherwise_has_no_known_launches(front_end: FrontEnd, other: str):
    assert "other ways" in str(_launches(front_end, f"kernel<<<1, 8>>>(p); {other}"))


_LAUNCHER = """#pragma once
#undef hipLaunchKernelGGL
template <class... A, class F = void (*)(A...)>
inline void hipLaunchKernelGGL(F kernel, const dim3& grid, const dim3& block, unsigned lds, void*, A... all) {
  kernel<<<grid, block, lds>>>(all...);
}
struct Own {
  static void hipLaunchKernel(const void*, dim3, dim3, void**, size_t, void*) {}
};
namespace own {
template <class F> void hipExtLaunchKernelGGL(F kernel, const dim3& block, const dim3& grid) {
  kernel<<<grid, block>>>(nullptr);
}
}
"""


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("hipLaunchKernel((const void*)kernel, dim3(2), dim3(32, 2), nullptr, 0, 0);", [(32, 2, 1)]),
        ("hipLaunchKernel(reinterpret_cast<void*>(&kernel), 2, 64, 0, 0, 0);", [(64, 1, 1)]),
        ("hipLaunchKernelGGL(kernel, dim3(9), dim3(block_size), 0, 0, p);", [(16, 1, 1)]),
        (
            "hipLaunchKernelGGL(kernel, dim3(9), dim3(argc), 0, 0, p); kernel<<<1, 8>>>(p);",
            [(0,) * 3, (8, 1, 1)],
        ),
        ("Own::hipLaunchKernel((const void*)kernel, dim3(2), dim3(32), 0, 0, 0);", None),
        ("own::hipExtLaunchKernelGGL(kernel, dim3(512), dim3(2));", None),
        ("hipLaunchKernel(argc > 1 ? (const void*)kernel : nullptr, dim3(2), dim3(32), 0, 0, 0);", None),
        ("hipLaunchKernel((const void*)kernel, 2, 32, 0, 0, 0); auto f = &kernel; (void)f;", None),
    ],
)
def test_functions_of_hip_launch_what_they_are_given_first(front_end: FrontEnd, body: str, known):
    (front_end.source.parent / "launcher.h").write_text(_LAUNCHER)
    text = _PROGRAM.replace("runtime.h>", 'runtime.h>\n#include "launcher.h"', 1)
    text = text.format(body=body, helper="").encode()
    front_end.source.write_bytes(text)
    found = CompilerReading(front_end, text).launches("kernel")
    if known is None:
        assert "other ways" in str(found)
    else:
        assert not isinstance(found, str), found
        assert sorted({one.block or (0, 0, 0) for one in found}) == known


def test_without_a_compiler_no_launch_is_known():
    assert (
        CompilerReading("no HIP compiler is installed", b"").launches("kernel")
        == "no HIP compiler is installed"
    )
