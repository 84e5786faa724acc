"""Explicitly unrolled loops visit the same values in the same order, run for real on the host.

The kernels of one generated file are unrolled, compiled as plain C++ with traps on undefined behaviour,
and compared with the originals. Device code is the compiler's affair; this is about the edit.
"""

from __future__ import annotations

import subprocess
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rpl_llm_unroll.transformation import Unroll
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource
from rpl_optimize.transform.edits import apply_edits

pytestmark = pytest.mark.clang

_CONSTANT = [
    f"int i = {first}; i {relation} {bound}; {update}"
    for first, bound in product((0, 3, -4), (0, 7, 16, 21))
    for relation, update in (("<", "++i"), ("<", "i += 2"), ("<=", "i = i + 3"), ("!=", "i++"))
    if relation != "!=" or bound >= first
] + [
    f"int i = {first}; i {relation} {bound}; {update}"
    for first, bound in product((5, 16, 23), (-3, 0, 4))
    for relation, update in ((">", "--i"), (">", "i -= 3"), (">=", "i--"))
]
_RUNTIME = ["int i = start; i < n; ++i", "int i = start; n > i; i += 3", "int i = n; i > start; i -= 2"]
_UNSIGNED = ["unsigned i = 0; i < count; i += 2", "unsigned i = 1; count > i; ++i"]
_HEADS = [*_CONSTANT, *_RUNTIME, *_UNSIGNED]
#: start, n; the last rows come near the ends of int.
_ARGUMENTS = [(0, 0), (0, 1), (0, 9), (-7, 8), (5, 2), (2147483638, 2147483645), (-2147483647, -2147483640)]

_PRELUDE = """#include <stdio.h>
static long seen[1000000];
static int length = 0;
static void visit(long value) { seen[length++] = value; }
static void show() {
  for (int i = 0; i < length; ++i) printf("%ld ", seen[i]);
  printf("|");
  length = 0;
}
"""


def _program() -> str:
    kernels = [
        f"__global__ void k{number}(int start, int n, unsigned count) {{\n  for ({head}) visit(i);\n}}\n"
        for number, head in enumerate(_HEADS)
    ]
    calls = [
        f"  k{number}({start}, {n}, {max(0, n) % 100}u); show();"
        for number in range(len(_HEADS))
        for start, n in _ARGUMENTS
    ]
    return _PRELUDE + "".join(kernels) + "int main() {\n" + "\n".join(calls) + "\n  return 0;\n}\n"


@pytest.mark.parametrize("factor", [2, 4, 8])
def test_explicit_copies_visit_the_same_values(factor, rpl_require, tmp_path):
    compiler = rpl_require("clang++-22")
    text = _program().encode()
    edits = tuple(
        edit
        for candidate in _candidates(text)
        if candidate.allowed and candidate.id.endswith(f"explicit{factor}")
        for edit in candidate.edits
    )
    assert len(edits) > 30, "most loops have at least as many iterations as copies"
    assert _run(compiler, apply_edits(text, edits), tmp_path) == _visited(compiler)


@cache
def _visited(compiler) -> bytes:
    """What the unchanged loops visit."""
    with TemporaryDirectory() as name:
        return _run(compiler, _program().encode(), Path(name))


@cache
def _candidates(text: bytes) -> tuple[EditCandidate, ...]:
    return Unroll().propose(KernelSource("k.hip", text))


def _run(compiler, text: bytes, folder) -> bytes:
    source, program = folder / "program.cpp", folder / "program"
    source.write_bytes(text)
    checks = ("-O0", "-D__global__=static", "-fsanitize=undefined", "-fsanitize-trap=undefined")
    subprocess.run([compiler, *checks, source, "-o", program], check=True, capture_output=True)
    return subprocess.run([program], check=True, capture_output=True).stdout
