"""Running one foreign command so that nothing of it is left behind: not a process, not half a log.

The command gets no shell, its own session, a time limit, and its output goes to a log file and to a line
sink, never to rpl's standard output. What the command means is left to the callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rpl_core.process.request import ProcessRequest, ProcessResult
    from rpl_core.process.runner import run_command

__all__ = ["ProcessRequest", "ProcessResult", "run_command"]


def __getattr__(name: str) -> Any:
    """The public names on first use: analysing a recording runs no command, and only makes directories."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "runner" if name == "run_command" else "request"
    return getattr(import_module(f"{__name__}.{module}"), name)
