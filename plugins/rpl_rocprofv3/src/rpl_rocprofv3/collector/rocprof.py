"""The collector itself: plan passes, run one, and say how it ended."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError, UsageError
from rpl_core.files import make_directory, write_atomic
from rpl_core.interfaces.collector import CollectionPlan, Collector, PassOutcome, PlannedPass
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.model.metric import ORIGIN_MARK, Origin
from rpl_core.model.trace import TraceRole
from rpl_core.process import ProcessRequest, process_findings, require_program, run_command
from rpl_core.run_directory import ARTIFACTS
from rpl_core.text import masked_words
from rpl_rocprofv3.collector import (
    OutputFormat,
    ToolVersion,
    detect_version,
    offers_kernel_replay,
    profiling_environment,
    require_rocprofv3,
)
from rpl_rocprofv3.collector.failures import (
    LogWatch,
    Problem,
    no_counters_recorded,
    nothing_recorded,
    pass_failure,
)
from rpl_rocprofv3.collector.passes import (
    ReplayWatch,
    announced,
    chosen_mode,
    counter_passes,
    holds_counters,
    holds_dispatches,
    mode_findings,
    output_format_of,
    prepare_directory,
    recorded_files,
    refuse_without_counters,
    replay_findings,
    trace_command,
    with_directory,
)
from rpl_rocprofv3.database import empty_column
from rpl_rocprofv3.options import ROCPROF

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rpl_core.interfaces.collector import CollectRequest, LineSink
    from rpl_core.interfaces.options import Options
    from rpl_core.process import ProcessResult
    from rpl_rocprofv3.collector.passes import PassPlan


# What a user should know about a pass that succeeded.


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


# From a request to passes: timing runs first, then counter passes that the hardware can hold.


#: The base pass of a run directory, which is the only source of time.
TIMING_FOLDER = ".rocpd_profile"
#: The run that tells what recording API calls and copies costs.
REFERENCE_RUN = "without_calls"
#: A name that starts with a dash would be an option of rocprofv3, one with a comma two counters.
_COUNTER_NAME = re.compile(r"[A-Za-z]\w*(?::device=\d+)?")


def plan_collection(
    request: CollectRequest,
    executable: Path,
    version: ToolVersion,
    can_replay: Callable[[], bool] = lambda: False,
) -> CollectionPlan:
    """All passes of ``request``; ``runs`` is 0 when only counters are wanted.

    Raises ``UsageError`` for counters that can't be planned and for a request of nothing.
    """
    refuse_without_counters(request)
    if request.runs < 0 or (request.runs == 0 and not request.counters):
        raise UsageError(f"at least one run is needed, not {request.runs}")
    counters = _plan_counters(request)
    groups = () if counters is None else counters.passes
    mode = chosen_mode(request, len(groups), can_replay)
    return CollectionPlan(
        passes=(
            *_timing_passes(request, executable, version),
            *_reference_run(request, executable, version),
            *counter_passes(request, executable, version, groups, mode),
        ),
        diagnostics=(
            *version_findings(version),
            *_refusals(request, counters),
            *(mode_findings(request, mode, len(groups)) if groups else ()),
        ),
    )


def _timing_passes(request: CollectRequest, executable: Path, version: ToolVersion) -> list[PlannedPass]:
    command = trace_command(
        executable, version.output_format, request.command, dependencies=request.trace_dependencies
    )
    return [
        PlannedPass(
            name=f"run_{number}",
            role=TraceRole.TIMING,
            directory=f"{TIMING_FOLDER}/run_{number}",
            command=command,
            time_limit_s=request.time_limit_s,
        )
        for number in range(1, request.runs + 1)
    ]


def _reference_run(request: CollectRequest, executable: Path, version: ToolVersion) -> list[PlannedPass]:
    """The same application without calls and copies, after the timing runs: the first run warms caches up."""
    if not (request.runs and request.trace_dependencies and request.reference_run):
        return []
    command = trace_command(executable, version.output_format, request.command, dependencies=False)
    return [
        PlannedPass(
            name=REFERENCE_RUN,
            role=TraceRole.REFERENCE,
            directory=f"{ARTIFACTS}/{REFERENCE_RUN}",
            command=command,
            time_limit_s=request.time_limit_s,
        )
    ]


def _plan_counters(request: CollectRequest) -> PassPlan | None:
    if not request.counters:
        return None
    if request.device is None:
        raise UsageError(
            "counter passes need a device: its counter map says what one pass can hold",
            next_step="add --device NAME; `rpl devices` lists them",
        )
    for name in request.counters:
        if not _COUNTER_NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name of a counter")
    # numpy comes with this package; plugins must not load it before a plan is made.
    from rpl_rocprofv3.collector.passes import plan_passes

    return plan_passes(request.device.counter_map, request.counters, request.allow_dangerous_counters)


def _refusals(request: CollectRequest, planned: PassPlan | None) -> list[Diagnostic]:
    if planned is None or request.device is None:
        return []
    dangers = {reason for _, reason in request.device.counter_map.dangerous}
    return [
        Diagnostic(
            code="collect.counter_refused",
            fact=f"counter {refused.counter} is not collected: {refused.reason}",
            remedy="--allow-dangerous-counters collects it all the same"
            if refused.reason in dangers
            else None,
        )
        for refused in planned.refused
    ]


# AMD's rocjitsu runs programs on a simulated GPU; what is recorded there is marked: nothing was
# measured.


_VARIABLE = "ROCJITSU_RUNTIME_DIR"
_LIBRARY = "librocjitsu"
_LAUNCHERS = frozenset({"rocjitsu", "mirage"})


def why_simulated(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What says that the application gets a simulated GPU, or ``None``."""
    if environment.get(_VARIABLE):
        return f"{_VARIABLE} is set"
    preloaded = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    if any(PurePath(library).name.startswith(_LIBRARY) for library in preloaded):
        return f"LD_PRELOAD names {_LIBRARY}"
    launcher = next((PurePath(word).name for word in command if PurePath(word).name in _LAUNCHERS), None)
    return None if launcher is None else f"{launcher} starts it"


def mark_simulated(
    directory: Path, command: Sequence[str], environment: Mapping[str, str]
) -> tuple[Diagnostic, ...]:
    """Mark all recordings in ``directory`` as modelled where the GPU was a simulated one."""
    why = why_simulated(command, environment)
    if why is None:
        return ()
    write_atomic(directory / f"{ORIGIN_MARK}.json", json.dumps({ORIGIN_MARK: Origin.MODELLED.value}) + "\n")
    return (
        Diagnostic(
            code="collect.simulated_gpu",
            fact=f"the application ran on the simulated GPU of rocjitsu ({why}): its times are not measured",
            remedy="run it on a GPU for times",
        ),
    )


_LOG_FOLDER = Path(ARTIFACTS) / "logs"
_WITHOUT_PROFILER = "timing-only"


class RocprofCollector(Collector):
    """Records with rocprofv3. ``executable`` is the configured one; ``None`` searches for it."""

    name = "rocprofv3"
    summary = "kernel traces and hardware counters by rocprofv3 (ROCm 6.2 or newer)"

    def __init__(self, executable: str | None = None) -> None:
        self._configured = executable
        self._versions: dict[Path, ToolVersion] = {}

    def missing(self) -> str | None:
        try:
            require_rocprofv3(os.environ, self._configured)
        except MissingError as error:
            return error.one_line()
        return None

    def instead(self, options: Options) -> str | None:
        return None if options[ROCPROF] else _WITHOUT_PROFILER

    def plan(self, request: CollectRequest) -> CollectionPlan:
        """Also raises ``UsageError`` or ``MissingError`` for an application that can't be started."""
        require_program(request.command)
        executable = require_rocprofv3(os.environ, self._configured)
        return plan_collection(
            request,
            executable,
            self._version_of(executable),
            lambda: offers_kernel_replay(executable, profiling_environment(os.environ)),
        )

    def announcement(self, options: Options) -> str | None:
        return announced(options)

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        root = run_directory.absolute()
        directory = root / planned.directory
        prepare_directory(directory)
        make_directory(root / _LOG_FOLDER)
        log_path = root / _LOG_FOLDER / f"{planned.name}.log"
        for name, text in planned.inputs:
            write_atomic(directory / name, text)
        output = output_format_of(planned.command)
        replay = ReplayWatch()
        watch = LogWatch(log, replay)
        request = ProcessRequest(
            command=with_directory(planned.command, directory),
            environment=profiling_environment(os.environ),
            log_path=log_path,
            time_limit_s=planned.time_limit_s,
            what=f"the application (pass {planned.name})",
        )
        unremoved: tuple[Diagnostic, ...] = ()
        try:
            result = run_command(request, watch)
        finally:
            files = recorded_files(directory, output)
            if output is OutputFormat.ROCPD:
                unremoved = remove_environments(files, planned.command)
            simulated = mark_simulated(directory, planned.command, os.environ)
        version = self._version_of(Path(planned.command[0]))
        if not result.succeeded:
            raise pass_failure(planned, result, watch, version, log_path)
        _require_recording(planned, files, watch, directory, log_path)
        return PassOutcome(
            planned=planned,
            exit_status=result.exit_status,
            wall_s=result.wall_s,
            files=tuple(path.relative_to(root).as_posix() for path in files),
            log=log_path.relative_to(root).as_posix(),
            diagnostics=(
                *pass_findings(planned, result, watch),
                *replay_findings(planned, replay, files),
                *unremoved,
                *simulated,
            ),
            tool_version=str(version),
        )

    def _version_of(self, executable: Path) -> ToolVersion:
        if executable not in self._versions:
            self._versions[executable] = detect_version(executable, profiling_environment(os.environ))
        return self._versions[executable]


def _require_recording(
    planned: PlannedPass, files: tuple[Path, ...], watch: LogWatch, directory: Path, log_path: Path
) -> None:
    no_dispatches = holds_dispatches(files) is False
    # A counter pass records only the dispatches that it counted: without a known counter there are none.
    if no_dispatches and not (planned.counters and watch.missing_counters):
        raise nothing_recorded(planned, files, watch, directory, log_path)
    if no_dispatches or (planned.counters and holds_counters(files) is False):
        raise no_counters_recorded(planned, watch, log_path)


def remove_environments(databases: Sequence[Path], command: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    """Overwrite the environments in place; one warning for the files in which that failed.

    ``rocpd_info_process.environment`` holds every environment variable of the application, API keys included
    (docs/reference/formats.md, trap 9), and run directories are passed on. It is never read. Where
    ``command`` holds secrets, the command lines beside it are replaced by one without them.
    """
    application = tuple(command)[command.index("--") + 1 :] if "--" in command else tuple(command)
    told = masked_words(application)
    if told != application:
        line = shlex.join(told)
        lines_kept = [
            database
            for database in databases
            if not empty_column(database, "rocpd_info_process", "command", line)
        ]
    else:
        lines_kept = []
    failed = [path for path in databases if not empty_column(path, "rocpd_info_process", "environment", "{}")]
    failed += [path for path in lines_kept if path not in failed]
    if not failed:
        return ()
    return (
        Diagnostic(
            code="collect.environment_kept",
            fact=f"the environment variables that rocprofv3 wrote to {failed[0].name} could not be removed",
            cause="the file is damaged, or there is no space to change it",
            remedy="do not share the file",
            count=len(failed),
        ),
    )
