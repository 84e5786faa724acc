"""The collector of thread traces: run rocprofv3 --att, and aim once more when the target CU got no wave."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from rpl_att.analysis.utilisation import busiest_target
from rpl_att.collector.command_line import AttLogWatch, Target, aimed_at, target_of, trace_command
from rpl_att.options import DEEP_ANALYSIS, DEEP_TIMEOUT, DEEP_TOP
from rpl_att.reading.folder import TraceFolder
from rpl_att.reading.occupancy_events import read_occupancy
from rpl_att.reading.raw_files import files_beside, is_raw_file
from rpl_att.settings import REMEDY, AttSettings, find_decoder
from rpl_core.errors import BadDataError, MissingError, RplError, UsageError
from rpl_core.interfaces.collector import (
    CollectionPlan,
    Collector,
    CollectRequest,
    FollowUpRequest,
    LineSink,
    PassOutcome,
    PlannedPass,
)
from rpl_core.interfaces.options import Options
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.process import ProcessRequest, ProcessResult, run_command
from rpl_core.process.launch import require_program
from rpl_core.process.outcome import ApplicationExitError, process_findings
from rpl_core.process.storage import make_directory
from rpl_core.text.table import counted
from rpl_core.values import frozen
from rpl_rocprofv3.collector.passes import prepare_directory, with_directory
from rpl_rocprofv3.collector.tool import profiling_environment, require_rocprofv3
from rpl_rocprofv3.options import ROCPROF

# Which kernels are traced, which launch of each, and with which command: one pass per kernel.


_FOLDER = "artifacts/att"
#: Activity counters exist on gfx9 only (docs/reference/thread-trace.md, 4.1).
_ACTIVITY_PREFIX = "gfx9"


@frozen
class KernelTarget:
    """A kernel to trace, by its name in the timing runs, and its launches per run."""

    name: str
    launches: float

    @property
    def traced_launch(self) -> int:
        """The second launch, whose caches are warm, unless there is only one (launches count from 1)."""
        return 2 if self.launches >= 2 else 1


@frozen
class TraceTools:
    """rocprofv3 and the folder of the trace decoder."""

    profiler: Path
    decoder_folder: Path


def most_critical(documents: Mapping[str, Mapping[str, Any]], top: int) -> tuple[KernelTarget, ...]:
    """Kernels by their weight on the critical path, then by time, then by name.

    Raises ``MissingError`` where nothing tells how much the kernels weigh.
    """
    profile = documents.get("profile")
    if profile is None:
        raise MissingError(
            "which kernels are the most critical is not known without profile.json",
            next_step="pip install rpl-analysis",
        )
    ranked = sorted(profile["kernels"], key=_rank)
    return tuple(KernelTarget(kernel["name"], kernel["launches"]) for kernel in ranked[:top])


def _rank(kernel: Mapping[str, Any]) -> tuple[float, float, str]:
    return -(kernel["criticality_weight"] or 0.0), -(kernel["runtime_ms"] or 0.0), kernel["name"]


def plan_traces(
    kernels: Sequence[KernelTarget],
    command: tuple[str, ...],
    tools: TraceTools,
    settings: AttSettings,
    *,
    architecture: str | None,
    time_limit_s: float | None,
) -> CollectionPlan:
    """Passes for ``kernels`` in their order. Raises ``UsageError`` without a kernel."""
    if not kernels:
        raise UsageError("no kernel to trace: the timing runs recorded none")
    activity = architecture is not None and architecture.startswith(_ACTIVITY_PREFIX)
    return CollectionPlan(
        passes=tuple(
            PlannedPass(
                name=f"att_{number}",
                role=TraceRole.THREAD_TRACE,
                directory=f"{_FOLDER}_{number}",
                command=trace_command(
                    tools.profiler,
                    tools.decoder_folder,
                    command,
                    kernel.name,
                    kernel.traced_launch,
                    settings,
                    activity=activity,
                ),
                time_limit_s=time_limit_s,
            )
            for number, kernel in enumerate(kernels, start=1)
        )
    )


_LOG_FOLDER = Path("artifacts") / "logs"
_AGAIN = "_again"


@frozen
class _Attempt:
    """One execution: what it left, what its log said, and its own findings."""

    planned: PlannedPass
    result: ProcessResult
    output: TraceOutput
    watch: AttLogWatch
    log: Path


class ThreadTraceCollector(Collector):
    """Records thread traces of single kernels; never picked for a whole profile."""

    name = "thread-trace"
    summary = "instruction traces of single kernels by rocprofv3 --att (ROCm 7.0 or newer)"
    role = TraceRole.THREAD_TRACE
    lost_code = "collect.no_thread_trace"

    def __init__(self, settings: AttSettings) -> None:
        self._settings = settings

    def missing(self) -> str | None:
        try:
            self._tools()
        except MissingError as error:
            return error.one_line()
        return None

    def plan(self, request: CollectRequest) -> CollectionPlan:
        _ = request
        raise UsageError("thread traces add to a profile and are none", next_step="use --deep-analysis")

    def follow_up(self, request: FollowUpRequest) -> CollectionPlan | None:
        """Passes for the most critical kernels of the run so far, where the options ask for them."""
        if not _wanted(request.options):
            return None
        reason = self.missing()
        if reason is not None:
            raise MissingError(reason)
        kernels = most_critical(request.documents(), request.options[DEEP_TOP])
        require_program(request.command)
        device = request.device()
        return plan_traces(
            kernels,
            request.command,
            self._tools(),
            self._settings,
            architecture=device.architecture if device else None,
            time_limit_s=request.options[DEEP_TIMEOUT],
        )

    def announcement(self, options: Options) -> str | None:
        if not _wanted(options):
            return None
        return f"thread traces of the {options[DEEP_TOP]} most critical kernels follow"

    def lost(self, error: RplError) -> Diagnostic:
        return Diagnostic(
            self.lost_code,
            f"no thread trace: {error.fact}; the profile is complete without it",
            cause=error.cause,
            remedy=error.next_step,
        )

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        """Also raises ``BadDataError`` when nothing was traced, with what to do about it."""
        root = run_directory.absolute()
        attempt = self._attempt(planned, root, log)
        diagnostics: list[Diagnostic] = []
        target = _aim_again(attempt)
        if target is not None:
            diagnostics.append(_aimed_again(attempt.planned, target))
            again = attrs.evolve(
                planned,
                name=f"{planned.name}{_AGAIN}",
                directory=f"{planned.directory}{_AGAIN}",
                command=aimed_at(planned.command, target),
            )
            attempt = self._attempt(again, root, log)
        _require_trace(attempt)
        return PassOutcome(
            planned=planned,
            exit_status=attempt.result.exit_status,
            wall_s=attempt.result.wall_s,
            files=tuple(path.relative_to(root).as_posix() for path in attempt.output.files()),
            log=attempt.log.relative_to(root).as_posix(),
            diagnostics=(
                *diagnostics,
                *attempt.watch.findings(planned.name),
                *process_findings(planned.name, attempt.result),
            ),
        )

    def _tools(self) -> TraceTools:
        """Raises ``MissingError`` for either of them."""
        executable = require_rocprofv3(os.environ, self._settings.executable)
        library = find_decoder(self._settings.decoder_variables(os.environ), executable)
        if library is None:
            raise MissingError("no trace decoder was found", next_step=REMEDY)
        return TraceTools(executable, library)

    def _attempt(self, planned: PlannedPass, root: Path, log: LineSink) -> _Attempt:
        directory = root / planned.directory
        prepare_directory(directory)
        make_directory(root / _LOG_FOLDER)
        log_path = root / _LOG_FOLDER / f"{planned.name}.log"
        watch = AttLogWatch(log)
        request = ProcessRequest(
            command=with_directory(planned.command, directory),
            environment=profiling_environment(os.environ),
            log_path=log_path,
            time_limit_s=planned.time_limit_s,
            what=f"the application (pass {planned.name})",
        )
        result = run_command(request, watch)
        output = trace_output(directory)
        if not result.succeeded and not output.folders:
            raise watch.refusal() or ApplicationExitError(
                result, what=f"the application (pass {planned.name})", next_step=f"see {log_path}"
            )
        return _Attempt(planned, result, output, watch, log_path)


def _wanted(options: Options) -> bool:
    """Raises ``UsageError`` where a profiler is wanted and refused at the same time."""
    if not options[DEEP_ANALYSIS]:
        return False
    if not options[ROCPROF]:
        raise UsageError("--deep-analysis needs a profiler", next_step="leave out --no-rocprof")
    return True


def _aim_again(attempt: _Attempt) -> Target | None:
    """Where to aim instead, if nothing was traced and waves ran elsewhere."""
    folders = attempt.output.folders
    if not folders or not all(is_empty(folder) for folder in folders):
        return None
    target = better_target(folders)
    return None if target is None or target == target_of(attempt.planned.command) else target


def _aimed_again(planned: PlannedPass, target: Target) -> Diagnostic:
    return Diagnostic(
        "att.aimed_again",
        f"no wave ran on {target_of(planned.command)}; traced again on {target}, where most waves ran",
        severity=Severity.INFO,
        where=planned.name,
    )


def _require_trace(attempt: _Attempt) -> None:
    if attempt.output.folders:
        if not all(is_empty(folder) for folder in attempt.output.folders):
            return
        raise BadDataError(
            f"the trace of pass {attempt.planned.name} is empty: no instruction was traced",
            cause="no wave ran on the target CU, or nothing can be traced (seen on MI300X, ROCm 7.2.0)",
            next_step="try plugins.att.shader-engine-mask = 0x11111111, a larger grid or another ROCm",
        )
    refusal = attempt.watch.refusal()
    if refusal is not None:
        raise refusal
    state = counted(len(attempt.output.raw), "raw file") if attempt.output.raw else "no file"
    raise BadDataError(
        f"pass {attempt.planned.name} left {state} and no decoded trace",
        cause="the kernel filter matched nothing, or the GPU can't be traced",
        next_step=f"see {attempt.log}",
    )


@frozen
class TraceOutput:
    """Paths in a pass's directory, sorted. ``results`` tie dispatches to kernels."""

    folders: tuple[Path, ...]
    raw: tuple[Path, ...]
    results: tuple[Path, ...]

    def files(self) -> tuple[Path, ...]:
        """Every file that an analysis reads."""
        inside = [file for folder in self.folders for file in sorted(folder.iterdir()) if file.is_file()]
        tables = [folder.parent / f"stats_{folder.name}.csv" for folder in self.folders]
        beside = [path for path in tables if path.is_file()]
        return (*inside, *beside, *self.raw, *self.results)


def trace_output(directory: Path) -> TraceOutput:
    """Look at ``directory`` and one level below; links are not followed."""
    beside = files_beside(directory)
    folders = [p for p in directory.glob("ui_output_agent_*_dispatch_*") if p.is_dir() and not p.is_symlink()]
    return TraceOutput(
        folders=tuple(sorted(folders)),
        raw=tuple(path for path in beside if is_raw_file(path.name)),
        results=tuple(path for path in beside if path.name.endswith("_results.json")),
    )


def is_empty(folder: Path) -> bool:
    """Whether the decoder found no instruction (``"code": null``) or wrote no code at all."""
    try:
        table = TraceFolder.at(folder).table("code.json")
    except BadDataError:
        return False  # damaged is not empty: the reader will say what is wrong
    return not isinstance(table, dict) or not table.get("code")


def better_target(folders: tuple[Path, ...]) -> Target | None:
    """The busiest (shader engine, CU) that the occupancy of an empty trace shows."""
    for folder in folders:
        try:
            events = read_occupancy(TraceFolder.at(folder))
        except BadDataError:
            continue
        place = busiest_target(events) if events else None
        if place is not None:
            engine, cu = place
            return Target(cu, 1 << engine)
    return None
