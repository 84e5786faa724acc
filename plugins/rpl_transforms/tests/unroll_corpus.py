"""Kernels whose loops are unrolled and run: harmless ones, and ones written to break an edit of a loop.

All are plain C++ but for ``__global__`` and ``__device__``, so that original and edited text can be compiled
for the CPU and compared. ``K`` in a text stands for the kernel's name.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

_HEAD = "__global__ void K(int* out, const int* in, int n)"
#: Loop forms: what stands before the loop, its head, and what stands behind its body.
FORMS = {
    "for": ("", "for (int i = 0; i < n; ++i)", ""),
    "while": ("int i = 0;", "while (i < n)", "++i;"),
    "do": ("int i = 0; if (n < 1) return;", "do", "++i; }  while (i < n);"),
    "range-for": ("int all[6] = {0, 5, 2, 3, 4, 1};", "for (int i : all)", ""),
    "auto": ("", "for (auto i = 0; i < n; ++i)", ""),
    "short": ("", "for (short i = 0; i < n; ++i)", ""),
    "typedef": ("", "for (index_t i = 0; i < n; ++i)", ""),
    "unsigned": ("", "for (unsigned i = 0; i < unsigned(n); i++)", ""),
    "size_t": ("", "for (size_t i = 0; i < size_t(n); i += 2)", ""),
    "two counters": ("", "for (int i = 0, j = n; i < j; ++i, --j)", ""),
    "shifted": ("", "for (int i = 0; i + 3 < n; ++i)", ""),
    "and": ("", "for (int i = 0; i < n && in[i] != 77; ++i)", ""),
    "outer counter": ("int i;", "for (i = 0; i < n; ++i)", ""),
    "downwards": ("", "for (int i = n - 1; i >= 0; --i)", ""),
    "not equal": ("", "for (int i = 0; i != n; ++i)", ""),
    "runtime step": ("int step = 1 + n % 3;", "for (int i = 0; i < n; i += step)", ""),
    "constant": ("", "for (int i = 0; i < 21; ++i)", ""),
    "no update": ("", "for (int i = 0; i < n;)", "++i;"),
}
BODIES = {
    "sum": "out[0] += in[i] * 3;",
    "store": "out[i] = in[i] - out[(i + 1) % 64];",
    "condition": "if (in[i] & 1) out[i] = in[i]; else out[63 - i % 64] += i;",
    "local": "int t[3] = {in[i], int(i), 7}; out[i] ^= t[i % 3];",
    "call": "out[i] = mix(out[i], in[i]);",
}
_TEXTS = Path(__file__).with_name("hostile_loops.txt").read_text(encoding="utf-8").split("\n//// ")[1:]
_PARTS = {name: body for name, _, body in (text.partition("\n") for text in _TEXTS)}
PRELUDE = _PARTS.pop("prelude")
#: Each is tried with two bounds; ``B`` stands for the bound.
HOSTILE = _PARTS


def kernels() -> dict[str, str]:
    """Kernel name -> text. Those of the harmless half begin with ``h``, the others with ``x``."""
    found = {}
    for number, (form, body) in enumerate(product(FORMS, BODIES)):
        before, head, behind = FORMS[form]
        found[f"h{number}"] = (
            f"{{\n  {before}\n  {head} {{ {BODIES[body]} {behind}" + ("" if form == "do" else " }") + "\n}"
        )
    for number, (text, bound) in enumerate(product(HOSTILE.values(), ("n", "21"))):
        found[f"x{number}"] = "{\n" + re.sub(r"\bB\b", bound, text) + "\n}"
    return {name: f"{_HEAD} ".replace("K(", f"{name}(") + text for name, text in found.items()}


def source() -> str:
    """One file with all of them."""
    return PRELUDE + "\n".join(kernels().values()) + "\n"


def program(text: str) -> str:
    """``text`` with a ``main`` that runs each kernel for several sizes and prints what it stored."""
    names = ", ".join(kernels())
    return f"""#define __global__ static
#define __device__
{text}
#include <stdio.h>
typedef void Kernel(int*, const int*, int);
static Kernel* const all[] = {{{names}}};
int main() {{
  for (unsigned k = 0; k < sizeof all / sizeof *all; ++k) {{
    unsigned long seen = 14695981039346656037ul;
    const int sizes[] = {{0, 1, 2, 5, 9, 16, 21, 30}};
    for (int s = 0; s < 8; ++s) {{
      int in[128], out[128] = {{0}};
      for (int i = 0; i < 128; ++i) in[i] = (i * 7 + 3) % 23;
      all[k](out, in, sizes[s]);
      for (int i = 0; i < 128; ++i) seen = (seen ^ (unsigned)out[i]) * 1099511628211ul;
    }}
    printf("%lx\\n", seen);
  }}
}}
"""
