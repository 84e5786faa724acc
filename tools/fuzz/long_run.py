"""Damage recordings for minutes: the targets of tests/fuzz with other examples in every round.

    python tools/fuzz/long_run.py --minutes 60 --log fuzz.log

Each round runs every target with its own seed, and says how many targets, seconds and MiB it took; a
failure is logged with the seed that repeats it:
``RPL_FUZZ_EXAMPLES=N pytest tests/fuzz --hypothesis-profile=random --hypothesis-seed=SEED``. Exit 1 when a
round failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def one_round(seed: int, examples: int) -> tuple[bool, str]:
    """Whether all targets held, and what they took (all that pytest said when one did not)."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["--timeout", "900"]
    command += ["--hypothesis-profile=random", f"--hypothesis-seed={seed}", str(ROOT / "tests" / "fuzz")]
    environment = {**os.environ, "RPL_FUZZ_EXAMPLES": str(examples)}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if child.returncode:
        return False, text
    cpu = used.ru_utime + used.ru_stime
    outcome = text.strip().splitlines()[-1]
    return (
        True,
        f"{outcome}, {examples} examples per target, {cpu:.0f} CPU s, at most {used.ru_maxrss >> 10} MiB",
    )


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
        _say(f"seed {seed}: {'held' if held else 'FAILED'}: {text}", options.log)
        seed += 1
    rounds = seed - options.first_seed
    _say(f"{rounds} rounds in {time.monotonic() - begin:.0f} s, {failed} failed", options.log)
    return 1 if failed else 0


def _say(line: str, log: Path | None) -> None:
    print(line, flush=True)
    if log:
        with log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
