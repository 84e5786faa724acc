"""Running one foreign command so that nothing of it is left behind: not a process, not half a log.

The command gets no shell, its own session, a time limit, and its output goes to a log file and to a line
sink, never to rpl's standard output. What the command means is left to the callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rpl_core.process.outcome import ProcessRequest, ProcessResult

if TYPE_CHECKING:
    from rpl_core.process.runner import run_command as run_command

__all__ = ["ProcessRequest", "ProcessResult", "run_command"]


def __getattr__(name: str) -> Any:
    """``run_command`` on first use: analysing a recording runs no command, and only makes directories."""
    if name != "run_command":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rpl_core.process.runner import run_command

    return run_command
