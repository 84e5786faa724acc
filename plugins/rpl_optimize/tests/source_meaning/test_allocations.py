"""Pointers that lead to different memory: by launches and kernels as people write them, and hostile twins."""

# ruff: noqa: E501 - a case stands on its line

from __future__ import annotations

import pytest

from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.reading import CompilerReading

pytestmark = pytest.mark.clang

#: ``get`` is what HIP's own header has for typed pointers; the stand-in's functions allocate in other ways.
_HELPERS = """#include <hip/hip_runtime.h>
namespace std { template <class T> void swap(T& a, T& b) { T c = a; a = b; b = c; } }
extern "C" hipError_t hipMalloc(void** place, size_t bytes);
extern "C" hipError_t pool(void** place, size_t bytes);
void to_device(const void*, const void*, size_t);
#define CHECK(call) do { hipError_t error = (call); if (error) return 1; } while (0)
struct Box { float* of; int n; };
template <class T> static inline hipError_t get(T** place, size_t bytes) { return hipMalloc((void**)place, bytes); }
template <class T> static inline hipError_t same(T** place, size_t) { static T* kept; *place = kept; return hipMalloc((void**)&kept, 4); }
template <class T> static inline hipError_t second(T**, T** place, size_t n) { return hipMalloc((void**)place, n); }
void fill(float*& place); void look(const float* place);
float* other();
float* outside; static float* of_file; static float* leaked; float** leak = &leaked;
__device__ float* pointer; __device__ float table[64];
__device__ float* chosen(float* p, float* q, int n) { return n > 3 ? p : q; }
__device__ float* stored() { return pointer; }
__device__ float* made(unsigned long n) { return (float*)n; }
__device__ void next(float*& p) { p = pointer; }
__device__ void step(int i) { table[i] = 1; }
__device__ void elsewhere(int i);
__device__ float twice(float v) { return 2 * v; }
"""
_KERNEL = """__global__ void k{number}(const float* a, const float* b, float* out, int n{extra}) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {inside}
}}
int run{number}(int argc) {{
  {host}
  return 0;
}}
"""
_INSIDE = "for (int j = 0; j < n; ++j) out[i + j] = a[j] + twice(b[i]);"
_LAUNCH = "kernel<<<1, 64>>>(a, b, out, argc);"
_HOST = f"float *a, *b, *out; hipMalloc((void**)&a, 64); hipMalloc((void**)&b, 64); hipMalloc((void**)&out, 64); {_LAUNCH}"
_GOT = "get(&a, 64); get(&b, 64); get(&out, 64);"


Case = tuple[str, str, str]


def _separate(front_end: FrontEnd, cases: dict[str, Case]) -> dict[str, tuple[str, ...] | str]:
    """What is found of each host, body and further parameters; all stand in one file, which is read once."""
    kernels = [
        _KERNEL.format(number=at, host=host.replace("kernel", f"k{at}"), inside=inside, extra=extra)
        for at, (host, inside, extra) in enumerate(cases.values())
    ]
    text = (_HELPERS + "".join(kernels)).encode()
    front_end.source.write_bytes(text)
    reading = CompilerReading(front_end, text)
    found = {what: reading.separate_pointers(f"k{at}") for at, what in enumerate(cases)}
    assert {what: one for what, one in found.items() if "compile" in one} == {}
    return found


HARMLESS: dict[str, Case] = {
    "plain": (_HOST, _INSIDE, ""),
    "checked": (f"float *a = nullptr, *b{{}}, *out = NULL; CHECK(get(&a, 64)); CHECK(get(&b, 4)); CHECK(get(&out, 4)); {_LAUNCH} look(a);", _INSIDE, ""),
    "swapped": (f"float *a, *b, *out; {_GOT} for (int k = 0; k < 3; ++k) {{ {_LAUNCH} std::swap(a, out); }}", _INSIDE, ""),
    "lambda": (f"float *a, *b, *out; {_GOT} auto run = [&] {{ {_LAUNCH} }}; run(); a = nullptr;", _INSIDE, ""),
    "offsets": (f"float *a, *b, *out; {_GOT} kernel<<<1, 64>>>(a + argc, &b[3], out, 5);", _INSIDE, ""),
    "of the file": ("float *b, *out; get(&b, 64); get(&out, 64); get(&of_file, 64); kernel<<<1, 64>>>(of_file, b, out, 5);", _INSIDE, ""),
    "void": ("void* v; float *b, *out; hipMalloc(&v, 64); get(&b, 64); get(&out, 64); kernel<<<1, 64>>>((const float*)v, b, out, 5);", _INSIDE, ""),
    "moved in the kernel": (_HOST, "float* p = out + n; p += 3; for (; n > 0; --n) *p++ = a[n] + b[n]; table[i] = 1;", ""),
    "vectors and a choice": (_HOST, "float4 v = *(const float4*)(a + i); out[i] = v.x + b[0]; chosen(out, out + 3, n)[1] = 4;", ""),
}  # fmt: skip


def test_allocations_of_the_program_are_separate(front_end: FrontEnd):
    assert set(_separate(front_end, HARMLESS).values()) == {("a", "b", "out")}


_OTHERS = "get(&b, 64); get(&out, 64);"
HOSTILE_HOSTS = {
    "one twice": "float *a, *b; get(&a, 64); get(&b, 64); kernel<<<1, 64>>>(a, b, a, 5);",
    "parts of one": "float *a, *b; get(&a, 64); get(&b, 64); kernel<<<1, 64>>>(a, b, a + 32, 5);",
    "one twice in the second launch": f"{_HOST} kernel<<<1, 64>>>(a, out, out, 5);",
    "a copy": f"float *b, *out; {_OTHERS} float* a = out; {_LAUNCH}",
    "assigned": f"{_HOST} a = out; {_LAUNCH}",
    "assigned before": f"float *a, *b, *out; {_GOT} a = out + 3; {_LAUNCH}",
    "chosen": f"float *a, *b, *out; {_GOT} kernel<<<1, 64>>>(argc > 1 ? a : out, b, out, 5);",
    "a reference": f"{_HOST} float*& r = a; r = out; {_LAUNCH}",
    "a pointer to it": f"{_HOST} float** r = &a; *r = out; {_LAUNCH}",
    "handed by reference": f"{_HOST} fill(a); {_LAUNCH}",
    "counted up": f"{_HOST} ++a; {_LAUNCH}",
    "another allocator": f"float *a, *b, *out; pool((void**)&a, 4); {_OTHERS} {_LAUNCH}",
    "an allocator that does more": f"float *a, *b, *out; same(&a, 4); {_OTHERS} {_LAUNCH}",
    "an allocator by its second argument": f"float *a, *b, *out; second(&a, &b, 4); get(&b, 64); get(&out, 64); {_LAUNCH}",
    "allocator's name as a macro": f"float *a, *b, *out;\n#define hipMalloc pool\n hipMalloc((void**)&a, 4);\n#undef hipMalloc\n {_OTHERS} {_LAUNCH}",
    "a function's result": f"float *a = other(), *b, *out; {_OTHERS} {_LAUNCH}",
    "a result in the launch": f"float *b, *out; {_OTHERS} kernel<<<1, 64>>>(other(), b, out, 5);",
    "an argument": f"auto run = [&](float* a) {{ float *b, *out; {_OTHERS} {_LAUNCH} }}; float* p; get(&p, 4); run(p);",
    "a member": f"Box a; get(&a.of, 64); float *b, *out; {_OTHERS} kernel<<<1, 64>>>(a.of, b, out, 5);",
    "an array": f"float *a[2], *b, *out; get(&a[0], 64); a[1] = a[0]; {_OTHERS} kernel<<<1, 64>>>(a[0], b, out, 5);",
    "of other files, too": f"float *b, *out; get(&outside, 64); {_OTHERS} kernel<<<1, 64>>>(outside, b, out, 5);",
    "its address outside of functions": f"float *b, *out; get(&leaked, 64); {_OTHERS} kernel<<<1, 64>>>(leaked, b, out, 5);",
    "swapped with another one": f"float *a, *b, *out; {_GOT} float* c = out; std::swap(a, c); {_LAUNCH}",
    "swapped by somebody": f"auto swap = [](float*& p, float*& q) {{ p = q; }}; float *a, *b, *out; {_GOT} swap(a, out); {_LAUNCH}",
    "a lambda that changes it": f"float *a, *b, *out; {_GOT} [&] {{ a = out; }}(); {_LAUNCH}",
    "launched otherwise": f"{_HOST} auto* run = &kernel; run<<<1, 64>>>(out, b, out, 5);",
    "launched nowhere": "",
    "as a number": f"float *a, *b, *out; {_GOT} kernel<<<1, 64>>>((float*)((size_t)out + 4), b, out, 5);",
    "address to the device": f"{_HOST} to_device(&pointer, &out, 8); {_LAUNCH}",
}


def test_what_may_be_one_memory_is_not_separate(front_end: FrontEnd):
    found = _separate(front_end, {what: (host, _INSIDE, "") for what, host in HOSTILE_HOSTS.items()})
    assert {what: one for what, one in found.items() if not isinstance(one, str)} == {}
    assert not any("it " in str(one)[:3] for one in found.values()), "none for what the kernel does"


HOSTILE_KERNELS = {
    "a pointer of the device": ("pointer[i] = a[i]; out[i] = b[i];", ""),
    "a pointer of the device by a call": ("stored()[i] = a[i]; out[i] = b[i];", ""),
    "a pointer by a reference": ("next(out); out[i] = a[i] + b[i];", ""),
    "a number": ("((float*)(size_t)n)[i] = a[i]; out[i] = b[i];", ""),
    "a number in a call": ("made(n)[i] = a[i]; out[i] = b[i];", ""),
    "in an array": ("float* both[2] = {out, out + 1}; both[i & 1][i] = a[i] + b[i];", ""),
    "in a structure": ("Box box = {out, n}; box.of[i] = a[i] + b[i];", ""),
    "from memory": ("(*(float**)out)[i] = a[i] + b[i];", ""),
    "copied as bytes": ("float* p; __builtin_memcpy(&p, a, 8); p[i] = b[i]; out[i] = 1;", ""),
    "a structure of the launch": ("box.of[i] = a[i]; out[i] = b[i];", ", Box box"),
    "pointers to pointers": ("rows[i][0] = a[i]; out[i] = b[i];", ", float** rows"),
    "volatile": ("out[i] = a[i] + b[i] + (float)*flag;", ", volatile int* flag"),
    "assembly": ('asm volatile("" : "+v"(out)); out[i] = a[i] + b[i];', ""),
    "a lambda": ("auto f = [&] { out = pointer; }; f(); out[i] = a[i] + b[i];", ""),
    "shared pointers": ("__shared__ float* p; p = out; __syncthreads(); p[i] = a[i] + b[i];", ""),
    "a function of another file": ("elsewhere(i); out[i] = a[i] + b[i];", ""),
    "a function by its address": (
        "void (*call)(int) = n > 3 ? step : elsewhere; call(i); out[i] = a[i] + b[i];",
        "",
    ),
    "a static pointer": ("static __device__ float* p; p[i] = a[i] + b[i]; out[i] = 2;", ""),
}


_MORE = {
    "": "",
    ", Box box": ", Box{out, 1}",
    ", float** rows": ", (float**)rows",
    ", volatile int* flag": ", flag",
}


def test_a_kernel_that_follows_other_pointers_is_refused(front_end: FrontEnd):
    cases = {
        what: (
            f"void* rows; int* flag; hipMalloc(&rows, 8); get(&flag, 4); {_HOST.replace('argc);', f'argc{_MORE[extra]});')}",
            inside,
            extra,
        )
        for what, (inside, extra) in HOSTILE_KERNELS.items()
    }
    found = _separate(front_end, cases)
    assert {what: one for what, one in found.items() if not isinstance(one, str)} == {}
    assert not any("launch" in str(one) for one in found.values()), "each for what the kernel does"


def test_where_work_items_wait_only_what_is_loaded_alone_is_separate(front_end: FrontEnd):
    bodies = {
        "loaded and stored": "out[i] = a[i]; __syncthreads(); out[i + 1] = out[i] + b[i];",
        "stored": "out[i] = a[i]; __syncthreads(); out[i + 1] = b[i];",
        "stored by another name": "float* p = out; p[i] = a[i]; __syncthreads(); p[i + 1] = b[i];",
    }
    found = _separate(front_end, {what: (_HOST, inside, "") for what, inside in bodies.items()})
    assert set(found.values()) == {("a", "b")}
