"""Compare the emulator's counters with those of this machine's MI300X, program by program.

    python tools/calibrate_emulator.py FOLDER [PROGRAM ...]

PROGRAM is a source of examples/testbed (default: each). Needs ROCm (hipcc, rocprofv3), a GPU of gfx942, and
rpl with its native part built (``make native``). Each program is built once, recorded by rocprofv3 in as
many runs as its counters need, and run on the emulated device; FOLDER keeps it all. Exit 1: something
differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from rpl_emu.rocpd_file import counter_map

TESTBED = Path(__file__).resolve().parents[1] / "examples" / "testbed"
#: Counters of the sequencer that one run of rocprofv3 takes (docs/reference/counters.md).
COUNTERS_A_RUN = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    options = parser.parse_args()
    names = options.programs or sorted(path.stem for path in TESTBED.glob("*.hip"))
    differing = [name for name in names if not _agrees(name, options.folder.resolve() / name)]
    print(
        f"{len(names) - len(differing)} of {len(names)} programs agree"
        + "".join(f", not {x}" for x in differing)
    )
    return 1 if differing else 0


def _agrees(name: str, folder: Path) -> bool:
    """Whether every counter of every kernel is the same on both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    program, recorded, emulated = folder / name, folder / "recorded", folder / "emulated"
    _run("hipcc", "--offload-arch=gfx942", "-O3", TESTBED / f"{name}.hip", "-o", program)
    counters = list(counter_map()["counters"])
    for first in range(0, len(counters), COUNTERS_A_RUN):
        group = counters[first : first + COUNTERS_A_RUN]
        place: list[str | Path] = ["--output-directory", recorded, "--output-file", f"from_{first}"]
        _run("rocprofv3", "--pmc", *group, "--output-format", "csv", *place, "--", program)
    rpl: list[str | Path] = [Path(sys.executable).with_name("rpl")]
    _run(*rpl, "profile", "--device", "gfx942-emu", "--roofline", "-o", emulated, "--", program)
    print(f"== {name}", flush=True)
    done = subprocess.run([*rpl, "emu", "calibrate", emulated, recorded], check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.returncode)
    return done.returncode == 0


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-3000:]}"
        )


if __name__ == "__main__":
    raise SystemExit(main())
