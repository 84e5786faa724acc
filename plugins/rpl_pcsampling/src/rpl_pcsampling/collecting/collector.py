"""The collector of PC samples: one more run of the application under rocprofv3."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError, UsageError
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.launch import require_program
from rpl_core.process.outcome import ApplicationExitError, process_findings
from rpl_core.process.storage import make_directory
from rpl_pcsampling.collecting.request import RISK, asked_for, require_support, sampling_command
from rpl_pcsampling.collecting.stated import write_stated
from rpl_pcsampling.options import PC_TIMEOUT
from rpl_pcsampling.reading.json_file import holds_samples
from rpl_rocprofv3.collector.passes import prepare_directory, with_directory
from rpl_rocprofv3.collector.tool import profiling_environment, require_rocprofv3
from rpl_rocprofv3.options import ROCPROF

if TYPE_CHECKING:
    from collections.abc import Callable

    from rpl_core.errors import RplError
    from rpl_core.interfaces.collector import CollectRequest, FollowUpRequest, LineSink
    from rpl_core.interfaces.options import Options
    from rpl_pcsampling.collecting.request import SamplingRequest

__all__ = ["PcSampleCollector"]

_DIRECTORY = "{directory}"
_LOG_FOLDER = Path("artifacts") / "logs"
_KEPT_CHARACTERS = 300
#: What rocprofv3 and rocprofiler-sdk say when they can't sample: pattern, fact, cause, next step.
_REFUSALS = (
    (
        r"rocprofv3[\w.-]*: error: (?:unrecognized arguments|argument).*--pc-sampling",
        "this rocprofv3 samples no program counters",
        "ROCm is older than 6.4",
        "use ROCm 7.0 or newer",
    ),
    (
        r"(?i)pc.sampling.*(?:not (?:available|supported)|unavailable|no .*config)|INCOMPATIBLE_KERNEL",
        "this GPU, or its driver, offers no such PC sampling",
        "the amdgpu driver or the firmware is too old, another program is sampling, or the GPU can't",
        "`rocprofv3 -L` shows methods and intervals; stochastic needs MEC firmware 0x1a or newer on MI300X",
    ),
)
_COMPILED = tuple((re.compile(pattern), rest) for pattern, *rest in _REFUSALS)


class _LogWatch:
    """Passes lines on and keeps the first refusal."""

    def __init__(self, forward: Callable[[str], None]) -> None:
        self._forward = forward
        self.refusal: MissingError | None = None

    def __call__(self, line: str) -> None:
        text = line[:_KEPT_CHARACTERS]
        for pattern, (fact, cause, next_step) in _COMPILED:
            if self.refusal is None and pattern.search(text):
                self.refusal = MissingError(fact, cause=cause, next_step=next_step)
        self._forward(line)


class PcSampleCollector(Collector):
    """Adds one run with PC sampling to a profile; never picked for a whole one."""

    name = "pc-sampling"
    summary = "program counters and stall reasons by rocprofv3 --pc-sampling-method (beta of AMD)"
    role = TraceRole.THREAD_TRACE
    lost_code = "collect.no_pc_samples"

    def __init__(self, executable: str | None = None) -> None:
        self._configured = executable

    def missing(self) -> str | None:
        try:
            require_rocprofv3(os.environ, self._configured)
        except MissingError as error:
            return error.one_line()
        return None

    def plan(self, request: CollectRequest) -> CollectionPlan:
        _ = request
        raise UsageError("PC samples add to a profile and are none", next_step="use --pc-sampling METHOD")

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        wanted = _wanted(request.options)
        if wanted is None:
            return None
        executable = require_rocprofv3(os.environ, self._configured)
        require_program(request.command)
        device = request.device()
        require_support(wanted, device.architecture if device else None)
        planned = PlannedPass(
            name="pc_sampling",
            role=TraceRole.THREAD_TRACE,
            directory="artifacts/pc_sampling",
            command=sampling_command(executable, wanted, request.command, _DIRECTORY),
            time_limit_s=request.options[PC_TIMEOUT],
        )
        return CollectionPlan((planned,))

    def announcement(self, options: Options) -> str | None:
        wanted = _wanted(options)
        return None if wanted is None else f"a run with PC sampling follows ({wanted}). {RISK}"

    def lost(self, error: RplError) -> Diagnostic:
        return Diagnostic(
            self.lost_code,
            f"no PC samples: {error.fact}; the profile is complete without them",
            cause=error.cause,
            remedy=error.next_step,
        )

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        """Also raises ``BadDataError`` when no sample was taken."""
        root = run_directory.absolute()
        directory = root / planned.directory
        prepare_directory(directory)
        make_directory(root / _LOG_FOLDER)
        log_path = root / _LOG_FOLDER / f"{planned.name}.log"
        watch = _LogWatch(log)
        result = run_command(
            ProcessRequest(
                command=with_directory(planned.command, directory),
                environment=profiling_environment(os.environ),
                log_path=log_path,
                time_limit_s=planned.time_limit_s,
                what=f"the application (pass {planned.name})",
            ),
            watch,
        )
        results = sorted(p for p in directory.glob("*_results.json") if p.is_file() and not p.is_symlink())
        if not result.succeeded:
            raise watch.refusal or ApplicationExitError(
                result, what=f"the application (pass {planned.name})", next_step=f"see {log_path}"
            )
        sampled = [path for path in results if holds_samples(path)]
        if not sampled:
            raise watch.refusal or BadDataError(
                f"pass {planned.name} holds no sample",
                cause="the kernels are shorter than the interval, or this GPU can't be sampled",
                next_step=f"a smaller --pc-interval; see {log_path}",
            )
        method, unit, interval = _asked(planned)
        stated = write_stated(directory, method, unit, interval)
        return PassOutcome(
            planned=planned,
            exit_status=result.exit_status,
            wall_s=result.wall_s,
            files=tuple(path.relative_to(root).as_posix() for path in (*sampled, stated)),
            log=log_path.relative_to(root).as_posix(),
            diagnostics=(_sampled_so(planned), *process_findings(planned.name, result)),
        )


def _wanted(options: Options) -> SamplingRequest | None:
    """Raises ``UsageError`` where sampling is wanted and a profiler is not, or for a bad interval."""
    wanted = asked_for(options)
    if wanted is not None and not options[ROCPROF]:
        raise UsageError("--pc-sampling needs a profiler", next_step="leave out --no-rocprof")
    return wanted


def _asked(planned: PlannedPass) -> tuple[str, str, int]:
    own = list(planned.command)
    method, unit, interval = (
        own[own.index(f"--pc-sampling-{word}") + 1] for word in ("method", "unit", "interval")
    )
    return method, unit, int(interval)


def _sampled_so(planned: PlannedPass) -> Diagnostic:
    method, unit, interval = _asked(planned)
    return Diagnostic(
        "pcsampling.recorded",
        f"program counters were sampled in a run of their own ({method}, every {interval} "
        f"{'cycles' if unit == 'cycles' else 'us'}); no time is taken from it",
        severity=Severity.INFO,
        where=planned.name,
    )
