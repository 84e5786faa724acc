"""(5) What recording costs a program of 100 000 tiny launches: its own clock, without and with it."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

from bench import build, machine, record, run

LAUNCHES, ROUNDS = 100_000, 7


def main() -> int:
    scratch = Path(sys.argv[1])
    program = build(scratch)
    times: dict[str, list[float]] = {"alone": [], "kernels": [], "kernels and calls": []}
    dispatches, reading_s = [], []
    for number in range(ROUNDS):
        times["alone"].append(run(program, "many", LAUNCHES)[0]["loop_s"])
        for name, calls in (("kernels", False), ("kernels and calls", True)):
            begin = time.perf_counter()
            trace, (printed,), wall_s = record(
                scratch / f"many-{number}-{calls}", program, "many", LAUNCHES, calls=calls
            )
            reading_s.append(time.perf_counter() - begin - wall_s)
            times[name].append(printed["loop_s"])
            dispatches.append(len(trace.dispatches))
    middle = {name: statistics.median(values) for name, values in times.items()}
    found = {
        "machine": machine(),
        "launches": LAUNCHES,
        "loop_s": times,
        "dispatches": dispatches,
        "reading_s": reading_s,
        "nanoseconds_per_launch": {name: value / LAUNCHES * 1e9 for name, value in middle.items()},
        "ratio": {name: value / middle["alone"] for name, value in middle.items()},
    }
    Path(os.environ.get("OUT", "."), "overhead.json").write_text(json.dumps(found))
    print({name: found[name] for name in ("nanoseconds_per_launch", "ratio", "dispatches")})
    return 0


if __name__ == "__main__":
    sys.exit(main())
