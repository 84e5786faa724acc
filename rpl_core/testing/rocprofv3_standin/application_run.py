"""Run the application as a child: real exit codes, real signals, real process group.

The profiler becomes the application by exec, so signals reach it; here they are passed on.
"""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Final

import attrs

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


@attrs.frozen
class ApplicationRun:
    """How the application ended; `signal_number` None when it exited by itself."""

    pid: int
    exit_code: int
    signal_number: int | None = None


def run_application(command: Sequence[str], environment: Mapping[str, str]) -> ApplicationRun:
    """Start `command` and wait for its end. OSError when it can't be started."""
    with subprocess.Popen(command, env=dict(environment)) as child:

        def pass_on(number: int, _frame: FrameType | None) -> None:
            child.send_signal(number)

        former = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
        try:
            code = child.wait()
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
    if code < 0:
        return ApplicationRun(child.pid, 128 - code, -code)
    return ApplicationRun(child.pid, code)


def die_by(number: int) -> None:
    """End this process by signal `number`, so that the caller sees what became of the application."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
