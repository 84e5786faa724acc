"""From how a pass ended and what its log said to one error: fact, likely cause, next step."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_core.process.outcome import ApplicationExitError, ended_by
from rpl_rocprofv3.collector.log_watch import LogWatch, Problem

if TYPE_CHECKING:
    from rpl_core.errors import RplError
    from rpl_core.interfaces.collector import PlannedPass
    from rpl_core.process import ProcessResult
    from rpl_rocprofv3.collector.tool_version import ToolVersion

_NO_WORK_CAUSE = (
    "the application launched no kernel, or its kernels ran in another process (a daemon, a server, a "
    "container), or it ended without its exit handlers (_exit, exec, a signal)"
)
_CRASH_SIGNALS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)


def pass_failure(
    planned: PlannedPass, result: ProcessResult, watch: LogWatch, version: ToolVersion, log: Path
) -> RplError:
    """The error for a pass whose process failed."""
    return (
        _profiler_failure(watch, version)
        or storage_failure(planned, watch)
        or _counter_failure(planned, result, watch)
        or _application_failure(planned, result, watch, log)
    )


def _profiler_failure(watch: LogWatch, version: ToolVersion) -> RplError | None:
    if line := watch.first.get(Problem.UNKNOWN_OPTION):
        return MissingError(
            f"this {version} can't do what is needed: {_after(line, 'error: ')}",
            cause="ROCm is too old here",
            next_step="use ROCm 7.0 or newer, or `--no-rocprof` to time the process only",
        )
    if line := watch.first.get(Problem.BROKEN_INSTALLATION):
        return MissingError(
            f"{version} is not completely installed: {_after(line, 'Fatal error: ')}",
            next_step="reinstall rocprofiler-sdk, or name another one in RPL_ROCPROFV3; see `rpl doctor`",
        )
    return None


def storage_failure(planned: PlannedPass, watch: LogWatch) -> RplError | None:
    """The error for a full disk, which may also end in exit status 0 and no recording."""
    if line := watch.first.get(Problem.NO_SPACE):
        return MissingError(
            f"pass {planned.name} found no space left: {line.strip()}",
            next_step="free some space, or choose another place with -o DIR",
        )
    return None


def _counter_failure(planned: PlannedPass, result: ProcessResult, watch: LogWatch) -> RplError | None:
    if not planned.counters:
        return None
    names = " ".join(planned.counters)
    if Problem.OVER_CAPACITY in watch.first:
        return MissingError(
            f"this GPU can't count {names} in one pass",
            cause="the device's counter map allows more per hardware block than this GPU has",
            next_step="ask for fewer counters at a time",
        )
    if Problem.INTEGRATED_GPU in watch.first:
        return MissingError(
            f"rocprofv3 failed while it listed counters for {names}",
            cause="a known fault on machines whose integrated GPU has no counters (rocprofiler-sdk 148)",
            next_step="disable the integrated GPU, or hide it with ROCR_VISIBLE_DEVICES",
        )
    if any(ended_by(result, number) for number in _CRASH_SIGNALS) and watch.missing_counters:
        return _no_such_counters(planned, watch)
    return None


def _application_failure(
    planned: PlannedPass, result: ProcessResult, watch: LogWatch, log: Path
) -> ApplicationExitError:
    what = f"the application (pass {planned.name})"
    if line := watch.first.get(Problem.NO_GPU):
        return ApplicationExitError(
            result, what=what, cause=f"no GPU that it may use: {line.strip()}", next_step="run `rpl doctor`"
        )
    last = watch.last_line()
    if any(ended_by(result, number) for number in _CRASH_SIGNALS):
        return ApplicationExitError(
            result,
            what=what,
            cause=_crash_cause(planned, watch),
            next_step=f"see {log}; {_crash_step(planned)}",
        )
    cause = None if last is None else f"its last output was {last!r}"
    return ApplicationExitError(result, what=what, cause=cause, next_step=f"see {log}, or add --debug")


def _crash_cause(planned: PlannedPass, watch: LogWatch) -> str:
    if Problem.STREAM_LOOKUP in watch.first:
        return "rocprofv3 of ROCm 7.0 loses streams that were made before it watched; 7.2 is better"
    if planned.counters:
        return "counter collection aborts so when the GPU can't count this set, or does not support counting"
    return "the application itself, or the profiler within it"


def _crash_step(planned: PlannedPass) -> str:
    if planned.counters:
        return "leave --roofline away, or ask for fewer counters"
    return "`--no-rocprof` shows whether it runs without the profiler"


def nothing_recorded(
    planned: PlannedPass, files: Sequence[Path], watch: LogWatch, directory: Path, log: Path
) -> RplError:
    """The error for a pass that ended well and holds no dispatch; exit status 0 promises no recording."""
    if full := storage_failure(planned, watch):
        return full
    elsewhere = [name for name in watch.opened_files if not _is_below(Path(name), directory)]
    if not files and elsewhere:
        return BadDataError(
            f"no kernel dispatch recorded in pass {planned.name}",
            cause=f"rocprofv3 wrote {elsewhere[0]} outside of the directory of the pass",
            next_step=f"see {log}",
        )
    line = watch.first.get(Problem.NO_GPU)
    state = "rocprofv3 wrote no file" if not files else "the recording is empty"
    return BadDataError(
        f"no kernel dispatch recorded in pass {planned.name}: {state}",
        cause=f"no GPU that it may use: {line.strip()}" if line else _NO_WORK_CAUSE,
        next_step=f"see {log}; profile the process that launches the kernels; `rpl doctor` checks the GPU",
    )


def no_counters_recorded(planned: PlannedPass, watch: LogWatch, log: Path) -> MissingError:
    """The error for a counter pass with dispatches and without a single counter value."""
    if watch.missing_counters:
        return _no_such_counters(planned, watch)
    return MissingError(
        f"no counter value recorded in pass {planned.name}",
        cause="the GPU or its driver does not offer these counters to this user",
        next_step=f"see {log} and `rpl doctor`",
    )


def _no_such_counters(planned: PlannedPass, watch: LogWatch) -> MissingError:
    name, agent = next(iter(sorted(watch.missing_counters.items())))
    more = len(watch.missing_counters) - 1
    return MissingError(
        f"unknown counter in pass {planned.name}: {name}" + (f" and {more} more" if more else ""),
        cause=f"agent {agent} does not have it under this name",
        next_step="see `rocprofv3 --list-avail` for the names of this GPU",
    )


def _after(line: str, words: str) -> str:
    return line.partition(words)[2].strip()


def _is_below(path: Path, directory: Path) -> bool:
    try:
        return path.resolve().is_relative_to(directory.resolve())
    except OSError:
        return False
