"""Blocks that do the work of several and share memory, emulated: the bits of the original, and no race."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rpl_testkit
from rpl_codeobject.reading import read_code_objects
from rpl_optimize.interfaces.transformation import KernelSource
from rpl_optimize.source_meaning.front_end import FrontEnd
from rpl_optimize.source_meaning.reading import CompilerReading
from rpl_optimize.transform import apply_edits
from rpl_testkit.requirements import require
from rpl_transforms.coarsening import Coarsening

from .emu_program import DEVICE, cooperation_refusals, kernels_of

pytestmark = [pytest.mark.clang]

GROUPS, BLOCK, SIZE = 7, 256, 4 * 7 * 256
SOURCE = b"""#include <hip/hip_runtime.h>
extern "C" __global__ void turned(const int* in, int* out, int n) {
  __shared__ int part[256];
  const unsigned k = threadIdx.x, i = blockIdx.x * blockDim.x + k;
  part[k] = in[i] + n;
  __syncthreads();
  out[i] = part[255 - k] + blockIdx.x;
}
extern "C" __global__ void tiles(const int* in, int* out, int n) {
  __shared__ int part[256];
  const unsigned k = threadIdx.x;
  int sum = 0;
  for (int tile = 0; tile < n; ++tile) {
    part[k] = in[tile * 256 + k];
    __syncthreads();
    for (int j = 0; j < 256; j += 17) sum += part[(k + j) % 256] * (int)(blockIdx.x + 1);
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + k] = sum;
}
extern "C" __global__ void total(const int* in, int* out, int n) {
  __shared__ int part[256];
  const unsigned k = threadIdx.x;
  part[k] = in[blockIdx.x * blockDim.x + k];
  for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
    __syncthreads();
    if (k < s) part[k] += part[k + s];
  }
  __syncthreads();
  if (k >= (unsigned)n) return;
  out[blockIdx.x * blockDim.x + k] = part[0] + part[k];
}
"""
_BETWEEN = b"rpl_block += rpl_blocks, ::__syncthreads())"


def _edited(folder, headers, count):
    place = folder / "several.hip"
    place.write_bytes(SOURCE)
    words = (str(require("clang++-22")), "-x", "hip", "--offload-arch=gfx942")
    options = ("-nogpuinc", "-nogpulib", "-O3", "-I", str(headers))
    reading = CompilerReading(FrontEnd((*words, *options), place, place, folder), SOURCE)
    offered = Coarsening().propose(KernelSource(str(place), SOURCE, reading=reading))
    assert [(one.id, one.guards) for one in offered if not one.allowed] == []
    edits = [edit for one in offered if one.id.endswith(f"-{count}") for edit in one.edits]
    return apply_edits(SOURCE, edits)


@pytest.fixture
def code(compiled, headers, tmp_path):
    def built(name, text):
        place = tmp_path / f"{name}.hip"
        place.write_bytes(text)
        clang = require("clang++-22")
        return compiled(f"{name}.hsaco", [clang, *DEVICE, "-O3", f"-I{headers}", place])

    several = [_edited(tmp_path, headers, count) for count in (2, 4)]
    assert several[0].count(_BETWEEN) == 3
    hurried = several[0].replace(_BETWEEN, b"rpl_block += rpl_blocks)")
    texts = {"one-block": SOURCE, "two-blocks": several[0], "four-blocks": several[1], "hurried": hurried}
    return {name: built(name, text) for name, text in texts.items()}


@pytest.fixture(scope="module")
def headers():
    return Path(rpl_testkit.__file__).parent / "hipcc_standin" / "include"


def _launch(emulator, code, kernel):
    numbers = np.random.default_rng(34).integers(-1000, 1000, GROUPS * BLOCK, dtype=np.int32)
    result = emulator.output("result.bin")
    ran = emulator.launch(
        code,
        kernel,
        emulator.file("in.bin", numbers.tobytes()),
        f"zeros:{SIZE},out={result}",
        "i32:5",
        grid=str(GROUPS * BLOCK),
        block=str(BLOCK),
        options=("--timeout", "100", "--sanitize"),
    )
    return result.read_bytes(), ran.document


def test_blocks_in_turn_leave_the_bits_of_the_original(emulator, code):
    """Of seven blocks, which two and four do not divide; without the barrier between two it is a race."""
    assert len(kernels_of(code["one-block"])) == 3
    for kernel in ("turned", "tiles", "total"):
        known, _ = _launch(emulator, code["one-block"], kernel)
        assert len(set(known)) > 50
        for name in ("two-blocks", "four-blocks"):
            told, document = _launch(emulator, code[name], kernel)
            assert told == known, (kernel, name)
            assert not document.get("findings"), (kernel, name)
    _, document = _launch(emulator, code["hurried"], "turned")
    assert "race" in str(document.get("findings"))


def test_the_build_may_repeat_what_was_declared_and_no_more(code):
    """As an edit of its own the same machine code is refused, and so is the one without the barrier."""
    old, several, hurried = (read_code_objects(code[name]) for name in ("one-block", "two-blocks", "hurried"))

    for kernel in ("turned", "tiles", "total"):
        assert cooperation_refusals(old, several, kernel, repeated=True) == []
        assert cooperation_refusals(old, several, kernel, repeated=False)
    (why,) = cooperation_refusals(old, hurried, "turned", repeated=True)
    assert "without a barrier between" in why
