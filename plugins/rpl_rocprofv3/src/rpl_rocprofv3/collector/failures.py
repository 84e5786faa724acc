"""From how a pass ended and what its log said to one error: fact, likely cause, next step."""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, MissingError
from rpl_core.process import ApplicationExitError, ended_by

if TYPE_CHECKING:
    from rpl_core.errors import RplError
    from rpl_core.interfaces.collector import PlannedPass
    from rpl_core.process import ProcessResult
    from rpl_rocprofv3.collector import ToolVersion

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


# What rocprofv3 says while it runs, recognised line by line.
#
# Its log mixes with the application's output, and good runs hold E and W lines ("Opened result file" is
# logged as an error): a line explains a failure, it is never one by itself (docs/reference/formats.md, 4.6).

_TAIL_LINES = 20
_KEPT_CHARACTERS = 300
_MOST_NOTED = 100


class Problem(str, Enum):
    """A kind of trouble that a line of the log stands for."""

    UNKNOWN_OPTION = "unknown_option"
    BROKEN_INSTALLATION = "broken_installation"
    OVER_CAPACITY = "over_capacity"
    COUNTERS_NOT_FOUND = "counters_not_found"
    COUNTERS_NOT_LOCKED = "counters_not_locked"
    NO_SPACE = "no_space"
    NO_GPU = "no_gpu"
    INTEGRATED_GPU = "integrated_gpu"
    STREAM_LOOKUP = "stream_lookup"


#: In the words of rocprofv3.py, rocprofiler-sdk, SQLite, HIP and HSA. A Python application may reject its
#: own options in the same words as rocprofv3, so that message must carry rocprofv3's name.
_PATTERNS = {
    Problem.UNKNOWN_OPTION: r"^rocprofv3[\w.-]*: error: (?:unrecognized arg|argument .*: invalid choice)",
    Problem.BROKEN_INSTALLATION: r"Fatal error: Failed to resolve path",
    Problem.OVER_CAPACITY: r"exceeds the capabilities of the hardware|ERROR_EXCEEDS_HW_LIMIT",
    Problem.COUNTERS_NOT_FOUND: r"Unable to find all counters for agent",
    Problem.COUNTERS_NOT_LOCKED: r"could not be locked for profiling due to lack of permissions",
    Problem.NO_SPACE: r"No space left on device|database or disk is full|Disk quota exceeded",
    Problem.NO_GPU: r"no ROCm-capable device|hipErrorNoDevice|(?:open|access)[^\n]*/dev/kfd",
    Problem.INTEGRATED_GPU: r"unordered_map::at",
    Problem.STREAM_LOOKUP: r"failed to retrieve stream ID",
}
_COMPILED = {problem: re.compile(pattern) for problem, pattern in _PATTERNS.items()}
_OPENED = re.compile(r"Opened result file: (.*?)(?: \(UUID=[^)]*\))?\s*$")
_MISSING_COUNTERS = re.compile(
    r"for agent (?P<agent>.*?) in \[(?P<wanted>[^\]]*)\]\.? *Found: \[(?P<found>[^\]]*)\]"
)


class LogWatch:
    """A line sink that keeps what matters and passes every line on to each of ``forward``.

    ``first`` has the first line of each problem, ``opened_files`` the result files that were announced,
    ``missing_counters`` the names that an agent lacks, each with that agent.
    """

    def __init__(self, *forward: Callable[[str], None]) -> None:
        self.first: dict[Problem, str] = {}
        self.opened_files: list[str] = []
        self.missing_counters: dict[str, str] = {}
        self._forward = forward
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def __call__(self, line: str) -> None:
        if line.strip():
            self._tail.append(line[:_KEPT_CHARACTERS])
        for problem, pattern in _COMPILED.items():
            if problem not in self.first and pattern.search(line):
                self.first[problem] = line[:_KEPT_CHARACTERS]
        self._note_file(line)
        self._note_missing_counters(line)
        for sink in self._forward:
            sink(line)

    def last_line(self) -> str | None:
        """The last thing said that is not about result files."""
        said = [
            line for line in self._tail if not _OPENED.search(line) and "writing SQL database" not in line
        ]
        return said[-1].strip() if said else None

    def _note_file(self, line: str) -> None:
        if len(self.opened_files) < _MOST_NOTED and (match := _OPENED.search(line)):
            self.opened_files.append(match[1])

    def _note_missing_counters(self, line: str) -> None:
        if not (match := _MISSING_COUNTERS.search(line)):
            return
        known = set(_names(match["found"]))
        for name in _names(match["wanted"]):
            if name not in known and len(self.missing_counters) < _MOST_NOTED:
                self.missing_counters.setdefault(name, match["agent"])


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[\s,]+", text) if name]
