"""Loads and stores at chosen places, in memory and LDS: what they move and count, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

BYTES = 16384
LANES = range(64)
#: How far the lanes' places lie from the start.
PATTERNS = {
    "behind one another": [128 + 4 * j for j in LANES],
    "twelve bytes apart": [12 * j for j in LANES],
    "sixteen bytes apart, at an odd place": [77 + 16 * j for j in LANES],
    "all the same": [516] * 64,
    "rows of sixteen": [256 * (j // 16) + 4 * (j % 16) for j in LANES],
    "each sixteen the same": [64 * (j // 16) for j in LANES],
    "far apart": [128 * j for j in LANES],
    "falling": [4096 - 4 * j for j in LANES],
    "pieces that fall": [4096 - 64 * (j // 16) + 4 * (j % 16) for j in LANES],
    "aligned, random": [4 * int(k) for k in np.random.default_rng(1).integers(0, 2000, 64)],
    "random": [int(k) for k in np.random.default_rng(2).integers(0, 300, 64)],
}


def _lines(base, at, size, line):
    return len({byte // line for a in at for byte in range(base + a, base + a + size)})


def _conflicts(at):
    passes = 0
    for half in (at[:32], at[32:]):
        banks = [{a // 4 for a in half if a // 4 % 32 == bank} for bank in range(32)]
        passes += max(map(len, banks)) - 1
    return passes


def _words(memory, at, count):
    return [int.from_bytes(memory[at + 4 * k : at + 4 * k + 4], "little") for k in range(count)]


CASES = [(pattern, cpu, 64) for pattern in PATTERNS for cpu in ("", "avx2", "baseline")]
CASES += [("falling", "", 37), ("random", "", 37)]


@pytest.mark.parametrize(("pattern", "cpu", "lanes"), CASES)
def test_chosen_places_give_and_count_what_plain_loops_do(emulator, examples, pattern, cpu, lanes):
    at = PATTERNS[pattern][:lanes]
    memory = np.random.default_rng(3).integers(0, 256, BYTES).astype(np.uint8)
    arguments = (
        emulator.file("where", np.array(at, np.uint32)),
        f"{emulator.file('memory', memory)},out={emulator.output('after')}",
        f"zeros:{8192 * 4},out={emulator.output('out')}",
    )
    ran = emulator.launch(
        examples,
        "chosen_places",
        *arguments,
        grid=str(lanes),
        options=("--cpu", cpu) if cpu else (),
    )
    if ran.status == 69 and cpu:
        pytest.skip(ran.stderr)
    assert ran.status == 0, ran.stderr
    given, out = memory.tobytes(), np.fromfile(emulator.output("out"), np.uint32)
    after, lds = bytearray(given), bytearray(given)
    for j, a in enumerate(at):
        loaded = [w for n in (1, 2, 3, 4) for w in _words(given, a, n)]
        expected = loaded + _words(given, a + 40, 2) + _words(given, a + 16, 2) + loaded
        assert out[64 * j : 64 * j + 24].tolist() == expected
        own = np.arange(4 * j, 4 * j + 4, dtype=np.uint32).tobytes()
        after[a : a + 12] = own[:12]
        lds[a : a + 8] = own[:8]
    assert emulator.output("after").read_bytes() == after
    assert out[4096:].tobytes() == lds
    _check_counts(ran.document["opcodes"], at)


def _check_counts(opcodes, at):
    for words in (2, 3, 4):  # buffers begin with a page
        counted = opcodes[f"global_load_dwordx{words}"]
        assert counted["bytes"] == 4 * words * len(at)
        assert counted["lines_64b"] == _lines(0, at, 4 * words, 64)
        assert counted["lines_128b"] == _lines(0, at, 4 * words, 128)
    for opcode in ("ds_read_b64", "ds_read_b96", "ds_read_b128"):
        assert opcodes[opcode].get("bank_conflict_passes", 0) == _conflicts(at)
    assert opcodes["ds_read2_b64"].get("bank_conflict_passes", 0) == 2 * _conflicts(at)
