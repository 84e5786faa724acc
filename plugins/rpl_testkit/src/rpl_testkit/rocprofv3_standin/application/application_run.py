"""Run the application as a child: real exit codes, real signals, real process group.

The profiler becomes the application by exec, so signals reach it; here they are passed on.
"""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Final

from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

__all__ = ["ApplicationRun", "die_by", "run_application"]

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
