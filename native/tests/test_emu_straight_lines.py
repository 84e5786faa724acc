"""Counters of kernels that run straight through: each wave executes what llvm-objdump lists, once."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

import pytest

from rpl_emu.rocpd_file import amd_counters
from rpl_testkit.requirements import require

from .emu_program import CORPUS, DEVICE

WAVES = 12
#: Kernel: FLOPs of a wave as counters have them (docs/reference/counters.md, 2.1 and 2.4), worked out by hand
#: from the source: 64 lanes, 2 for each FMA; matrices 2 * 32 * 32 * 8. A packed operation counts as one.
KERNELS = {
    "copy": 0,
    "saxpy": 64 * 2,
    "fma_f32": 64 * 16 * 2,
    "packed_fma_f32": 64 * 16 * 2,
    "add_f64": 64 * 16,
    "mfma_f16": 8 * 2 * 32 * 32 * 8,
}


@pytest.fixture(scope="module")
def straight(compiled):
    return compiled("straight.hsaco", [require("clang++-22"), *DEVICE, "-O3", CORPUS / "straight.hip"])


def _listed(code, kernel):
    command = [require("llvm-objdump-22"), "-d", "--mcpu=gfx942", f"--disassemble-symbols={kernel}", code]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^\t(\w+)", text, re.MULTILINE)
    ended = names.index("s_endpgm") + 1  # what follows fills the line of the instruction cache
    return Counter(re.sub(r"_(e32|e64)$", "", name) for name in names[:ended])


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_wave_executes_what_is_listed(kernel, straight, emulator):
    sizes = {"grid": str(64 * WAVES), "block": "256"}
    ran = emulator.launch(straight, kernel, "zeros:65536", "zeros:131072", **sizes)
    assert ran.status == 0, ran.stderr
    listed = _listed(straight, kernel)
    executed = {name: counts["executed"] for name, counts in ran.document["opcodes"].items()}
    assert executed == {name: WAVES * count for name, count in listed.items()}
    counters = {name: found["value"] for name, found in amd_counters(ran.document).items()}
    matrices = sum(count for name, count in listed.items() if name.startswith("v_mfma"))
    vector = sum(count for name, count in listed.items() if name.startswith("v_"))
    assert counters["SQ_WAVES"] == WAVES
    assert (counters["SQ_INSTS_VALU"], counters["SQ_INSTS_MFMA"]) == (WAVES * vector, WAVES * matrices)
    assert counters["SQ_INSTS_SALU"] == WAVES * sum(
        count
        for name, count in listed.items()
        if re.match(r"s_(?!load|waitcnt|nop|endpgm|branch|cbranch)", name)
    )
    assert _flops(counters, matrices) == WAVES * KERNELS[kernel]


def _flops(counters, matrices):
    """Section 2.1 of docs/reference/counters.md; a matrix instruction here is 2 * 32 * 32 * 8."""
    weights = {"ADD": 1, "MUL": 1, "TRANS": 1, "FMA": 2}
    vector = sum(
        64 * weight * counters[f"SQ_INSTS_VALU_{kind}_{type_}"]
        for kind, weight in weights.items()
        for type_ in ("F16", "F32", "F64")
    )
    return vector + WAVES * matrices * 2 * 32 * 32 * 8
