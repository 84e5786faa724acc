"""One job of a search: the cache of measurements, and how a worker builds, validates and times."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from pydantic import ValidationError

from rpl_autotune.interfaces import Job, Outcome, PluginChoice, Reading, State, Timing, Value, Variant
from rpl_autotune.templates import PROGRAM, command_digest, text_digest
from rpl_core.errors import (
    ApplicationError,
    BadDataError,
    DeviceMismatchError,
    InterruptedRunError,
    MissingError,
    PluginError,
    RplError,
    TimeLimitError,
    UsageError,
)
from rpl_core.files import make_directory, open_regular, read_regular, sha256_of, storage_error, write_atomic
from rpl_core.process import ApplicationExitError, ProcessRequest, describe_exit, run_command
from rpl_core.text import masked_words, printable, shorten
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_core.contracts.common import OriginName
    from rpl_core.plugins.host import PluginHost

# The cache: one JSON object per line, only ever appended to. A line is written whole and synced before the
# search goes on, so that neither Ctrl-C nor kill -9 loses what was measured; a line that was cut off is
# skipped. Several searches may share one file.

_VERSION = 1
#: A measurement takes some kilobytes; a million of them are far above what anybody searches (chosen).
_MOST_BYTES, _LONGEST_LINE = 4 << 30, 1 << 20


@frozen
class CacheKey:
    """What a measurement depends on: configuration, command, program, device and how it was timed."""

    configuration: Mapping[str, Value]
    variant: Variant
    timing: Timing
    binary: str
    device: str

    @property
    def digest(self) -> str:
        return text_digest(
            (
                json.dumps(self.configuration, sort_keys=True),
                json.dumps([self.variant.command, self.variant.validate_command]),
                self.timing.model_dump_json(),
                self.binary,
                self.device,
            )
        )


@frozen
class CachedReading:
    """A reading and what it was measured under."""

    reading: Reading
    time_limit_s: float

    def answers(self, time_limit_s: float) -> bool:
        """Whether it says what a new measurement would: a run that was too slow may end in a longer time."""
        return self.reading.state != "time_limit" or time_limit_s <= self.time_limit_s


class Cache:
    """The measurements in one file, and those that are added."""

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self.path = path
        self._readings: dict[str, CachedReading] = {}
        self._binaries: dict[str, str] = {}
        self._failed_builds: dict[str, str] = {}
        make_directory(path.parent)
        try:
            self._load(note)
        except OSError as error:
            raise storage_error(path, error) from error

    def _load(self, note: Callable[[str], None]) -> None:
        if not self.path.exists():
            return
        skipped = 0
        with open_regular(self.path, _MOST_BYTES) as stream:
            for number, line in enumerate(iter(lambda: stream.readline(_LONGEST_LINE), b"")):
                if number == 0 and not line.startswith(b"{"):
                    raise BadDataError(
                        f"{self.path} is no cache of rpl autotune", next_step="name another file with --cache"
                    )
                try:
                    self._take(json.loads(line))
                except (ValueError, KeyError, TypeError, ValidationError):
                    skipped += 1
        if skipped:
            note(f"{self.path}: {skipped} unreadable line{'' if skipped == 1 else 's'} skipped")

    def _take(self, entry: dict[str, Any]) -> None:
        if entry["version"] != _VERSION:
            return
        reading = Reading.model_validate(entry["reading"])
        if entry["build_key"] is not None:
            if reading.state == "build_failed":
                self._failed_builds[entry["build_key"]] = reading.reason or "the build failed"
            elif reading.binary is not None:
                self._binaries[entry["build_key"]] = reading.binary
        if entry["key"] is not None:
            self._readings[entry["key"]] = CachedReading(reading, float(entry["time_limit_s"]))

    def binary_of(self, build_key: str | None) -> str | None:
        """The digest of what this build gave before."""
        return None if build_key is None else self._binaries.get(build_key)

    def build_failure(self, build_key: str | None) -> str | None:
        """Why this build failed before, if it did."""
        return None if build_key is None else self._failed_builds.get(build_key)

    def find(self, key: CacheKey, time_limit_s: float) -> Reading | None:
        """What was measured under ``key``, if it still says what a measurement would."""
        cached = self._readings.get(key.digest)
        return cached.reading if cached is not None and cached.answers(time_limit_s) else None

    def add(self, key: CacheKey | None, entry: CachedReading, build_key: str | None, device: str) -> None:
        """Keep one reading; ``key`` is ``None`` for a build that failed. On disk when this returns."""
        content = {
            "version": _VERSION,
            "key": None if key is None else key.digest,
            "build_key": build_key,
            "configuration": None if key is None else dict(key.configuration),
            "command": None if key is None else list(masked_words(key.variant.command)),
            "timing": None if key is None else key.timing.model_dump(mode="json"),
            "device": device,
            "time_limit_s": entry.time_limit_s,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "reading": entry.reading.model_dump(mode="json"),
        }
        self._append(json.dumps(content, separators=(",", ":")).encode() + b"\n")
        self._take(content)

    def _append(self, line: bytes) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    line = b"\n" + line  # whoever wrote last was killed in the middle of it
                os.write(descriptor, line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise storage_error(self.path, error) from error


# What a worker does: build, validate and time the configurations of one job.

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
    from rpl_core.profiling import ProfileRequest, choose_collector, record_application

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
    from rpl_core.ingest import load_recording
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


# Building one configuration, once per distinct build of a session.

_PROGRAM, _RESULT, _LOG = "program", "result.json", "build.log"
_MOST_RESULT_BYTES = 1 << 20
_LONGEST_REASON = 300


@frozen
class Built:
    """A program with its digest, or the reason why there is none."""

    program: Path | None
    digest: str | None = None
    reason: str | None = None


def build_variant(variant: Variant, scratch: Path, working_directory: Path, time_limit_s: float) -> Built:
    """The program of ``variant``, built unless an equal build of this session has ended before."""
    assert variant.build_key is not None
    directory = scratch / "builds" / variant.build_key[:32]
    make_directory(directory)
    with file_lock(directory / ".lock"):
        known = _known(directory)
        if known is not None:
            return known
        built = _built(variant, directory, working_directory, time_limit_s)
        write_atomic(directory / _RESULT, json.dumps({"digest": built.digest, "reason": built.reason}))
        return built


def _known(directory: Path) -> Built | None:
    try:
        result = json.loads(read_regular(directory / _RESULT, _MOST_RESULT_BYTES))
    except (RplError, ValueError):
        return None
    program = directory / _PROGRAM
    if result["digest"] is None:
        return Built(None, None, result["reason"])
    return Built(program, result["digest"]) if program.is_file() else None


def _built(variant: Variant, directory: Path, place: Path, time_limit_s: float) -> Built:
    program = directory / _PROGRAM
    program.unlink(missing_ok=True)
    words = tuple(word.replace("{output}", str(program)) for word in variant.build)
    said: list[str] = []
    request = ProcessRequest(
        words,
        environment={**os.environ, "LC_ALL": "C"},
        log_path=directory / _LOG,
        time_limit_s=time_limit_s,
        working_directory=place,
        what="the build",
    )
    try:
        result = run_command(request, lambda line: _remember(said, line))
    except InterruptedRunError:
        raise
    except TimeLimitError as error:
        return Built(None, None, error.fact)
    except RplError as error:
        return Built(None, None, error.one_line())
    if not result.succeeded:
        told = next((line for line in said if "error" in line.lower()), said[-1] if said else None)
        return Built(None, None, told or f"the build {describe_exit(result)}")
    if not program.is_file():
        return Built(None, None, "the build ended well and left no program at {output}")
    return Built(program, sha256_of(program))


def _remember(said: list[str], line: str) -> None:
    plain = shorten(printable(line).strip(), _LONGEST_REASON)
    if plain and len(said) < 200:
        said.append(plain)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold ``path`` alone among the processes of this machine; a dead process holds nothing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# The job itself.


@attrs.define
class _Prepared:
    """A configuration on its way: its command once it is built, its times, or why it has none."""

    variant: Variant
    command: tuple[str, ...] = ()
    binary: str | None = None
    times_ms: list[float] = attrs.field(factory=list)
    origin: str | None = None
    state: State = "ok"
    reason: str | None = None

    def fail(self, state: State, reason: str) -> None:
        self.state, self.reason = state, reason

    def reading(self) -> Reading:
        return Reading.model_validate(
            {
                "index": self.variant.index,
                "state": self.state,
                "times_ms": tuple(self.times_ms) if self.state == "ok" else (),
                "origin": self.origin,
                "reason": self.reason,
                "binary": self.binary,
            }
        )


def run_job(job: Job, device: str) -> Outcome:
    """Measure ``job`` on ``device``, alone there among all that asks in this way.

    What a configuration does wrong is a state of its reading. What is wrong with the machine (no such tool,
    no space) is raised, and so is ``InterruptedRunError``.
    """
    begin = time.monotonic()
    with file_lock(_device_lock(device)):
        prepared = [_prepare(variant, job) for variant in job.variants]
        if job.in_turns:
            _measure_in_turns(prepared, job)
        else:
            for one in prepared:
                _measure(one, job, job.timing.runs)
    readings = tuple(one.reading() for one in prepared)
    return Outcome(number=job.number, device=device, readings=readings, wall_s=time.monotonic() - begin)


def _device_lock(device: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", device)
    return Path(tempfile.gettempdir()) / f"rpl-autotune-{os.getuid()}-{name}.lock"


def _prepare(variant: Variant, job: Job) -> _Prepared:
    prepared = _Prepared(variant, variant.command)
    place = Path(job.working_directory)
    if variant.build:
        built = build_variant(variant, Path(job.scratch), place, job.build_time_limit_s)
        if built.program is None:
            prepared.fail("build_failed", built.reason or "the build failed")
            return prepared
        prepared.binary = built.digest
        prepared.command = tuple(word.replace(PROGRAM, str(built.program)) for word in variant.command)
        validate = tuple(word.replace(PROGRAM, str(built.program)) for word in variant.validate_command)
    else:
        prepared.binary, validate = command_digest(variant.command, place), variant.validate_command
    if validate:
        _validate(prepared, validate, job)
    return prepared


def _validate(prepared: _Prepared, command: tuple[str, ...], job: Job) -> None:
    request = ProcessRequest(
        command,
        time_limit_s=job.time_limit_s,
        working_directory=Path(job.working_directory),
        what="the validation",
    )
    said: list[str] = []
    try:
        result = run_command(request, lambda line: said.append(line) if len(said) < 1000 else None)
    except TimeLimitError as error:
        prepared.fail("time_limit", error.fact)
        return
    if not result.succeeded:
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        prepared.fail("wrong", f"the validation {describe_exit(result)}{': ' + last[:200] if last else ''}")


def _measure_in_turns(prepared: list[_Prepared], job: Job) -> None:
    """One discarded run of each, then rounds in which the order turns: drift hits all alike."""
    for one in prepared:
        _measure(one, job, 1)
        one.times_ms.clear()
    if job.keep is not None and prepared[0].state == "ok":
        run = TimedRun(prepared[0].command, Path(job.working_directory), job.time_limit_s, 1)
        record_run(run, job.timing, _host(job.plugins), Path(job.keep))
    for number in range(job.rounds):
        for one in prepared if number % 2 == 0 else reversed(prepared):
            _measure(one, job, 1)


def _measure(one: _Prepared, job: Job, runs: int) -> None:
    if one.state != "ok":
        return
    run = TimedRun(one.command, Path(job.working_directory), job.time_limit_s, runs)
    try:
        times = timed_runs(run, job.timing, lambda: _host(job.plugins))
    except TimeLimitError as error:
        one.fail("time_limit", error.fact)
    except TimesUnknownError as error:
        one.fail("no_time", error.fact)
    except ApplicationError as error:
        one.fail("failed", error.fact)
    except (InterruptedRunError, MissingError, PluginError, DeviceMismatchError):
        raise
    except BadDataError as error:
        one.fail("no_time", error.fact)
    except RplError as error:
        one.fail("failed", error.fact)
    else:
        one.times_ms += times.times_ms
        one.origin = times.origin


def answer_job(argument: str, device: str) -> str:
    """In a worker: ``run_job`` as a task, which takes and gives text. Raises what that raises."""
    return json.dumps(run_job(Job.model_validate_json(argument), device).model_dump(mode="json"))


@lru_cache(maxsize=1)
def _host(plugins: PluginChoice) -> PluginHost:
    """The plugins of this worker, found once for all jobs that want the same."""
    from rpl_core.cli.session import Session

    return Session(
        plugin_modules=plugins.modules, disabled_plugins=plugins.disabled, config_file=plugins.config_file
    ).host
