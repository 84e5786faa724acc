"""What is installed, whether the program of known work runs, and what is left when all is over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_core.files.bounded import read_regular
from rpl_selftest.bench import SMALL
from rpl_selftest.check import Check, Finding, NotPossibleError, judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rpl_selftest.bench import Bench

#: What a profile with counters needs; other parts of the doctor's list concern commands of their own.
_NEEDED = ("python", "runs-directory", "device-plugin", "rocprofv3", "gpu-access", "counters")
_CLOCK_SETTING = "power_dpm_force_performance_level"
_MOST_BYTES = 1 << 16
_SHOWN = 5


def doctor(bench: Bench) -> Finding:
    reports = bench.rpl("doctor", "--json", statuses=(0, 69)).json()
    needed = ("python", "runs-directory", "emulator") if bench.emulated else _NEEDED
    broken = [name for name in needed if reports.get(name, {}).get("status") == "broken"]
    missing = [name for name in needed if reports.get(name, {}).get("status") not in ("ok", "broken")]
    if missing and not broken:
        facts = (f"{name}: {reports.get(name, {}).get('found', 'not looked at')}" for name in missing)
        raise NotPossibleError("; ".join(facts))
    return judged(
        not broken, f"broken: {', '.join(broken)}" if broken else f"{len(needed)} of {len(needed)} are ok"
    )


def known_results(bench: Bench) -> Finding:
    """The program compares its results with those of the host and ends with 1 where they differ."""
    if bench.emulated:
        return judged(True, bench.timing().profile["provenance"]["origin"] + ": all results as on the host")
    program, _ = bench.build()
    answer = bench.run(program, *bench.command(SMALL, bench.folder / "small.times")[1:])
    said = bench.shown(answer.stdout.decode("utf-8", "replace").strip(), 100)
    return judged("wrong 0 of" in said, said or "it printed nothing")


def processes_left(bench: Bench) -> Finding:
    left = list(_processes_of(bench))
    shown = f": {', '.join(left[:_SHOWN])}" if left else ""
    return judged(not left, f"{len(left)} left{shown}", left=len(left))


def _processes_of(bench: Bench) -> Iterator[str]:
    """Names of processes that work in the folder or were started with a file of it. Never this one."""
    own = {os.getpid(), os.getppid()}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in own:
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            place = (entry / "cwd").readlink()
            name = (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:  # it ended, or is another user's
            continue
        folder = bench.folder
        inside = place.is_relative_to(folder) or os.fsencode(str(folder)) + b"/" in words
        if inside:
            yield f"{bench.shown(name, 40)} ({entry.name})"


def files_left(bench: Bench) -> Finding:
    """Everything that was started had its own folder for temporary files, which must be empty again."""
    left = sorted(path.name for path in bench.temporary.iterdir())
    shown = f": {', '.join(bench.shown(name, 40) for name in left[:_SHOWN])}" if left else ""
    return judged(not left, f"{len(left)} left{shown}", left=len(left))


def clock_settings() -> Mapping[str, str]:
    """The clock setting of each card that the driver shows, by its place in sysfs."""
    found = {}
    for path in sorted(Path("/sys/class/drm").glob(f"card*/device/{_CLOCK_SETTING}")):
        try:
            found[path.parts[-3]] = read_regular(path, _MOST_BYTES).decode("utf-8", "replace").strip()
        except RplError:
            continue
    return found


def clocks_left(bench: Bench) -> Finding:
    if not bench.before:
        raise NotPossibleError(f"no card of this machine shows a {_CLOCK_SETTING}")
    now = clock_settings()
    changed = [card for card, setting in bench.before.items() if now.get(card) != setting]
    return judged(not changed, f"{len(changed)} of {len(bench.before)} cards changed", changed=len(changed))


BEFORE = (
    Check(
        "doctor",
        "rpl doctor --json",
        "nothing that profiles and counters need is missing or broken",
        "docs/troubleshooting.md",
        doctor,
    ),
    Check(
        "known-work",
        "the program of known work, built here or given",
        "0 wrong results",
        "docs/first-day.md",
        known_results,
    ),
)
LEFT_BEHIND = (
    Check(
        "left-processes",
        "a look at /proc after all commands",
        "0 processes of this self-test are left",
        "docs/ARCHITECTURE.md",
        processes_left,
    ),
    Check(
        "left-files",
        "a look at the folder that all commands had for temporary files",
        "0 files are left",
        "docs/ARCHITECTURE.md",
        files_left,
    ),
    Check(
        "left-clocks",
        f"{_CLOCK_SETTING} of each card, before and after",
        "as before on every card",
        "docs/first-day.md",
        clocks_left,
        essential=False,
    ),
)
