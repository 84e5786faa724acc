"""What clang makes of the corpus for gfx942: baselines compile, edits reach the loop, the ABI stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from rpl_codeobject.comparing import compare_code_objects
from rpl_codeobject.kernel_code import CodeObject
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.loop.binary_stage import binary_guards
from rpl_optimize.transform import apply_edits
from rpl_transforms.resource_screen import DeviceCompiler, NotCompiled, ResourceScreen
from rpl_transforms.unroll import Unroll

pytestmark = pytest.mark.clang

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.hip"))
#: Written to be refused because they don't parse.
_BROKEN = {"parsed_syntax_error"}


@pytest.mark.parametrize("path", CORPUS, ids=[p.stem for p in CORPUS])
def test_a_kernel_of_the_corpus_is_real_code(path, gfx942):
    built = gfx942.compile(path.read_bytes())
    assert isinstance(built, NotCompiled if path.stem in _BROKEN else CodeObject), built


_SAFE = [path for path in CORPUS if path.stem.startswith("safe_")]


@pytest.mark.parametrize("path", _SAFE, ids=[p.stem for p in _SAFE])
def test_every_loop_unrolled_by_two_compiles_and_keeps_the_abi(path, gfx942):
    text = path.read_bytes()
    before = gfx942.compile(text)
    assert isinstance(before, CodeObject)
    for candidate in Unroll().propose(KernelSource(str(path), text)):
        if not candidate.allowed or not candidate.id.endswith("2"):
            continue
        after = gfx942.compile(apply_edits(text, candidate.edits))
        assert isinstance(after, CodeObject), (candidate.id, after)
        verdicts = {v.guard: v for v in binary_guards(compare_code_objects((before,), (after,)))}
        assert verdicts["binary-abi"].passed, verdicts["binary-abi"]
        assert verdicts["binary-lds"].passed


_RUNTIME = b"""extern "C" __global__ void total(float* out, const float* in, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += in[i * 64 + threadIdx.x];
  out[threadIdx.x] = sum;
}
"""


def test_a_pragma_changes_the_loop_in_the_machine_code(gfx942):
    candidate = _candidate(_RUNTIME, "total-L3-pragma4")
    screened = ResourceScreen(gfx942, _RUNTIME).screen(apply_edits(_RUNTIME, candidate.edits))
    verdicts = {v.guard: v for v in screened.verdicts}
    assert verdicts["binary-isa"].passed, verdicts["binary-isa"]
    assert "loops of" in verdicts["binary-isa"].reason


def test_a_comment_as_edit_is_told_from_an_unrolled_loop(gfx942):
    screened = ResourceScreen(gfx942, _RUNTIME).screen(_RUNTIME.replace(b"for (", b"/* fast */ for ("))
    verdicts = {v.guard: v for v in screened.verdicts}
    assert not verdicts["binary-isa"].passed


# 200 accumulators per lane: with launch bounds of 1024 a wave has 128 registers, with 256 it has 512.
_HUNGRY = b"""extern "C" __global__ __launch_bounds__(1024) void hungry(float* out, const float* in, int n) {
  float acc[200];
  for (int k = 0; k < 200; ++k) acc[k] = in[k * 1024 + threadIdx.x];
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 200; ++k) acc[k] = acc[k] * acc[(k + 1) % 200] + in[i * 200 + k + threadIdx.x];
  }
  for (int k = 0; k < 200; ++k) out[k * 1024 + threadIdx.x] = acc[k];
}
"""


def test_a_build_that_starts_to_spill_asks_for_the_measurement(gfx942):
    before = gfx942.compile(_HUNGRY.replace(b"(1024) void", b"(256) void"))
    after = gfx942.compile(_HUNGRY)
    assert isinstance(before, CodeObject)
    assert isinstance(after, CodeObject)
    verdicts = {v.guard: v for v in binary_guards(compare_code_objects((before,), (after,)))}
    for guard in ("binary-spills", "binary-scratch"):
        assert (verdicts[guard].passed, verdicts[guard].asks) == (True, True), after.kernels
    unmeasured = binary_guards(compare_code_objects((before,), (after,)), measured=False)
    refused = {verdict.guard for verdict in unmeasured if not verdict.passed}
    assert {"binary-spills", "binary-scratch"} <= refused, "where nothing is measured, nothing can weigh it"
    assert verdicts["binary-abi"].passed, "larger workgroups are permitted than before"


def _candidate(text: bytes, name: str):
    return next(c for c in Unroll().propose(KernelSource("k.hip", text)) if c.id == name)


def test_a_source_that_does_not_compile_alone_is_not_screened(gfx942: DeviceCompiler):
    screened = ResourceScreen(gfx942, b"#include <no_such_header.h>\n").screen(_RUNTIME)
    assert screened.verdicts == ()
    assert "no_such_header" in (screened.unavailable or "")
