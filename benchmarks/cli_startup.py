"""CPU time of `rpl --version` and `rpl --help`, beside that of a bare interpreter.

Prints the median of several starts (user + system time of the child process). Targets: 60 ms for
--version and 100 ms for --help on a small virtual machine. The ratio compares across machines.

    python benchmarks/cli_startup.py [--starts N] [--json]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys

START = "import sys; from rpl_core.cli import main; sys.argv[0] = 'rpl'; sys.exit(main())"
BARE = (sys.executable, "-c", "pass")
TARGETS_MS = {"--version": 60.0, "--help": 100.0}


def cpu_ms(command: tuple[str, ...]) -> float:
    """User and system time of one execution."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000.0 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def median_cpu_ms(command: tuple[str, ...], starts: int) -> float:
    cpu_ms(command)  # the first start fills the caches of the system
    return statistics.median(cpu_ms(command) for _ in range(starts))


def measure(starts: int) -> dict[str, dict[str, float]]:
    """Per command: milliseconds, ratio to the bare interpreter, target."""
    bare = median_cpu_ms(BARE, starts)
    rows = {"(bare interpreter)": {"cpu_ms": bare, "ratio": 1.0}}
    for option, target in TARGETS_MS.items():
        spent = median_cpu_ms((sys.executable, "-c", START, option), starts)
        rows[option] = {"cpu_ms": spent, "ratio": spent / bare if bare else 0.0, "target_ms": target}
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.starts)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for name, row in rows.items():
            target = f"   target {row['target_ms']:.0f} ms" if "target_ms" in row else ""
            print(f"{name:<20}{row['cpu_ms']:7.1f} ms CPU   {row['ratio']:4.1f} x{target}")
    return int(any(row["cpu_ms"] > row.get("target_ms", row["cpu_ms"]) for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
