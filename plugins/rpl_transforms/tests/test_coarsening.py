"""More work for each work-item: what does its work for itself is proven, hostile twins are refused."""

# ruff: noqa: E501 - a kernel stands on its line

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import attrs
import pytest

import rpl_testkit
from rpl_optimize.interfaces.source_reading import Span
from rpl_optimize.interfaces.transformation import (
    Edit,
    KernelSource,
    LoopHints,
    SeveralBlocks,
    Transformation,
)
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
    "shared without a barrier": f"__shared__ float t[64]; {_I} t[threadIdx.x] = i; out[i] = t[threadIdx.x];",
    "of the file, shared without a barrier": f"{_I} pool[threadIdx.x] = i; out[i] = pool[threadIdx.x];",
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
    "a literal that calls": "out[0_on] = in[blockIdx.x];",
    "destructor": f"{_I} Leaves one{{out}}; more[i] = 1;",
    "destructor of a class of its own": f"{_I} struct Own {{ float* p; __device__ ~Own() {{ *p += 1; }} }}; Own one{{out + i}};",
    "destructor elsewhere": f"{_I} leave(out);",
    "first value of a member": f"{_I} Placed one{{}}; out[one.at] = in[i];",
    "argument that is left out": f"{_I} out[i] = placed(in[i]);",
    "argument that is left out and calls": f"{_I} out[i] = placed_by(in[i]);",
    "virtual": f"{_I} out[i] = ((Base*)more)->of(in[i]);",
    "virtual elsewhere": f"{_I} out[i] = of_any((Base*)more);",
    "shared by its address": f"{_I} lds_float* p = (lds_float*)16; out[i] = *p; *p = i;",
    "a return for another build": f"{_I}\n#ifdef OTHER\n  if (i >= n) return;\n#endif\n  out[i] = 1;",
    "statements in an expression": f"{_I} out[i] = ({{ if (i >= n) return; 1; }});",
}
#: A block that shares memory: nobody begins with the next block's work before all are done with this one's.
_S = "__shared__ float t[64]; const int k = threadIdx.x;"
_LAST = "out[blockIdx.x * blockDim.x + k] = t[blockDim.x - 1 - k];"
SHARED_HARMLESS = {
    "turned around": f"{_S} {_I} t[k] = in[i]; __syncthreads(); {_LAST}",
    "of the file": f"const int k = threadIdx.x; {_I} pool[k] = in[i] + 1; __syncthreads(); out[i] = pool[blockDim.x - 1 - k];",
    "returns behind": f"{_S} {_I} t[k] = in[i] * 3; __syncthreads(); if (k) return; float s = 0; for (int j = 0; j < (int)blockDim.x; ++j) s += t[j]; out[blockIdx.x] = s;",
    "all return": f"{_S} {_I} if (blockIdx.x > n) return; t[k] = in[i] - 4; __syncthreads(); {_LAST}",
    "tree": f"{_S} {_I} t[k] = in[i]; for (int s = blockDim.x / 2; s > 0; s >>= 1) {{ __syncthreads(); if (k < s) t[k] += t[k + s]; }} __syncthreads(); if (k == 0) out[blockIdx.x] = t[0];",
    "tiles": f"{_S} {_I} float s = 0; const int all = n < 0 ? 1 : n / 16 + 1; for (int j = 0; j < all; ++j) {{ t[k] = in[i + j]; __syncthreads(); s += t[(k + 1) % blockDim.x]; __syncthreads(); }} out[i] = s;",
    "counted down": f"{_S} {_I} t[k] = 0; int steps = n & 3; while (steps) {{ __syncthreads(); if (k == steps) t[0] += in[i]; --steps; }} __syncthreads(); out[i] = t[0];",
    "do": f"{_S} {_I} t[k] = 1; int j = 0; do {{ __syncthreads(); if (k == j) t[0] += in[i]; j += 2; }} while (j < 5); __syncthreads(); out[i] = t[0] + 2;",
    "left by all": f"{_S} {_I} t[k] = in[i]; for (;;) {{ __syncthreads(); if (n > 3) break; n += 5; }} {_LAST} more[i] = n;",
    "condition of all": f"{_S} {_I} t[k] = in[i] + 7; if (n % 2 && blockIdx.x != 1) {{ __syncthreads(); out[i] = t[0]; }} else {{ __syncthreads(); out[i] = t[1]; }}",
    "inner loop of its own": f"{_S} {_I} for (int r = 0; r < 2; ++r) {{ t[k] = r; for (int j = 0; j < k; ++j) {{ if (j == 3) break; t[k] += in[j]; }} __syncthreads(); out[i] += t[(k + 1) % blockDim.x]; __syncthreads(); }}",
    "switch": f"{_S} {_I} t[k] = in[i] + 9; switch (n % 3) {{ case 1: __syncthreads(); out[i] = t[0]; break; default: __syncthreads(); out[i] = t[2]; }}",
    "all break from a switch": f"{_S} {_I} t[k] = in[i] + 11; switch (n % 3) {{ case 1: if (n > 9) break; __syncthreads(); out[i] = t[1]; }} more[i] = t[k];",
    "size of the grid": f"{_S} {_I} t[k] = gridDim.x; __syncthreads(); const int last = gridDim.x - 1; out[i] = blockIdx.x == last ? in[i] : t[k];",
    "a function": f"{_S} {_I} put(t + k, in[i]); __syncthreads(); {_LAST} more[i] = t[0];",
}
SHARED_HOSTILE = {
    "some return in front": f"{_S} {_I} if (i >= n) return; t[k] = in[i]; __syncthreads(); {_LAST}",
    "condition of some": f"{_S} {_I} if (i < n) {{ t[k] = in[i]; __syncthreads(); {_LAST} }}",
    "else of some": f"{_S} if (k < n) t[k] = 1; else __syncthreads(); {_LAST}",
    "loop of some": f"{_S} for (int j = 0; j < k; ++j) {{ t[j] = 1; __syncthreads(); }} {_LAST}",
    "while of some": f"{_S} int j = k; while (j) {{ __syncthreads(); --j; }} {_LAST}",
    "do of some": f"{_S} int j = k; do {{ __syncthreads(); }} while (--j > 0); {_LAST}",
    "step of some": f"{_S} for (int j = 0; j < n; j += k + 1) {{ __syncthreads(); t[k] = 1; }} {_LAST}",
    "begins with the item": f"{_S} for (int j = k; j < n; ++j) {{ __syncthreads(); t[k] = 1; }} {_LAST}",
    "some break": f"{_S} for (int j = 0; j < n; ++j) {{ if (k == j) break; __syncthreads(); t[k] = 1; }} {_LAST}",
    "some break behind": f"{_S} for (int j = 0; j < n; ++j) {{ __syncthreads(); if (k == j) break; t[k] = 1; }} {_LAST}",
    "some go on": f"{_S} for (int j = 0; j < n; ++j) {{ if (k == j) continue; __syncthreads(); t[k] = 1; }} {_LAST}",
    "changed by some": f"{_S} int j = 3; if (k == 1) j = 4; for (int m = 0; m < j; ++m) {{ __syncthreads(); t[k] = m; }} {_LAST}",
    "changed by some later": f"{_S} int j = 3; while (j > 0) {{ __syncthreads(); t[k] = j; --j; if (t[0] > k) --j; }} {_LAST}",
    "argument changed by some": f"{_S} if (k) n = 2; if (n > 1) __syncthreads(); {_LAST}",
    "changed in an expression": f"{_S} int j = 3; (void)(k == 2 && (j = 1)); if (j > 1) __syncthreads(); {_LAST}",
    "changed by a choice": f"{_S} int j = 3; k ? ++j : --j; if (j > 3) __syncthreads(); {_LAST}",
    "by a copy of the item": f"{_S} int j = 0; int m = j; j = k; m = j + 1; if (m > 2) __syncthreads(); {_LAST}",
    "by two copies around": f"{_S} int a = 0, b = 0; for (int j = 0; j < 3; ++j) {{ if (b) __syncthreads(); b = a; a = k; }} {_LAST}",
    "by a reference": f"{_S} int j = 0; int& m = j; m = k; if (j) __syncthreads(); {_LAST}",
    "by a pointer": f"{_S} int j = 0; int* m = &j; *m = k; if (j) __syncthreads(); {_LAST}",
    "by a function": f"{_S} int j = 0; set(j, k); if (j) __syncthreads(); {_LAST}",
    "by what it returns": f"{_S} if (twice(k, 1) > 3) __syncthreads(); {_LAST}",
    "by what is loaded": f"{_S} if (in[0] > 3) __syncthreads(); {_LAST}",
    "by what is shared": f"{_S} t[k] = k; if (t[0] > 3) __syncthreads(); {_LAST}",
    "by a choice of the item": f"{_S} int j = k > 2 ? 1 : 0; if (j) __syncthreads(); {_LAST}",
    "by a part of an array": f"{_S} int j[2] = {{0, k}}; if (j[1]) __syncthreads(); {_LAST}",
    "by a member": f"{_S} rows.of[0] = k; if (rows.of[0] > 1) __syncthreads(); {_LAST}",
    "by a comma": f"{_S} for (int j = 0; j++, j < k;) {{ __syncthreads(); t[k] = 1; }} {_LAST}",
    "by a variable of a condition": f"{_S} if (int j = k) {{ __syncthreads(); t[k] = j; }} {_LAST}",
    "switch of some": f"{_S} switch (k) {{ case 1: __syncthreads(); break; default: t[k] = 1; }} {_LAST}",
    "break from a switch of some": f"{_S} for (int j = 0; j < 3; ++j) switch (k) {{ case 1: t[k] = 0; continue; default: __syncthreads(); }} {_LAST}",
    "some break from a switch": f"{_S} {_I} t[k] = in[i]; switch (n % 3) {{ case 1: if (k > 1) break; __syncthreads(); out[i] = t[0]; }}",
    "some break from a switch within": f"{_S} {_I} switch (n) {{ case 1: {{ if (k) break; }} default: __syncthreads(); out[i] = t[0]; }}",
    "in an expression": f"{_S} (void)(k > 2 && (__syncthreads(), true)); {_LAST}",
    "in a function": f"{_S} t[k] = 1; __syncthreads(); waits(); {_LAST}",
    "in a function of some": f"{_S} __syncthreads(); if (k > 1) waits(); {_LAST}",
    "another barrier": f"{_S} t[k] = 1; __syncthreads(); __builtin_amdgcn_s_barrier(); {_LAST}",
    "a barrier of its own": f"{_S} t[k] = 1; own_barrier::__syncthreads(); {_LAST}",
    "volatile": f"__shared__ volatile float t[64]; const int k = threadIdx.x; t[k] = 1; __syncthreads(); {_LAST}",
    "volatile view": f"{_S} volatile float* v = t; v[k] = 1; __syncthreads(); {_LAST}",
    "volatile view elsewhere": f"{_S} put_volatile(t + k, 1); __syncthreads(); {_LAST}",
    "atomic": f"{_S} t[k] = 1; __syncthreads(); __hip_atomic_fetch_add(out, t[0], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
    "fence": f'{_S} t[k] = 1; __syncthreads(); __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); {_LAST}',
    "lanes": f"{_S} t[k] = 1; __syncthreads(); out[blockIdx.x] = __builtin_amdgcn_ds_bpermute(4, k);",
    "strides": f"{_S} t[k] = 1; __syncthreads(); for (int i = blockIdx.x; i < n; i += gridDim.x) out[i] = t[k];",
    "strides by a variable": f"{_S} const int all = gridDim.x * 8; t[k] = 1; __syncthreads(); for (int i = blockIdx.x; i < n; i = i + all) out[i] = t[k];",
}
BLOCKS_HARMLESS |= SHARED_HARMLESS
BLOCKS_HOSTILE |= SHARED_HOSTILE
#: Of work-items that share nothing.
TOGETHER = {
    "atomic": f"{_I} if (i < n) __hip_atomic_fetch_add(out, in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);",
    "volatile": f"{_I} if (i < n) out[i] = ((volatile const float*)in)[n];",
}
_HELPERS = """#define GUARD i < n
struct Rows { float of[4]; mutable float sum; };
__device__ float kept;
__shared__ float pool[64];
__device__ void put(float* to, float value) { *to = value; }
__device__ void put_volatile(float* to, float value) { *(volatile float*)to = value; }
__device__ void set(int& a, int b) { a = b; }
__device__ void waits() { __syncthreads(); }
namespace own_barrier { __device__ void __syncthreads() {} }
__device__ float twice(float a, float b) { return a + 2 * b; }
__device__ float counted(int* p) { return ++*p; }
__device__ unsigned whole() { return gridDim.x * blockDim.x; }
struct Object { int v; constexpr Object(int a) : v(a) {} };
__device__ float own(const float* p) { return p[blockIdx.x]; }
"""
#: Of kernels that are only compiled for the GPU.
_HOSTILE_HELPERS = """__device__ unsigned operator\"\"_on(unsigned long long a) { return blockIdx.x + a; }
struct Leaves { float* p; __device__ ~Leaves() { p[blockIdx.x] += 1; } };
__device__ void leave(float* p) { Leaves one{p}; }
struct Placed { unsigned at = blockIdx.x; };
__device__ float placed(float a, unsigned b = blockIdx.x);
__device__ float placed(float a, unsigned b) { return a + b; }
__device__ float placed_by(float a, float b = own(nullptr)) { return a + b; }
struct Base { __device__ virtual float of(float a) { return a; } };
__device__ float of_any(Base* one) { return one->of(1); }
typedef __attribute__((address_space(3))) float lds_float;
"""
_HEAD = "(float* out, float* more, const float* in, int n, Rows rows)"


def _text(bodies: dict[str, str], helpers: str = "") -> str:
    kernels = (
        f"__global__ void k{number}{_HEAD} {{\n  {body}\n}}" for number, body in enumerate(bodies.values())
    )
    return f"#include <hip/hip_runtime.h>\n{_HELPERS}{helpers}" + "\n".join(kernels) + "\n"


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
    text = _text(hostile, _HOSTILE_HELPERS)
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
        wrong = re.sub(
            r"rpl_k < [24];|rpl_blocks(?:, ::__syncthreads\(\))?\) \{", lambda m: _WRONG[m[0][-1]], edited
        )
        other = _results(compiler, wrong, tmp_path, len(harmless))
        assert all(a != b for a, b in zip(before, other, strict=True))


_WRONG = {";": "rpl_k < 1;", "{": "2 * rpl_blocks) {"}


_TURNED = _text({"": SHARED_HARMLESS["turned around"]})
_WRONG_BLOCKS = (
    (b", ::__syncthreads()) {", b") {"),
    (b"(+rpl_block)", b"rpl_block"),
    (b"if (blockIdx.x >= rpl_blocks) return; ", b""),
    (b"(gridDim.x + 1u) / 2u", b"(gridDim.x + 1u) / 3u"),
    (b"rpl_block < gridDim.x", b"rpl_block <= gridDim.x"),
    (b"t[k] = in[i]", b"t[k] = in[k]"),
    (b"out[", b"more["),
)


def test_the_judge_takes_the_one_text_and_only_as_it_is_declared(rpl_require, tmp_path):
    reading = _read(rpl_require, tmp_path, _TURNED)
    judge = MeaningJudge(reading.front_end, _TURNED.encode())
    two, four = _offered(Coarsening(), _TURNED, reading)["k0"]

    def refused(text, declares):
        return [one for one in judge.judge(text, declares).verdicts if not one.passed]

    edited = apply_edits(_TURNED.encode(), two.edits)
    assert refused(edited, two.declares) == []
    for old, new in _WRONG_BLOCKS:
        assert old in edited
        (verdict,) = refused(edited.replace(old, new, 1), two.declares)
        assert (verdict.guard, "another one" in verdict.reason) == ("declared", True), new
    for declares in (four.declares, (SeveralBlocks(1),), (*two.declares, LoopHints(1))):
        (verdict,) = refused(edited, declares)
        assert verdict.guard == "declared"
    assert refused(edited, ())[0].guard == "cooperation"


def test_the_judge_proves_it_for_itself(rpl_require, tmp_path):
    """Whatever the one who offers an edit says: here that all come to a barrier that some return before."""
    text = _text({"": SHARED_HOSTILE["some return in front"]})
    turned = _read(rpl_require, tmp_path, _TURNED).block_work("k0")
    reading = _read(rpl_require, tmp_path, text)
    body = text.index("{", text.index("void k0")), text.rindex("}") + 1
    places = [
        Span(m.start(), m.end()) for m in re.finditer(rb"blockIdx\.x", text.encode()) if m.start() > body[0]
    ]
    returns = [
        Span(m.start(), m.end()) for m in re.finditer(rb"\breturn\b", text.encode()) if m.start() > body[0]
    ]
    work = attrs.evolve(turned, body=Span(*body), blocks=tuple(places), returns=tuple(returns))
    edited = apply_edits(text.encode(), [Edit(*one) for one in work.several(2)])
    (verdict,) = [
        one
        for one in MeaningJudge(reading.front_end, text.encode()).judge(edited, (SeveralBlocks(2),)).verdicts
        if not one.passed
    ]
    assert "come to the barrier" in verdict.reason


def test_nobody_begins_with_the_next_block_before_all_are_done(rpl_require, tmp_path):
    """Without the barrier between two blocks' work these kernels store something else."""
    bodies = {what: SHARED_HARMLESS[what] for what in ("turned around", "of the file", "returns behind")}
    text = _text(bodies)
    offered = _offered(Coarsening(), text, _read(rpl_require, tmp_path, text))
    edited = apply_edits(text.encode(), [edit for found in offered.values() for edit in found[0].edits])
    assert edited.count(b"rpl_block += rpl_blocks, ::__syncthreads())") == len(bodies)
    hurried = edited.replace(
        b"rpl_block += rpl_blocks, ::__syncthreads())", b"rpl_block += rpl_blocks)"
    ).decode()
    compiler = rpl_require("clang++-22")
    before, after = (_results(compiler, version, tmp_path, len(bodies)) for version in (text, hurried))
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_each_block_begins_with_the_arguments_of_the_launch(rpl_require, tmp_path):
    """With those that the block before left, every one of these kernels stores something else."""
    text = _text(ARGUMENTS_CHANGE)
    offered = _offered(Coarsening(), text, _read(rpl_require, tmp_path, text))
    edited = apply_edits(text.encode(), [edit for found in offered.values() for edit in found[0].edits])
    compiler, count = rpl_require("clang++-22"), len(ARGUMENTS_CHANGE)
    kept = re.sub(r" decltype\((\w+)\) \1 = rpl_first_\1;", "", edited.decode())
    before, after = (_results(compiler, version, tmp_path, count) for version in (text, kept))
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_a_constant_argument_may_change_as_well(rpl_require, tmp_path):
    """In a member that is ``mutable``; and it stays constant for whoever is called with it."""
    text = _text({"": f"{_I} rows.sum += i + 1; out[i] = rows.sum + sizeof(kind(rows));"})
    text = text.replace("Rows rows)", "const Rows rows)")
    text = text.replace(
        "__global__",
        "__device__ char kind(const Rows&) { return 1; } __device__ int kind(Rows&) { return 1; }\n__global__",
        1,
    )
    (found,) = _offered(Coarsening(), text, _read(rpl_require, tmp_path, text)).values()
    assert found[0].allowed, found[0].guards
    edited = apply_edits(text.encode(), found[0].edits).decode()
    compiler = rpl_require("clang++-22")
    before, after, kept, loose = (
        _results(compiler, version, tmp_path, 1)
        for version in (
            text,
            edited,
            edited.replace(" decltype(rows) rows = rpl_first_rows;", ""),
            edited.replace("decltype(rows) rows", "auto rows"),
        )
    )
    assert before == after
    assert before not in (kept, loose)


@pytest.mark.parametrize(
    ("declared", "body"),
    [("int& n", "n = 1; out[i] = 2;"), ("Counts n", "n.v -= 1; out[i] = n.v;")],
    ids=["by reference", "counts its copies"],
)
def test_an_argument_that_is_no_plain_copy_refuses(rpl_require, tmp_path, declared, body):
    counts = "struct Counts { int v; __device__ Counts(const Counts& o) : v(o.v + 1) {} };\n"
    text = _text({"": f"{_I} {body}"}).replace("int n,", f"{declared},")
    text = text.replace("__global__", f"{counts}__global__", 1)
    reason = _read(rpl_require, tmp_path, text).block_work("k0")
    assert reason == "the parameter n may change and is no copy"


def test_an_index_that_the_file_declares_refuses(rpl_require, tmp_path):
    text = _text({"": "out[blockIdx.x] = threadIdx.x;"})
    own = "#undef blockIdx\nstruct Own { unsigned x; };\n__device__ const Own blockIdx = {3};\n__global__"
    reading = _read(rpl_require, tmp_path, text.replace("__global__", own, 1))
    assert reading.block_work("k0") == "blockIdx is a variable of the file"


def test_the_new_text_means_what_the_proof_is_about(rpl_require, tmp_path):
    """The block is no variable for whoever is called with it, and the barrier is HIP's in every namespace."""
    text = _text(
        {"": f"static_assert(sizeof(kind(blockIdx.x)) == 1); {_S} t[k] = 1; ::__syncthreads(); {_LAST}"}
    )
    text = text.replace(
        "__global__",
        "__device__ char kind(const unsigned&) { return 1; } __device__ int kind(unsigned&) { return 1; }\nnamespace strict {\n"
        "__device__ void __syncthreads() = delete;\n__global__",
        1,
    )
    text += "}\n"
    reading = _read(rpl_require, tmp_path, text)
    (found,) = _offered(Coarsening(), text, reading).values()
    assert found[0].allowed, found[0].guards
    meaning = MeaningJudge(reading.front_end, text.encode()).judge(
        apply_edits(text.encode(), found[0].edits), found[0].declares
    )
    assert meaning.passed, [verdict for verdict in meaning.verdicts if not verdict.passed]


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


@pytest.mark.parametrize(
    "transformation", [WideElements(), Coarsening()], ids=["wide-elements", "coarsening"]
)
def test_what_work_items_do_together_is_refused(rpl_require, tmp_path, transformation):
    text = _text(TOGETHER)
    found = _offered(transformation, text, _read(rpl_require, tmp_path, text))
    assert len(found) == len(TOGETHER)
    assert not any(one.allowed for several in found.values() for one in several)


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
    """What the kernels store on the CPU, for several grids and sizes; the last block runs first.

    A work-item runs up to its next barrier before the next one does, forwards and backwards: whoever does
    not wait where it has to gets other results.
    """
    calls = "\n".join(f"  run(k{number});" for number in range(kernels))
    program = f"""#include <stdio.h>
#include <stddef.h>
#define __global__ static
#define __device__ static
#define __shared__ static
#include <ucontext.h>
static ucontext_t scheduler, items[8];
static bool ended[8];
static struct {{ unsigned x, y, z; }} blockIdx, blockDim, threadIdx, gridDim;
static void __syncthreads() {{ swapcontext(&items[threadIdx.x], &scheduler); }}
{text.replace("#include <hip/hip_runtime.h>", "")}
typedef void (*Kernel)(float*, float*, const float*, int, Rows);
static Kernel now;
static float in[512], out[512], more[512];
static int size;
static void item() {{
  now(out, more, in + 4, size, Rows());
  ended[threadIdx.x] = true;
}}
static void block(bool backwards) {{
  static char stacks[8][1 << 16];
  const unsigned count = blockDim.x;
  for (unsigned t = 0; t < count; ++t) {{
    getcontext(&items[t]);
    items[t].uc_stack.ss_sp = stacks[t];
    items[t].uc_stack.ss_size = sizeof stacks[t];
    items[t].uc_link = &scheduler;
    makecontext(&items[t], item, 0);
    ended[t] = false;
  }}
  for (unsigned left = count; left > 0;)
    for (unsigned k = 0; k < count; ++k) {{
      const unsigned t = backwards ? count - 1 - k : k;
      if (ended[t]) continue;
      threadIdx.x = t;
      swapcontext(&scheduler, &items[t]);
      left -= ended[t];
    }}
}}
static void run(Kernel kernel) {{
  now = kernel;
  unsigned long seen = 14695981039346656037ul;
  for (unsigned grid = 1; grid < 10; ++grid)
    for (unsigned block = 4; block < 9; block += 4)
      for (int n = -2; n < 90; n += 13) {{
        size = n;
        for (int i = 0; i < 512; ++i) in[i] = (i * 7 + 3) % 61, out[i] = i % 5, more[i] = 0;
        gridDim.x = grid; blockDim.x = block, blockDim.y = gridDim.y = 1;
        for (unsigned b = grid; b-- > 0;)
          blockIdx.x = b, ::block(grid % 2);
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
