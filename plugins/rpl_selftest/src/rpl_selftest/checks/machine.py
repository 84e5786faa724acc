"""What is installed, whether known work runs, what is left afterwards, and whether launches replay."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_core.files import read_regular
from rpl_selftest.bench import CAPTURE, SMALL, Bench
from rpl_selftest.check import Check, Finding, NotPossibleError, Outcome, judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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


# One launch captured, run again many times, and compared with itself and with wrong versions of it.


_KERNEL = "lds_tree"
_REPLAYS, _QUICK_REPLAYS = 20, 3
#: Of `rpl replay full-vm`: it ran, or the memory afterwards is another one (docs/REPLAY.md).
_RAN, _OTHER_MEMORY = 0, 1
#: A barrier that a launch did not need this time can be left out unnoticed (chosen).
_LEAST_NOTICED = 0.75
_EQUAL, _DIFFERENT, _NO_VERDICT = 0, 1, 75


def isolate(bench: Bench) -> Finding:
    capture = bench.once("isolated", lambda: _isolated(bench))
    answer = bench.rpl("capture", "verify", capture, "--json", statuses=(0, 65))
    return judged(
        answer.status == 0, f"whole: {answer.status == 0}; {answer.said}"[:200] if answer.status else "whole"
    )


def _isolated(bench: Bench) -> Path:
    folder = bench.folder / "isolated"
    application = bench.command(SMALL, bench.folder / "isolated.times")
    start = "import sys; from rpl_core.cli import main; sys.exit(main())"
    around = (sys.executable, "-c", start, "emu", "run", "--") if bench.emulated else ()
    bench.rpl("isolate", "--kernel", f"^{_KERNEL}", "-o", folder, "--json", "--", *around, *application)
    return folder


def _capture(bench: Bench) -> Path:
    """The one that was isolated here, else the one among the given programs."""
    try:
        return bench.once("isolated", lambda: _isolated(bench))
    except NotPossibleError as error:
        if bench.programs is not None and (bench.programs / CAPTURE).is_dir():
            return bench.programs / CAPTURE
        raise NotPossibleError(f"there is no capture: {error}") from None


def _where(bench: Bench) -> tuple[str, ...]:
    """The GPU itself; an emulated device has a replayer of its own."""
    return ("--replayer", str(bench.device)) if bench.emulated else ("--replayer", "hsa")


def replay(bench: Bench) -> Finding:
    return bench.once("replays", lambda: _replayed(bench))


def _replayed(bench: Bench) -> Finding:
    capture, replays = _capture(bench), _REPLAYS if bench.full else _QUICK_REPLAYS
    same, told = 0, {}
    for _ in range(replays):
        told = bench.rpl(
            "replay", "full-vm", capture, *_where(bench), "--json", statuses=(_RAN, _OTHER_MEMORY)
        ).json()
        if told["reproduced"] is None:
            reason = told["reproduced_reason"] or (told["error"] or {}).get("fact") or "nothing says why"
            raise NotPossibleError(
                f"whether the memory is the same is not known: {bench.shown(str(reason), 200)}"
            )
        same += told["reproduced"]
    where = told["environment"]
    runtime = " ".join(
        str(where[key]) for key in ("runtime", "rocm_version", "interface_version") if where[key]
    )
    found = f"{same} of {replays} left the captured memory ({told['capture']['hash']})"
    found = f"{found}; {bench.shown(runtime, 80)}"
    return judged(same == replays, found, same=same, replays=replays)


def compare(bench: Bench) -> Finding:
    """The captured code against itself; wrong versions of it are tried before two are called equal."""
    capture = _capture(bench)
    if replay(bench).outcome is Outcome.REFUTED:  # both sides may be wrong in the same way
        raise NotPossibleError(
            "replays leave other memory than the launch did, so nothing rests on equal ones"
        )
    code = capture / "kernel.hsaco"
    words = ("replay", "compare", capture, code, code, *_where(bench), "--captured-input-only", "--json")
    told = bench.rpl(*words, statuses=(_EQUAL, _DIFFERENT, _NO_VERDICT)).json()
    controls = told["controls"] or ()
    if told["verdict"] != "different" and not controls:
        raise NotPossibleError(bench.shown(str(told["reason"]), 200))
    share = told["found_share"]
    survived = [
        bench.shown(str(control["edit"]), 60) for control in controls if control["outcome"] == "survived"
    ]
    noticed = "none" if share is None else f"{share:.0%}"
    found = f"{told['verdict']}; {noticed} of {len(controls)} wrong versions noticed"
    found += f"; not: {', '.join(survived[:3])}" if survived else ""
    holds = told["verdict"] == "equal" and share is not None and share >= _LEAST_NOTICED
    return judged(holds, found, controls=len(controls), noticed=share)


REPLAYING = (
    Check(
        "isolate",
        f"rpl isolate of one launch of {_KERNEL}; rpl capture verify",
        "a whole capture",
        "docs/REPLAY.md",
        isolate,
        essential=False,
    ),
    Check(
        "replay",
        f"rpl replay full-vm, {_REPLAYS} times ({_QUICK_REPLAYS} with --quick)",
        "each leaves the memory that the captured launch left, by its hash",
        "docs/REPLAY.md",
        replay,
        essential=False,
    ),
    Check(
        "replay-compare",
        "rpl replay compare of the captured code with itself, with its controls",
        f"equal, and {_LEAST_NOTICED:.0%} of the wrong versions that change anything noticed",
        "docs/REPLAY.md",
        compare,
        essential=False,
    ),
)
