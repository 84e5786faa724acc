"""What is to be run, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from rpl_core.values import frozen

__all__ = ["ProcessRequest", "ProcessResult"]


@frozen
class ProcessRequest:
    """One command for ``run_command``.

    ``environment`` is complete; ``None`` passes rpl's own on. ``working_directory`` is where the command
    starts; ``None``: where rpl is. A program given by a relative path is looked up there. ``what`` names the
    command in messages. With ``stdout_path`` its standard output goes there alone, as bytes and no further
    than a log may grow; the log and the sink get the rest. ``memory_limit_bytes`` holds for the sum over all
    processes that the command starts, whatever session they are in: memory of their own, that is no file's.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] | None = attrs.field(default=None, repr=False)  # may hold secrets
    log_path: Path | None = None
    time_limit_s: float | None = None
    what: str = "the application"
    working_directory: Path | None = None
    stdout_path: Path | None = None
    memory_limit_bytes: int | None = None


@frozen
class ProcessResult:
    """How a command ended by itself. Exactly one of ``exit_status`` and ``signal`` is given.

    ``wall_s`` runs from just before the start to the end of the first process. ``orphans`` counts
    processes that it left running and that were stopped. ``log_problem`` says why the log is incomplete,
    ``stdout_problem`` the same of the file at ``stdout_path``.
    """

    exit_status: int | None
    signal: int | None
    wall_s: float
    orphans: int = 0
    log_problem: str | None = None
    stdout_problem: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.exit_status == 0
