"""Damage recordings for minutes: the targets of tests/fuzz with other examples in every round.

    python tools/fuzz/long_run.py --minutes 5 --log fuzz.log

Each round runs every target with its own seed; a failure is logged with the seed that repeats it:
``RPL_FUZZ_EXAMPLES=N pytest tests/fuzz --hypothesis-profile=random --hypothesis-seed=SEED``. Exit 1 when a
round failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def one_round(seed: int, examples: int) -> tuple[bool, str]:
    """Whether all targets held, and what pytest said at the end (all it said when one did not)."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "900"]
    command += ["--hypothesis-profile=random", f"--hypothesis-seed={seed}", str(ROOT / "tests" / "fuzz")]
    environment = {**os.environ, "RPL_FUZZ_EXAMPLES": str(examples)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    held = done.returncode == 0
    return held, done.stdout.strip().splitlines()[-1] if held else done.stdout


def main() -> int:
    """Rounds until the time is over; the round that runs then is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to go on (default 5)")
    parser.add_argument(
        "--examples", type=int, default=200, help="examples per target and round (default 200)"
    )
    parser.add_argument("--first-seed", type=int, default=1, help="seed of the first round (default 1)")
    parser.add_argument("--log", type=Path, help="also append the lines to this file")
    options = parser.parse_args()
    begin, seed, failed = time.monotonic(), options.first_seed, 0
    while time.monotonic() - begin < 60 * options.minutes:
        held, text = one_round(seed, options.examples)
        failed += not held
        line = f"seed {seed}, {options.examples} examples per target: {'held' if held else 'FAILED'}: {text}"
        print(line, flush=True)
        if options.log:
            with options.log.open("a", encoding="utf-8") as log:
                log.write(line + "\n")
        seed += 1
    rounds = seed - options.first_seed
    print(f"{rounds} rounds in {time.monotonic() - begin:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
