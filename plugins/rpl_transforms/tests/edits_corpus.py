"""Kernels that an edit of shared rows or of neighbouring loads breaks, and harmless twins of them.

One work-item runs each of them on the CPU, original against edited, so ``__shared__`` is ``static`` there.
``K`` stands for the kernel's name; what stands before ``////`` goes in front of the kernel.
"""

# ruff: noqa: E501 - a kernel stands on its line

from __future__ import annotations

_HEAD = "__global__ void K(float* out, const float* in, int n)"
_TILE = "__shared__ float tile[32][32];"
_FILL = f"{_TILE} for (int i = 0; i < 32; ++i) for (int j = 0; j < 32; ++j) tile[i][j] = in[32 * i + j];"
_ALL = "for (int k = 0; k < 1024; ++k)"
_LOADS = "float a = in[{0}]; float b = in[{0} + 1]; float c = in[{0} + 2]; float d = in[{0} + 3];"
_SUM = "out[0] = a + 2 * b + 4 * c + 8 * d;"

#: Padding changes what these compute, or reads what nobody wrote.
PADDING_HOSTILE = {
    "columns by sizeof": "#define COLS_K (sizeof(tile[0]) / sizeof(float))\n////"
    f"{_FILL} {_ALL} out[k] = tile[k / COLS_K][k % COLS_K];",
    "flat": f"{_FILL} {_ALL} out[k] = tile[0][k];",
    "address in parentheses": f"{_FILL} float* all = &(tile[0][0]); {_ALL} out[k] = all[k];",
    "address": f"{_FILL} float* all = &tile[0][0]; {_ALL} out[k] = all[k];",
    "reference": f"{_FILL} float& first = tile[0][0]; {_ALL} out[k] = (&first)[k];",
    "reference to a row": f"{_FILL} auto& row = tile[0]; {_ALL} out[k] = (&row[0])[k];",
    "memset": f"{_FILL} __builtin_memset(tile, 0, 4096); out[0] = tile[31][31];",
    "addressof": f"{_FILL} float* all = __builtin_addressof(tile[0][0]); {_ALL} out[k] = all[k];",
    "size": f"{_FILL} out[0] = sizeof(tile);",
    "size of a type": f"{_FILL} out[0] = sizeof(decltype(tile));",
    "row that decays": f"{_FILL} auto f = [](const float* row, int k) {{ return row[k]; }}; "
    f"{_ALL} out[k] = f(tile[0], k);",
    "range for": f"{_FILL} for (auto& row : tile) for (float v : row) out[0] += 1 + 0 * v;",
    "row before": f"{_FILL} for (int i = 1; i < 32; ++i) out[i] = tile[i][-1];",
    "row behind": f"{_FILL} for (int j = 0; j < 40; ++j) out[j] = tile[0][j];",
    "arithmetic": f"{_FILL} {_ALL} out[k] = *(tile[0] + k);",
    "stars": f"{_FILL} {_ALL} out[k] = *(*tile + k);",
    "cast": f"{_FILL} {_ALL} out[k] = ((const float*)tile)[k];",
    "other way round": f"{_FILL} {_ALL} out[k] = k[*tile];",
    "macro of an element": f"#define AT_K(k) tile[0][k]\n////{_FILL} {_ALL} out[k] = AT_K(k);",
    "template by its extent": "template <int C> __device__ int cols_K(float (&)[32][C]) { return C; }\n////"
    f"{_FILL} out[0] = cols_K(tile);",
    "counter that the body changes": f"{_FILL} for (int j = 0; j < 32; ++j) {{ if (j == 30) j += 5; "
    "out[j] = tile[0][j]; }",
    "variable that grows": f"{_FILL} int c = 31; for (int i = 0; i < 9; ++i) {{ c += 1; out[c] = tile[0][c]; }}",
    "variable that a lambda changes": f"{_FILL} int c = 0; auto more = [&] {{ c = c + 9; }}; "
    "for (int i = 0; i < 9; ++i) { more(); out[c] = tile[0][c]; }",
    "narrow comparison": f"{_FILL} for (int k = 256; k < 288; ++k) if ((signed char)k < 32) out[k] = tile[0][k];",
    "remainder that is too large": f"{_FILL} {_ALL} out[k] = tile[0][k % 64];",
    "mask that is too large": f"{_FILL} {_ALL} out[k] = tile[0][k & 63];",
    "remainder of a negative number": f"{_FILL} for (int k = -40; k < 0; ++k) out[-k] = tile[2][k % 32];",
    "counter that wraps": f"{_FILL} int seen = 0; for (unsigned char j = 30; j <= 255 && seen < 9; j += 1, ++seen) "
    "out[j] = tile[0][j];",
    "step below zero": f"{_FILL} for (int j = 3; j > -4; j -= 2) out[j + 8] = tile[1][j];",
    "type in an alias": f"{_FILL} using T = decltype(tile); out[0] = sizeof(T) / sizeof(float);",
}
PADDING_HARMLESS = {
    "loops": f"{_FILL} for (int j = 0; j < 32; ++j) out[j] = tile[j][31 - j];",
    "remainder": f"{_FILL} for (unsigned k = 0; k < 1024; ++k) out[k] = tile[k / 32][k % 32];",
    "counters": f"{_FILL} {_ALL} out[k] = tile[k / 32][k % 32];",
    "mask": f"{_FILL} {_ALL} out[k] = tile[k >> 5][k & 31];",
    "constant": f"{_FILL} for (unsigned k = 0; k < 99; ++k) {{ const int c = k % 32; out[k] = tile[3][c]; }}",
    "variable": f"{_FILL} for (unsigned k = 0; k < 99; ++k) {{ int c = k % 32; out[k] = (tile[3][(c)]); }}",
    "condition": f"{_FILL} {_ALL} {{ const int c = k - 5; if (c >= 0 && c < 32) out[k] = tile[1][c]; }}",
    "constant of the file": "constexpr int side_K = 32;\n////"
    f"{_FILL} for (int j = 0; j < side_K; ++j) out[j] = tile[side_K - 1 - j][j];",
    "macro": f"#define SIDE_K 32\n////{_FILL} for (int j = 0; j < SIDE_K; j++) out[j] = tile[j][SIDE_K - 1];",
    "macro of an element": f"#define IN_K(i, j) tile[i][(j) % 32u]\n////{_FILL} {_ALL} out[k] = IN_K(3, k);",
    "changed elements": f"{_FILL} for (int j = 0; j < 32; ++j) {{ tile[j][0] += 3; ++tile[j][1]; "
    "out[j] = tile[j][0] * tile[j][1]; }",
    "downwards": f"{_FILL} for (int j = 31; j >= 0; --j) out[j] = tile[j][j];",
    "halves": f"{_FILL} for (int s = 16; s > 0; s >>= 1) out[s] = tile[0][s];",
    "either": f"{_FILL} {_ALL} out[k] = tile[1][k > 7 ? 3 : 4];",
    "two loops of one counter": f"{_FILL} int j; for (j = 0; j < 32; ++j) out[j] = tile[0][j]; "
    "for (j = 0; j != 0; ++j) out[j] = 7;",
    "lambda": f"{_FILL} auto at = [&](int j) {{ return tile[2][j & 31]; }}; {_ALL} out[k] = at(k);",
    "another array's size": f"__shared__ float other[7]; {_FILL} other[0] = sizeof(other); out[0] = other[0] + tile[3][4];",
    "work-item": f"#define LOOKS_K threadIdx.x % 32\n////{_FILL} out[threadIdx.x] = tile[3][LOOKS_K];",
}
#: A wide load brings something else than these loads.
LOADS_HOSTILE = {
    "effects": f"int k = 8; {_LOADS.format('k++')} {_SUM}",
    "macro without parentheses": f"#define I_K n > 4 ? i : i\n////int i = 8; {_LOADS.format('I_K')} {_SUM}",
    "macro that counts": "#define I_K (at_K += 3)\nstatic __device__ int at_K;\n////"
    f"at_K = 5; {_LOADS.format('I_K')} {_SUM}",
    "object with a subscript": "struct Back_K { const float* p; __device__ const float& operator[](int k) const { return p[40 - k]; } };\n"
    f"////const float* from = in; {{ Back_K in{{from}}; int i = 8; {_LOADS.format('i')} {_SUM} }}",
    "index that counts": "struct Count_K { int at; __device__ operator int() { return at += 2; } };\n////"
    f"Count_K i{{6}}; {_LOADS.format('i')} {_SUM}",
    "index with its own sum": "struct Odd_K { int at; __device__ operator int() const { return at; } "
    "__device__ int operator+(int k) const { return at + 5 * k; } };\n////"
    f"Odd_K i{{8}}; {_LOADS.format('i')} {_SUM}",
    "call": "static __device__ int bumped_K;\nstatic __device__ int bump_K(int k) { return k + (bumped_K += 3); }\n////"
    f"bumped_K = 0; int i = 8; {_LOADS.format('bump_K(i)')} {_SUM}",
    "pointer that moves": f"const int list[] = {{8, 16, 4, 28}}; const int* q = list; {_LOADS.format('*q++')} {_SUM}",
    "macro in place of the parameter": "struct Far_K { const float* p; __device__ const float& operator[](int k) const { return p[3 * k]; } };\n"
    f"////Far_K far{{in}}; int i = 8;\n#define in far\n{_LOADS.format('i')}\n#undef in\n{_SUM}",
}
LOADS_HARMLESS = {
    "plain": f"int i = 8; {_LOADS.format('i')} {_SUM}",
    "product": f"for (int i = 0; i < 9; ++i) {{ {_LOADS.format('4 * i')} out[i] = a + 2 * b + 4 * c + 8 * d; }}",
    "unsigned product": f"for (unsigned i = 0; i < 9; ++i) {{ {_LOADS.format('4 * i')} "
    "out[i] = a + 2 * b + 4 * c + 8 * d; }",
    "size_t": f"for (unsigned long i = 0; i < 9; ++i) {{ {_LOADS.format('i')} out[i] = a + 2 * b + 4 * c + 8 * d; }}",
    "parentheses": f"int i = 8, j = 4; {_LOADS.format('(i + j) * 4')} {_SUM}",
    "names of elements": "#define x w\n#define z y\n////"
    f"int i = 8; {_LOADS.format('i')} {_SUM}\n#undef x\n#undef z\n",
    "restrict": f"int i = 12; const int step = 4; {_LOADS.format('i * step')} {_SUM}",
}


def texts() -> dict[str, str]:
    """Kernel name -> text: ``ph`` and ``lh`` are hostile, ``pg`` and ``lg`` harmless."""
    found = {}
    parts = {"ph": PADDING_HOSTILE, "pg": PADDING_HARMLESS, "lh": LOADS_HOSTILE, "lg": LOADS_HARMLESS}
    for kind, kernels in parts.items():
        for number, text in enumerate(kernels.values()):
            before, mark, body = text.partition("////")
            before, body = (before, body) if mark else ("", before)
            name = f"{kind}{number}"
            whole = f"{before}{_HEAD} {{\n  {body}\n}}\n"
            found[name] = whole.replace("K(float* out", f"{name}(float* out").replace("_K", f"_{name}")
    return found


def source() -> str:
    return "#include <hip/hip_runtime.h>\n" + "\n".join(texts().values())


def program(text: str) -> str:
    """A program for the CPU that prints one line per kernel: what it stored."""
    names = ", ".join(texts())
    text = text.replace("#include <hip/hip_runtime.h>\n", "")
    return f"""#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define __global__ static
#define __device__
#define __shared__ static
struct {{ unsigned x, y, z; }} static threadIdx;
{text}
typedef void Kernel(float*, const float*, int);
static Kernel* const all[] = {{{names}}};
int main() {{
  for (unsigned k = 0; k < sizeof all / sizeof *all; ++k) {{
    alignas(16) static float in[2048], out[4096];
    memset(out, 0, sizeof out);
    for (int i = 0; i < 2048; ++i) in[i] = (i * 7 + 3) % 1023 + 1;
    fflush(stdout);
    int status, child = fork();  // a wide load of an odd address ends its kernel, and no other
    if (child) {{
      waitpid(child, &status, 0);
      if (!WIFEXITED(status)) printf("crashed\\n");
      continue;
    }}
    all[k](out + 64, in, 32);
    unsigned long seen = 14695981039346656037ul;
    for (int i = 0; i < 4096; ++i) seen = (seen ^ (unsigned)out[i]) * 1099511628211ul;
    printf("%lx\\n", seen);
    return 0;
  }}
}}
"""
