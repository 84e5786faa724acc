"""Drawn kernels give the same bytes by the emulator as the same text compiled for x86."""

from __future__ import annotations

import random
import re

import pytest

from .emu_corpus.random_kernels import DrawnKernel, drawn_kernel, source
from .random_program import LEVELS, Compared, compare, on_cpu

#: Nothing of these is special; the script draws others (tools/random-kernels).
FIRST = 1000
#: Calls, branches of lanes, barriers, shuffles, LDS, private memory, atomics, parts of divisions and roots.
DRAWN_FOR = (
    *("s_swappc_b64", "s_and_saveexec_b64", "s_barrier", "ds_bpermute_b32", "ds_read", "scratch_store"),
    *("global_atomic_smin", "ds_add_f32", "ds_and_b64", "v_div_fixup_f64", "v_sqrt_f32", "v_cvt_f16_f32"),
)


def test_ten_kernels_give_the_bytes_of_x86(emulator):
    kernels = [drawn_kernel(seed) for seed in range(10)]
    expected, compared = on_cpu(kernels, source(kernels), emulator.folder), Compared()
    for turn, level in enumerate(LEVELS):
        compare(kernels[turn::4], level, expected, emulator, compared)
    assert compared.differences == []
    assert compared.launches == 10


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_hundred_kernels_give_the_bytes_of_x86_at_every_level(emulator):
    compared = Compared()
    for first in range(FIRST, FIRST + 100, 25):
        kernels = [drawn_kernel(seed) for seed in range(first, first + 25)]
        expected = on_cpu(kernels, source(kernels), emulator.folder)
        for level in LEVELS:
            compare(kernels, level, expected, emulator, compared)
    print(f"{compared.launches} launches, {len(compared.opcodes)} opcodes: {sorted(compared.opcodes)}")
    assert compared.differences == []
    assert compared.launches == 400
    assert [one for one in DRAWN_FOR if not any(name.startswith(one) for name in compared.opcodes)] == []


def _with_another_operator(kernel: DrawnKernel) -> str:
    """One + - * & | ^ of two integers of its body becomes another one of these, somewhere."""
    body = kernel.text.index("KERNEL(")
    drawn = re.compile(r"\) ([-+*&|^]) u(?:32|64)\(")
    draw = random.Random(kernel.seed)
    place = draw.choice([found.start(1) for found in drawn.finditer(kernel.text, body)])
    other = draw.choice([one for one in "-+*&|^" if one != kernel.text[place]])
    return kernel.text[:place] + other + kernel.text[place + 1 :]


@pytest.mark.long
def test_another_operator_is_noticed(emulator):
    """Not each: `0 | x` is `0 ^ x`, and a word that many change may end as before."""
    kernels = [drawn_kernel(seed) for seed in range(FIRST, FIRST + 20)]
    text = "\n".join(['#include "drawn.h"', *map(_with_another_operator, kernels)])
    compared = Compared()
    compare(kernels, "O1", on_cpu(kernels, text, emulator.folder), emulator, compared)
    print(f"{len(compared.differences)} of 20 noticed")
    assert len(compared.differences) >= 12
