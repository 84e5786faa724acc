"""A collector without a profiler: wall clock around the whole process.

Its times hold everything the process does: start-up, host code, copies and kernels. Nothing in them tells
kernels apart, and the outcome says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_core.files import make_directory
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.process import (
    ApplicationExitError,
    ProcessRequest,
    process_findings,
    require_program,
    run_command,
)

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import CollectRequest, LineSink

_LOG_FOLDER = "artifacts/logs"
_NO_KERNELS = Diagnostic(
    code="collect.process_time_only",
    fact="times are those of the whole process, with start-up, host code and copies; no kernel was observed",
    severity=Severity.INFO,
    remedy="record with a profiler for times of kernels",
)


class TimingOnlyCollector(Collector):
    """Times the process and records nothing of the GPU."""

    name = "timing-only"
    summary = "wall clock of the whole process, without a profiler"

    def missing(self) -> None:
        return None

    def plan(self, request: CollectRequest) -> CollectionPlan:
        require_program(request.command)
        if request.runs < 1:
            raise UsageError(f"at least one run is needed, not {request.runs}")
        if request.counters:
            raise UsageError(
                "counters need a profiler, and only the process is timed",
                next_step="let a profiler record, or leave --roofline away",
            )
        passes = tuple(_planned_run(number, request) for number in range(1, request.runs + 1))
        return CollectionPlan(passes=passes, diagnostics=(_NO_KERNELS,))

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        root = run_directory.absolute()
        make_directory(root / planned.directory)
        log_path = root / planned.directory / f"{planned.name}.log"
        what = f"the application ({planned.name})"
        request = ProcessRequest(
            command=planned.command, log_path=log_path, time_limit_s=planned.time_limit_s, what=what
        )
        result = run_command(request, log)
        if not result.succeeded:
            raise ApplicationExitError(result, what=what, next_step=f"see {log_path}, or add --debug")
        return PassOutcome(
            planned=planned,
            exit_status=result.exit_status,
            wall_s=result.wall_s,
            log=log_path.relative_to(root).as_posix(),
            diagnostics=process_findings(planned.name, result),
            process_ms=result.wall_s * 1000.0,
        )


def _planned_run(number: int, request: CollectRequest) -> PlannedPass:
    return PlannedPass(
        name=f"run_{number}",
        role=TraceRole.TIMING,
        directory=_LOG_FOLDER,
        command=request.command,
        time_limit_s=request.time_limit_s,
    )
