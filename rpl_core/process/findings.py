"""What a user should know about a process that succeeded: left-over processes, an incomplete log."""

from __future__ import annotations

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.process.request import ProcessResult


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
