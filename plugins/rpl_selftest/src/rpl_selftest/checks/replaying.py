"""One launch captured, run again many times, and compared with itself and with wrong versions of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rpl_selftest.bench import CAPTURE, SMALL
from rpl_selftest.check import Check, Finding, NotPossibleError, Outcome, judged

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_selftest.bench import Bench

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
    survived = [bench.shown(str(one["edit"]), 60) for one in controls if one["outcome"] == "survived"]
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
