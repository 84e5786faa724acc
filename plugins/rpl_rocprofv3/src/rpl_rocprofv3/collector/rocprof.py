"""The collector itself: plan passes, run one, and say how it ended."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError
from rpl_core.interfaces.collector import Collector, PassOutcome
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.launch import require_program
from rpl_core.process.storage import make_directory
from rpl_core.run_directory.layout import ARTIFACTS
from rpl_core.text.secrets import masked_words
from rpl_rocprofv3.collector.command_line import output_format_of, with_directory
from rpl_rocprofv3.collector.environment import profiling_environment
from rpl_rocprofv3.collector.executable import require_rocprofv3
from rpl_rocprofv3.collector.failures import no_counters_recorded, nothing_recorded, pass_failure
from rpl_rocprofv3.collector.findings import pass_findings
from rpl_rocprofv3.collector.log_watch import LogWatch
from rpl_rocprofv3.collector.pass_directory import (
    holds_counters,
    holds_dispatches,
    prepare_directory,
    recorded_files,
)
from rpl_rocprofv3.collector.planning import plan_collection
from rpl_rocprofv3.collector.simulated_gpu import mark_simulated
from rpl_rocprofv3.collector.tool_version import OutputFormat, ToolVersion, detect_version
from rpl_rocprofv3.database import empty_column
from rpl_rocprofv3.options import ROCPROF

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import CollectionPlan, CollectRequest, LineSink, PlannedPass
    from rpl_core.interfaces.options import Options


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
        return plan_collection(request, executable, self._version_of(executable))

    def run(self, planned: PlannedPass, run_directory: Path, log: LineSink) -> PassOutcome:
        root = run_directory.absolute()
        directory = root / planned.directory
        prepare_directory(directory)
        make_directory(root / _LOG_FOLDER)
        log_path = root / _LOG_FOLDER / f"{planned.name}.log"
        output = output_format_of(planned.command)
        watch = LogWatch(log)
        request = ProcessRequest(
            command=with_directory(planned.command, directory),
            environment=profiling_environment(os.environ),
            log_path=log_path,
            time_limit_s=planned.time_limit_s,
            what=f"the application (pass {planned.name})",
        )
        kept: tuple[Diagnostic, ...] = ()
        try:
            result = run_command(request, watch)
        finally:
            files = recorded_files(directory, output)
            if output is OutputFormat.ROCPD:
                kept = remove_environments(files, planned.command)
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
            diagnostics=(*pass_findings(planned, result, watch), *kept, *simulated),
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
            one for one in databases if not empty_column(one, "rocpd_info_process", "command", line)
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
