"""Run the application as a child, with real exit codes and signals; misbehave where a test asks for it."""

from __future__ import annotations

import fcntl
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from rpl_core.values import frozen

# The child.

_PASSED_ON: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


@frozen
class ApplicationRun:
    """How the application ended; `signal_number` None when it exited by itself."""

    pid: int
    exit_code: int
    signal_number: int | None = None


class _SignalPassing:
    """Passes signals on to a child; those that arrive before it exists wait for it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._former = {
            number: signal.signal(number, self._receive)
            for number in _PASSED_ON
            # What the caller had ignored (nohup) stays ignored, for the child as well.
            if signal.getsignal(number) is not signal.SIG_IGN
        }

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)

    def attach(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        while self._early:
            child.send_signal(self._early.pop(0))

    def end(self) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)


def run_application(command: Sequence[str], environment: Mapping[str, str]) -> ApplicationRun:
    """Start `command` and wait for its end. OSError when it can't be started."""
    passing = _SignalPassing()
    try:
        with subprocess.Popen(command, env=dict(environment)) as child:
            passing.attach(child)
            code = child.wait()
    finally:
        passing.end()
    if code < 0:
        return ApplicationRun(child.pid, 128 - code, -code)
    return ApplicationRun(child.pid, code)


def die_by(number: int) -> None:
    """End this process by signal `number`, so that the caller sees what became of the application."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


# Misbehaviour on demand, so that tests see how a caller copes with a profiler that fails.
#
# `RPL_STANDIN_MISBEHAVE` or the scenario key `misbehaviour` holds `KIND[=VALUE][:WHEN]`, several separated
# by `;`. KIND: `hang`, `hang_hard` (ignores SIGTERM and SIGINT), `abort`, `no_output`, `truncated`,
# `empty`, `disk_full`, `slow=SECONDS`, `unavailable=COUNTER,...`, `exit=CODE`, for thread traces
# `att_empty`, `att_data_lost`, `att_undecoded`, for PC sampling `pc_unsupported`, for kernel replay
# `replay_declined=REASON` (launches of the first kernel). WHEN: `trace`, `counters` or `run=N` (needs
# `RPL_STANDIN_STATE`, runs count from 1).

_KINDS: Final = (
    "hang",
    "hang_hard",
    "abort",
    "no_output",
    "truncated",
    "empty",
    "disk_full",
    "slow",
    "unavailable",
    "exit",
    "att_empty",
    "att_data_lost",
    "att_undecoded",
    "pc_unsupported",
    "replay_declined",
)


@frozen
class Misbehaviour:
    """One failure: what, with which value, and when (empty: always)."""

    kind: str
    value: str = ""
    when: str = ""


def parse_misbehaviours(text: str) -> tuple[Misbehaviour, ...]:
    """Read the notation above. ValueError names what is not understood."""
    return tuple(_parse_one(part.strip()) for part in text.split(";") if part.strip())


def _parse_one(text: str) -> Misbehaviour:
    action, _, when = text.partition(":")
    kind, _, value = action.partition("=")
    if kind not in _KINDS:
        raise ValueError(f"misbehaviour {kind!r} is not one of {', '.join(_KINDS)}")
    if when and when not in ("trace", "counters") and not when.startswith("run="):
        raise ValueError(f"condition {when!r} is not trace, counters or run=N")
    return Misbehaviour(kind, value, when)


def active_misbehaviours(
    given: tuple[Misbehaviour, ...], *, counting: bool, run: int | None
) -> dict[str, str]:
    """Return kind to value of those that apply to this run."""
    here = {"", "counters" if counting else "trace", f"run={run}"}
    return {item.kind: item.value for item in given if item.when in here}


# Which run this is: a counter kept in a file, so that repeated runs differ in a repeatable way.


def next_run_index(environment: Mapping[str, str]) -> int | None:
    """Count this run in the file that `RPL_STANDIN_STATE` names, from 1; None without it."""
    name = environment.get("RPL_STANDIN_STATE")
    if not name:
        return None
    with Path(name).open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        index = int(file.read() or 0) + 1
        file.truncate(0)
        file.write(str(index))
    return index


def run_seed(environment: Mapping[str, str], index: int | None, output_directory: str | None) -> str:
    """Return the seed of this run's jitter.

    Runs differ by their index or, without a counter file, by the last part of their output directory; so
    the same series of runs repeats exactly.
    """
    base = environment.get("RPL_STANDIN_SEED", "0")
    place = Path(output_directory).name if output_directory else ""
    return f"{base}/{place if index is None else index}"
