"""Unrolled loops compute what they computed: every kernel of a corpus is run, original against edited.

Half of the kernels are written to break an edit of a loop. Refusing everything would be no solution, so what
is offered is counted, too.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

import rpl_testkit
from rpl_codeobject.cooperation import Cooperation, cooperation_changes, cooperation_of
from rpl_codeobject.disassembly import disassemble
from rpl_codeobject.reading import read_code_objects
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource
from rpl_optimize.transform import apply_edits
from rpl_transforms.unroll import Unroll

from .unroll_corpus import BODIES, FORMS, HOSTILE, kernels, program, source

_QUICK_FACTOR = 4
_HEADERS = Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"


@cache
def _candidates() -> tuple[EditCandidate, ...]:
    return Unroll().propose(KernelSource("corpus.hip", source().encode()))


def test_the_corpus_is_large_and_half_of_it_is_hostile():
    assert len(kernels()) >= 150
    assert len(HOSTILE) >= 75
    assert sum(name.startswith("x") for name in kernels()) * 2 >= len(kernels())


def test_nearly_all_of_the_harmless_half_and_every_form_of_loop_is_offered():
    offered = {c.kernel for c in _candidates() if c.allowed}
    harmless = [name for name in kernels() if name.startswith("h")]
    assert len([name for name in harmless if name in offered]) >= 0.9 * len(harmless)
    by_form = {form: f"h{number * len(BODIES)}" for number, form in enumerate(FORMS)}
    assert [form for form, name in by_form.items() if name not in offered] == []


def test_a_loop_in_a_device_function_is_offered_for_the_kernel_that_reaches_it():
    found = [c for c in _candidates() if c.id.startswith("twice-") and c.allowed]
    assert {c.kernel for c in found} == {c for c in kernels() if "twice(n" in kernels()[c]}


@pytest.mark.clang
@pytest.mark.parametrize(
    "factor", [pytest.param(f, marks=() if f == 4 else pytest.mark.long) for f in (2, 4, 8)]
)
def test_no_kernel_changes_its_result(factor, rpl_require, tmp_path):
    compiler = rpl_require("clang++-22")
    text = source().encode()
    edits = [c.edits[0] for c in _candidates() if c.allowed and c.id.endswith(f"pragma{factor}")]
    assert len(edits) >= 150
    edited = apply_edits(text, edits)
    assert edited.count(b"\n") == text.count(b"\n"), "no line moves"
    before, after = (_results(compiler, version, tmp_path) for version in (text, edited))
    names = list(kernels())
    assert len(before) == len(names)
    assert [name for name, a, b in zip(names, before, after, strict=True) if a != b] == []


def test_the_comparison_notices_a_changed_result(rpl_require, tmp_path):
    text = source().encode()
    changed = text.replace(b"out[0] += in[i] * 3;", b"out[0] += in[i] * 2;", 1)
    compiler = rpl_require("clang++-22")
    before, after = (_results(compiler, version, tmp_path) for version in (text, changed))
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


@pytest.mark.clang
@pytest.mark.long
def test_no_unrolled_kernel_looks_as_if_it_had_lost_a_barrier(rpl_require, tmp_path):
    """All of them by machine code for gfx942: what the guard on the build says of right edits."""
    compiler = rpl_require("clang++-22")
    rpl_require("llvm-objdump-22")
    head = b"#include <hip/hip_runtime.h>\n#pragma clang force_cuda_host_device begin\n"
    text = head + source().encode()
    candidates = [c for c in Unroll().propose(KernelSource("corpus.hip", text)) if c.allowed]
    assert len(candidates) >= 688

    def structure(version: bytes) -> dict[str, Cooperation]:
        path, built = tmp_path / "kernels.hip", tmp_path / "kernels.co"
        path.write_bytes(version)
        options = ("-x", "hip", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-I", _HEADERS, "-w")
        device = ("-O3", "--cuda-device-only", "--no-gpu-bundle-output")
        subprocess.run([compiler, *options, *device, path, "-o", built], check=True, capture_output=True)
        (code,) = read_code_objects(built)
        return {name: cooperation_of(one) for name, one in disassemble(code).items()}

    before = structure(text)
    for factor in (2, 4, 8):
        edits = [c.edits[0] for c in candidates if c.id.endswith(f"pragma{factor}")]
        after = structure(apply_edits(text, edits))
        for unrolled in (True, False):
            changes = {n: cooperation_changes(before[n], after[n], unrolled=unrolled) for n in before}
            assert {name: change for name, change in changes.items() if change} == {}


@cache
def _results(compiler, text: bytes, folder) -> list[str]:
    """One line per kernel."""
    path, binary = folder / "program.cpp", folder / "program"
    path.write_text(program(text.decode()), encoding="utf-8")
    options = ("-O1", "-funroll-loops", "-w", "-std=c++17", "-fno-strict-aliasing", "-fwrapv")
    subprocess.run([compiler, *options, path, "-o", binary], check=True, capture_output=True)
    done = subprocess.run([binary], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
