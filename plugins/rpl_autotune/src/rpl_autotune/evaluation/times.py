"""The time of one run: sum over dispatches, wall clock of the process, or what the program prints."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import BadDataError, UsageError
from rpl_core.process import ProcessRequest, run_command
from rpl_core.process.outcome import ApplicationExitError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces.job import Timing
    from rpl_core.contracts.common import OriginName
    from rpl_core.plugins.host import PluginHost

__all__ = ["RunTimes", "TimedRun", "TimesUnknownError", "checked_pattern", "record_run", "timed_runs"]

HostSupplier = Callable[[], "PluginHost"]


class TimesUnknownError(BadDataError):
    """The program ran well, and there is no time."""


@frozen
class TimedRun:
    """What to run. A relative program is looked up in ``place``, where the command starts."""

    command: tuple[str, ...]
    place: Path
    time_limit_s: float
    runs: int


@frozen
class RunTimes:
    """Milliseconds of each run and where they come from."""

    times_ms: tuple[float, ...]
    origin: OriginName


def timed_runs(run: TimedRun, timing: Timing, host: HostSupplier) -> RunTimes:
    """Run as often as asked. Raises what ``run_command`` raises, ``ApplicationError`` for a failing program
    and ``TimesUnknownError`` where it leaves no time.
    """
    if timing.source == "profile":
        return _profiled(run, timing, host())
    return RunTimes(tuple(_observed(run, timing) for _ in range(run.runs)), "measured")


def checked_pattern(text: str) -> str:
    """``text``, if it is a pattern with at most one group. Raises ``UsageError``."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"--time-regex is no regular expression: {error}") from None
    if pattern.groups > 1:
        raise UsageError(
            "--time-regex has several groups", next_step="put only the number in parentheses; (?:...) groups"
        )
    return text


def _observed(run: TimedRun, timing: Timing) -> float:
    """Wall time of one process, or the last number that it prints behind the pattern."""
    pattern = re.compile(timing.pattern) if timing.pattern is not None else None
    printed: list[str] = []

    def look(line: str) -> None:
        if pattern is not None and (match := pattern.search(line)) is not None:
            printed[:] = [match.group(pattern.groups)]

    request = ProcessRequest(run.command, time_limit_s=run.time_limit_s, working_directory=run.place)
    result = run_command(request, look)
    if not result.succeeded:
        raise ApplicationExitError(result)
    if timing.source == "wall":
        return result.wall_s * 1000.0
    return _number(printed, timing)


def _number(printed: list[str], timing: Timing) -> float:
    if not printed:
        raise TimesUnknownError("no line of the output matches --time-regex")
    try:
        number = float(printed[0]) * timing.unit_ms
    except ValueError:
        raise TimesUnknownError(f"--time-regex found {printed[0]!r:.40}, which is no number") from None
    if not 0 < number < float("inf"):
        raise TimesUnknownError(f"--time-regex found {printed[0]!r:.40}, which is no time")
    return number


def _profiled(run: TimedRun, timing: Timing, host: PluginHost) -> RunTimes:
    """The sums over all dispatches of the timing runs that `rpl profile` would record."""
    directory = Path(tempfile.mkdtemp(prefix="rpl-autotune-"))
    try:
        return _sums(record_run(run, timing, host, directory / "run"), timing, host)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def record_run(run: TimedRun, timing: Timing, host: PluginHost, directory: Path) -> Path:
    """A run directory as `rpl profile` makes it, without a profiler where times need none."""
    from rpl_core.interfaces.options import Options
    from rpl_core.pipeline import AnalysisRequest
    from rpl_core.profiling.collectors import choose_collector
    from rpl_core.profiling.record import ProfileRequest, record_application

    request = ProfileRequest(
        command=run.command,
        runs=run.runs,
        roofline=False,
        trace_dependencies=False,
        time_limit_s=run.time_limit_s,
        allow_dangerous_counters=False,
        output=directory,
        runs_directory=directory.parent,
        analysis=AnalysisRequest(device=timing.device),
    )
    name = timing.collector if timing.source == "profile" else "timing-only"
    collector = choose_collector(host, name, Options())
    recorded = record_application(request, collector, host, _ignore, _ignore)
    if recorded.failure is not None:
        raise recorded.failure
    return recorded.directory


def _ignore(_line: str) -> None:
    return None


def _sums(directory: Path, timing: Timing, host: PluginHost) -> RunTimes:
    from rpl_analysis.runtime.timing import usable_rows
    from rpl_core.ingest.load import load_recording
    from rpl_core.pipeline import AnalysisRequest, recorded_device

    recording = load_recording((directory,), host.catalog.readers().contributions)
    recorded_device(AnalysisRequest(device=timing.device), recording.gpu_agents, host)  # raises for another
    sums = []
    for trace in recording.timing_runs:
        rows = usable_rows(trace.dispatches)
        spans = (trace.dispatches.end_ns - trace.dispatches.begin_ns)[rows]
        if spans.size == 0:
            raise TimesUnknownError("a run of the program launched no kernel")
        sums.append(int(spans.sum()) / 1e6)
    if not sums:
        raise TimesUnknownError("the recording holds no timing run with kernels")
    return RunTimes(tuple(sums), recording.origin.value)
