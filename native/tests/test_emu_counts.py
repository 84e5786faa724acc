"""Counts of divergent, looping and atomic kernels, against an interpreter of its own.

``wave_interpreter`` reads what llvm-objdump prints and was written without the emulator. Compared are how
often each place was executed and by how many lanes, bytes, cache lines and LDS bank conflicts of each
opcode, AMD's counters, and what memory holds.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections import defaultdict
from typing import Any

import attrs
import pytest

from rpl_emu.rocpd_file import amd_counters
from rpl_testkit.requirements import require

from .emu_corpus.counted_kernels import (
    INPUTS,
    OUTPUTS,
    SHARED,
    CountedKernel,
    counted_kernel,
    source,
)
from .emu_program import DEVICE
from .wave_interpreter import Count, Interpreter

GIVEN = random.Random(35).randbytes(4 * INPUTS)
#: What an opcode's counts say even if they are 0.
ALWAYS = ("executed", "lanes")
#: Counter: which opcodes it counts (docs/reference/counters.md, section 2).
AMD = {
    "SQ_INSTS_VALU": "v_",
    "SQ_INSTS_SALU": "s_(?!load|waitcnt|nop|endpgm|branch|cbranch|barrier)",
    "SQ_INSTS_SMEM": "s_load",
    "SQ_INSTS_LDS": "ds_",
    "SQ_INSTS_VMEM_RD": "global_load",
}


@attrs.frozen
class Compared:
    """One kernel: opcodes of places by their address, sums by opcode."""

    places: tuple[dict[int, tuple[str, int, int]], ...]
    opcodes: tuple[dict[str, dict[str, int]], ...]
    memory: tuple[list[bytes], ...]
    document: dict[str, Any]


def _compared(emulator, code, one: CountedKernel, threads: int) -> Compared:
    items = one.groups * one.block
    buffers = [bytearray(GIVEN), bytearray(4 * OUTPUTS * items), bytearray(4 * SHARED)]
    outputs = [emulator.output(name) for name in ("out", "shared")]
    ran = emulator.launch(
        code,
        one.name,
        emulator.file("given", GIVEN),
        *(f"zeros:{len(buffer)},out={path}" for buffer, path in zip(buffers[1:], outputs, strict=True)),
        grid=str(items),
        block=str(one.block),
        options=("--places", "--threads", str(threads)),
    )
    assert ran.status == 0, ran.stderr
    interpreter = Interpreter(code, one.name, buffers, one.lds_bytes)
    counts, sums = interpreter.run(one.groups, one.block), defaultdict(Count)
    for at, count in counts.items():
        for key, value in attrs.asdict(count).items():
            name = interpreter.lines[at].name
            setattr(sums[name], key, getattr(sums[name], key) + value)
    by_opcode = {
        name: {key: value for key, value in attrs.asdict(sum_).items() if value or key in ALWAYS}
        for name, sum_ in sums.items()
    }
    expected = {at: (interpreter.lines[at].name, count.executed, count.lanes) for at, count in counts.items()}
    places = {
        int(one["at"], 16): (one["opcode"], one["executed"], one["lanes"]) for one in ran.document["places"]
    }
    return Compared(
        (places, expected),
        (ran.document["opcodes"], by_opcode),
        ([path.read_bytes() for path in outputs], [bytes(buffer) for buffer in buffers[1:]]),
        ran.document,
    )


def _check(emulator, kernels, level) -> set[str]:
    """Which opcodes were executed."""
    text, code = emulator.output("counted.hip"), emulator.output(f"counted{level}.hsaco")
    text.write_text(source(kernels))
    subprocess.run([require("clang++-22"), *DEVICE, level, text, "-o", code], check=True)
    seen = set()
    for k, one in enumerate(kernels):
        compared = _compared(emulator, code, one, 1 + k % 2)
        for emulated, interpreted in (compared.places, compared.opcodes, compared.memory):
            assert emulated == interpreted, one.name
        opcodes = compared.opcodes[1]
        counters = {name: found["value"] for name, found in amd_counters(compared.document).items()}
        for counter, names in AMD.items():
            executed = sum(count["executed"] for name, count in opcodes.items() if re.match(names, name))
            assert counters[counter] == executed, (one.name, counter)
        seen |= set(opcodes)
        seen |= {"conflicts" for count in opcodes.values() if count.get("bank_conflict_passes")}
    return seen


def test_nine_kernels_count_what_the_interpreter_counts(emulator):
    seen = set()
    for first, level in ((0, "-O1"), (3, "-O2"), (6, "-O3")):
        seen |= _check(emulator, [counted_kernel(seed) for seed in range(first, first + 3)], level)
    assert {
        "conflicts",
        "s_cbranch_execz",
        "s_cbranch_execnz",
        "ds_cmpst_rtn_b32",
        "global_atomic_add",
    } <= seen


@pytest.mark.long
@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3", "-Os"])
def test_twenty_more_kernels_count_what_the_interpreter_counts(emulator, level):
    seen = _check(emulator, [counted_kernel(seed) for seed in range(100, 120)], level)
    print(f"{level}: {len(seen)} opcodes: {sorted(seen)}")
    assert {"conflicts", "ds_cmpst_rtn_b32", "global_atomic_umax", "v_readlane_b32"} <= seen
