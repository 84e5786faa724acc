"""What a user should know about a pass that succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.model.diagnostic import Diagnostic
from rpl_core.process.outcome import process_findings
from rpl_rocprofv3.collector.log_watch import LogWatch, Problem

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import PlannedPass
    from rpl_core.process import ProcessResult
    from rpl_rocprofv3.collector.tool_version import ToolVersion


def pass_findings(planned: PlannedPass, result: ProcessResult, watch: LogWatch) -> tuple[Diagnostic, ...]:
    """Diagnostics about counters, left-over processes and the log, in this order."""
    return (
        *_missing_counters(planned, watch),
        *_unlocked_counters(planned, watch),
        *process_findings(planned.name, result),
    )


def version_findings(version: ToolVersion) -> tuple[Diagnostic, ...]:
    if version.known:
        return ()
    return (
        Diagnostic(
            code="collect.version_unknown",
            fact="the version of rocprofv3 could not be found out; the rocpd format of ROCm 7 is asked for",
            cause="`rocprofv3 --version` said nothing, and there is no .info/version beside it",
            remedy="run `rpl doctor`",
        ),
    )


def _missing_counters(planned: PlannedPass, watch: LogWatch) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(
            code="collect.counter_unavailable",
            fact=f"agent {agent} has no counter {name}",
            remedy="see `rocprofv3 --list-avail` for the names of this GPU",
            where=planned.name,
        )
        for name, agent in sorted(watch.missing_counters.items())
    )


def _unlocked_counters(planned: PlannedPass, watch: LogWatch) -> tuple[Diagnostic, ...]:
    if not planned.counters or Problem.COUNTERS_NOT_LOCKED not in watch.first:
        return ()
    return (
        Diagnostic(
            code="collect.counters_not_locked",
            fact="rocprofv3 could not reserve the GPU's counters; their values may be inaccurate",
            cause="the capability CAP_PERFMON is missing",
            remedy="run as a user with CAP_PERFMON, or set kernel.perf_event_paranoid to 2 or less",
            where=planned.name,
        ),
    )
