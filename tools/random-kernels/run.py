"""Draws kernels and compares what the emulator computes, at four levels, with the same text as x86 code.

    python tools/random-kernels/run.py build/native/emu/rpl-emu [--seeds 500] [--in-turn] [--record FILE]

Prints what differs, and ends with 1 if anything does. ``--record`` writes figures and differences as JSON;
those of the project's own run are in compared.json beside it. A seed gives the same kernel each time:
``--first SEED --seeds 1 --levels O3 --keep FOLDER`` leaves its text, the code object and both results there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "native"))
from tests.emu_corpus.random_kernels import drawn_kernel, source
from tests.emu_program import Emulator
from tests.random_program import LEVELS, Compared, compare, on_cpu

#: In one translation unit.
TOGETHER = 25


def main() -> int:
    """Draw, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("emulator", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS)
    parser.add_argument("--in-turn", action="store_true", help="each kernel at one of the levels only")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    compared = Compared()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        end = given.first + given.seeds
        for first in range(given.first, end, TOGETHER):
            kernels = [drawn_kernel(seed) for seed in range(first, min(first + TOGETHER, end))]
            expected = on_cpu(kernels, source(kernels), folder)
            for turn, level in enumerate(given.levels):
                part = kernels[turn :: len(given.levels)] if given.in_turn else kernels
                compare(part, level, expected, Emulator(given.emulator.resolve(), folder), compared)
            done = kernels[-1].seed + 1 - given.first
            differ = len(compared.differences)
            print(f"{done} kernels, {compared.launches} launches, {differ} differ", flush=True)
            if given.record:  # after each part: a run that is stopped leaves what it had
                record(given.record, given, done, compared)
    for name, level, how in compared.differences:
        print(f"{name} -{level}: {how}")
    return 1 if compared.differences else 0


def record(path: Path, given: argparse.Namespace, done: int, compared: Compared) -> None:
    """What was compared so far, and by which compiler."""
    compiler = subprocess.run(["clang++-22", "--version"], capture_output=True, text=True, check=True)
    figures = {
        "compiler": compiler.stdout.splitlines()[0],
        "first_seed": given.first,
        "kernels": done,
        "levels": list(given.levels),
        "each_kernel_at": "one level in turn" if given.in_turn else "every level",
        "launches": compared.launches,
        "wave_instructions": compared.opcodes.total(),
        "executed": dict(sorted(compared.opcodes.items())),
        "differences": [
            {"kernel": name, "level": level, "how": how} for name, level, how in compared.differences
        ],
    }
    path.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
