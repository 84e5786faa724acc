"""How a run process ended: what to tell of a failed application, and of one that succeeded."""

from __future__ import annotations

import signal

from rpl_core.errors import ApplicationError
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.process.request import ProcessResult

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
