"""Running one foreign command so that nothing of it is left behind: not a process, not half a log.

The command gets no shell, its own session, a time limit, and its output goes to a log file and to a line
sink, never to rpl's standard output. What the command means is left to the callers.
"""

from __future__ import annotations

from rpl_core.process.request import ProcessRequest, ProcessResult
from rpl_core.process.runner import run_command

__all__ = ["ProcessRequest", "ProcessResult", "run_command"]
