"""What is to be run, how it ended, and what to tell of it."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

import attrs

from rpl_core.errors import ApplicationError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.values import frozen


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


_SHELL_SIGNAL_BASE = 128  # a shell reports a child killed by signal n as exit status 128 + n
_MEANINGS = {
    signal.SIGABRT: "it aborted",
    signal.SIGBUS: "bus error",
    signal.SIGFPE: "arithmetic error",
    signal.SIGILL: "illegal instruction",
    signal.SIGKILL: "killed, perhaps because memory ran out",
    signal.SIGSEGV: "segmentation fault",
}


class ApplicationExitError(ApplicationError):
    """The application failed; ``exit_status`` or ``signal`` keeps how, the other one is ``None``."""

    def __init__(
        self,
        result: ProcessResult,
        *,
        what: str = "the application",
        cause: str | None = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(f"{what} {describe_exit(result)}", cause=cause, next_step=next_step)
        self.exit_status = result.exit_status
        self.signal = result.signal


def describe_exit(result: ProcessResult) -> str:
    """For example ``exited with status 3`` or ``was ended by SIGSEGV (segmentation fault)``."""
    if result.signal is not None:
        return f"was ended by {_signal_name(result.signal) or f'signal {result.signal}'}"
    status = result.exit_status or 0
    text = f"exited with status {status}"
    if status > _SHELL_SIGNAL_BASE and (name := _signal_name(status - _SHELL_SIGNAL_BASE)):
        return f"{text} (as after {name})"
    return text


def ended_by(result: ProcessResult, number: signal.Signals) -> bool:
    """Whether ``number`` ended it, directly or below a shell."""
    return result.signal == number or result.exit_status == _SHELL_SIGNAL_BASE + number


def _signal_name(number: int) -> str:
    try:
        known = signal.Signals(number)
    except ValueError:
        return ""
    meaning = _MEANINGS.get(known)
    return f"{known.name} ({meaning})" if meaning else known.name


def process_findings(pass_name: str, result: ProcessResult) -> tuple[Diagnostic, ...]:
    """Diagnostics for any collector to add to the outcome of the pass ``pass_name``."""
    found = []
    if result.orphans:
        found.append(
            Diagnostic(
                code="collect.orphans_ended",
                fact="processes that the application left running were ended; what they did may be lost",
                remedy="let the application wait for its children",
                where=pass_name,
                count=result.orphans,
            )
        )
    if result.log_problem is not None:
        found.append(
            Diagnostic(
                code="collect.log_incomplete",
                fact=f"the log of the pass is incomplete: {result.log_problem}",
                severity=Severity.INFO,
                where=pass_name,
            )
        )
    return tuple(found)
