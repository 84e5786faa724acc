"""Files of Kernel Tuner: its cache, and T4, the results format that autotuners share.

Read and written by their documented shapes (docs/reference/autotuning-files.md). Times are milliseconds. The
executor ``recorded`` answers searches from them.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import time
import zlib
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_autotune.contracts import LARGEST_WHOLE, PARAMETER_NAME, AutotuneDocument, SpaceDescription
from rpl_autotune.interfaces import Job, Outcome, Reading, SearchSpace
from rpl_core.errors import BadDataError, UsageError
from rpl_core.files import read_regular
from rpl_core.interfaces.executor import Answer, Executor, ExecutorRequest, Task, Workers
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces import Value


_MOST_BYTES = 1 << 30
#: Older cache files mark a failure by a time of 1e20.
_NO_TIME = 1e19
#: Milliseconds of the units that T4 files name; where one names none, times are milliseconds.
_UNITS_MS = {
    **dict.fromkeys(("", "ms", "millisecond", "milliseconds", "miliseconds"), 1.0),
    **dict.fromkeys(("s", "second", "seconds"), 1e3),
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e-6),
}
#: What T4 calls our states.
_INVALIDITY = {
    "ok": "correct",
    "build_failed": "compile",
    "failed": "runtime",
    "no_time": "runtime",
    "lost": "runtime",
    "time_limit": "timeout",
    "wrong": "correctness",
}
#: What Kernel Tuner's cache holds instead of a time.
_ERRORS = {
    "build_failed": "CompilationFailedConfig",
    "failed": "RuntimeFailedConfig",
    "no_time": "RuntimeFailedConfig",
    "lost": "RuntimeFailedConfig",
    "time_limit": "RuntimeFailedConfig",
    "wrong": "RuntimeFailedConfig",
}


@frozen
class RecordedResult:
    """``time_ms`` is the file's own time, and ``None`` where the configuration failed."""

    time_ms: float | None
    reason: str | None = None


@frozen(eq=False)
class RecordedSpace:
    """A recorded space: parameters and a result for each configuration, in file order."""

    parameters: tuple[str, ...]
    results: Mapping[tuple[Value, ...], RecordedResult]
    device: str | None = None

    def result(self, values: Mapping[str, Value]) -> RecordedResult | None:
        return self.results.get(tuple(values.get(name, "") for name in self.parameters))

    def description(self) -> SpaceDescription:
        """The space as a list of what was recorded."""
        rows = (dict(zip(self.parameters, row, strict=True)) for row in self.results)
        return SpaceDescription(configurations=tuple(rows))


class _DamagedError(ValueError):
    """What is wrong in a recorded file, and where."""


def read_recorded(path: Path) -> RecordedSpace:
    """A cache file of Kernel Tuner (also an unfinished one) or a T4 file; gzip is unpacked.

    Raises ``MissingError`` without the file, and ``BadDataError`` with the place of what can't be used.
    """
    text = _unpacked_text(path)
    try:
        content = _parsed(text)
        if isinstance(content, dict) and isinstance(content.get("cache"), dict):
            return _kernel_tuner(content)
        if isinstance(content, dict) and isinstance(content.get("results"), list):
            return _t4(content)
    except _DamagedError as error:
        raise BadDataError(f"{path} is damaged: {error}") from None
    except (ValueError, RecursionError) as error:
        raise BadDataError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    raise BadDataError(
        f"{path} is neither a cache file of Kernel Tuner nor T4",
        next_step="name a file with `cache` or `results` at its top",
    )


def _unpacked_text(path: Path) -> str:
    data = read_regular(path, _MOST_BYTES)
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise BadDataError(f"{path} can't be unpacked: {error}") from None
    if len(data) > _MOST_BYTES:
        raise BadDataError(f"{path} holds more than 1 GiB")
    return data.decode("utf-8", "replace")


def _parsed(text: str) -> Any:
    """JSON; a cache file that is still being written lacks its closing braces and ends with a comma."""
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text.rstrip().rstrip(",") + "}\n}")


def _kernel_tuner(content: Mapping[str, Any]) -> RecordedSpace:
    parameters = _names(content.get("tune_params_keys"), "tune_params_keys")
    results: dict[tuple[Value, ...], RecordedResult] = {}
    for key, entry in content["cache"].items():
        place = f"cache[{key!r:.80}]"
        row = _configuration(entry, parameters, place)
        results[row] = _result(entry.get("time", entry.get("__error__")), f"{place}.time")
    return RecordedSpace(parameters, results, _device(content.get("device_name"), "device_name"))


def _t4(content: Mapping[str, Any]) -> RecordedSpace:
    parameters: tuple[str, ...] = ()
    results: dict[tuple[Value, ...], RecordedResult] = {}
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    usual_unit_ms = _unit_ms(metadata.get("timeunit"), "metadata.timeunit", 1.0)
    for number, entry in enumerate(content["results"]):
        place = f"results[{number}]"
        given = _mapping(_mapping(entry, place).get("configuration"), f"{place}.configuration")
        parameters = parameters or _names(list(given), f"{place}.configuration")
        row = _configuration(given, parameters, f"{place}.configuration")
        invalidity = entry.get("invalidity", "correct")
        results[row] = (
            _result(_t4_time(entry, place, usual_unit_ms), f"{place}.measurements")
            if invalidity == "correct"
            else RecordedResult(None, str(invalidity))
        )
    return RecordedSpace(parameters, results, _device(metadata.get("device"), "metadata.device"))


def _t4_time(entry: Mapping[str, Any], place: str, usual_unit_ms: float) -> Any:
    """In milliseconds, where it is a number."""
    measurements = entry.get("measurements")
    if measurements is not None and not isinstance(measurements, list):
        raise _DamagedError(f"{place}.measurements is {_kind(measurements)}, not a list")
    for measurement in measurements or ():
        if _mapping(measurement, f"{place}.measurements").get("name") != "time":
            continue
        value = measurement.get("value")
        unit_ms = _unit_ms(measurement.get("unit"), f"{place}.measurements.unit", usual_unit_ms)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if unit_ms == 1 or not is_number or abs(value) > LARGEST_WHOLE else value * unit_ms
    return "no measurement is called time"


def _unit_ms(name: Any, place: str, usual: float) -> float:
    if name is None or name == "":
        return usual
    if not isinstance(name, str) or name.lower() not in _UNITS_MS:
        shown = repr(name) if isinstance(name, str) else _kind(name)
        raise _DamagedError(f"{place} is {shown:.80}, no unit of time")
    return _UNITS_MS[name.lower()]


def _result(value: Any, place: str) -> RecordedResult:
    """A time, or why there is none: tuners write a text, a huge number or one that no run can take."""
    if isinstance(value, str):  # the tuner's name for the failure
        return RecordedResult(None, f"{value:.200}")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        return RecordedResult(None, f"its time is {value!s:.200}, no number")
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise _DamagedError(f"{place} is a number of {len(str(abs(value)))} digits")
    if value <= 0:
        return RecordedResult(None, f"its time is {value:.6g} ms, which no run takes")
    return RecordedResult(float(value) if value < _NO_TIME else None, f"{value:.6g}")


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _DamagedError(f"{place} is {_kind(value)}, not an object")
    return value


def _names(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise _DamagedError(f"{place} is no list of parameter names")
    for name in value:
        if not re.fullmatch(PARAMETER_NAME, name):
            raise _DamagedError(f"{place} holds {name!r:.80}, which is no name of a parameter")
    if len(set(value)) != len(value):
        raise _DamagedError(f"{place} names a parameter twice")
    return tuple(value)


def _configuration(entry: Any, parameters: tuple[str, ...], place: str) -> tuple[Value, ...]:
    values = _mapping(entry, place)
    row = []
    for name in parameters:
        value = values.get(name)
        if not isinstance(value, (bool, int, float, str)):
            raise _DamagedError(f"{place}.{name} is {_kind(value)}, not a value")
        if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
            raise _DamagedError(f"{place}.{name} is a number of {len(str(abs(value)))} digits")
        if isinstance(value, float) and not math.isfinite(value):
            raise _DamagedError(f"{place}.{name} is {value}, not a value")
        row.append(value)
    return tuple(row)


def _device(value: Any, place: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _DamagedError(f"{place} is {_kind(value)}, not a text")
    return value or None


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", type(None): "absent or null"}
    return kinds.get(type(value), "a number")


def write_kernel_tuner_cache(document: AutotuneDocument, space: SearchSpace, path: Path) -> None:
    """The evaluations of a search as a cache file of Kernel Tuner."""
    cache = {}
    for evaluation in document.evaluations:
        values = evaluation.parameters
        result: dict[str, Any] = dict(values)
        result["time"] = (
            evaluation.runtime_ms if evaluation.runtime_ms is not None else _ERRORS[evaluation.state]
        )
        if evaluation.times_ms:
            result["times"] = list(evaluation.times_ms)
        cache[",".join(str(values[name]) for name in space.parameters)] = result
    content = {
        "device_name": document.devices[0].name if document.devices else "",
        "kernel_name": document.command_template,
        "problem_size": "",
        "tune_params_keys": list(space.parameters),
        "tune_params": {name: list(space.levels(n)) for n, name in enumerate(space.parameters)},
        "objective": "time",
        "cache": cache,
    }
    _write(path, content)


def write_t4(document: AutotuneDocument, path: Path) -> None:
    """The evaluations of a search in the results format of T4, version 1.0.0."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    results = []
    for evaluation in document.evaluations:
        measured = evaluation.runtime_ms
        results.append(
            {
                "timestamp": now,
                "configuration": dict(evaluation.parameters),
                "times": {"runtimes": list(evaluation.times_ms)},
                "invalidity": _INVALIDITY[evaluation.state],
                "correctness": 1 if measured is not None else 0,
                "measurements": []
                if measured is None
                else [{"name": "time", "value": measured, "unit": "ms"}],
                "objectives": ["time"],
            }
        )
    _write(path, {"schema_version": "1.0.0", "results": results})


def _write(path: Path, content: Any) -> None:
    from rpl_core.files import write_atomic

    write_atomic(path, json.dumps(content, indent=1) + "\n")


# The executor `recorded`: nothing runs, times are those of a recorded space (``--recorded FILE``).


@frozen
class RecordedRequest(ExecutorRequest):
    """``recording`` is a recorded space, and ``space`` what is searched."""

    recording: str | None = None
    space: SearchSpace | None = attrs.field(default=None, repr=False)


class RecordedExecutor(Executor):
    """Answers from a cache file of Kernel Tuner or a T4 file: to try strategies without a GPU."""

    name = "recorded"
    summary = "answers from a recorded space instead of running anything (--recorded FILE)"

    def open(self, request: ExecutorRequest) -> Workers:
        if not isinstance(request, RecordedRequest) or not request.recording or not request.space:
            raise UsageError(
                "the executor 'recorded' needs a recorded space", next_step="add --recorded FILE"
            )
        return _RecordedWorkers(read_recorded(Path(request.recording)), request)


class _RecordedWorkers(Workers):
    def __init__(self, recorded: RecordedSpace, request: RecordedRequest) -> None:
        assert request.space is not None
        self._device = recorded.device or "recorded device"
        self._space = request.space
        self._recorded = recorded
        self._done: deque[Answer] = deque()

    def places(self) -> tuple[str, ...]:
        return (self._device,)

    def submit(self, task: Task) -> None:
        job = Job.model_validate_json(task.argument)
        readings = tuple(self._reading(variant.index) for variant in job.variants)
        outcome = Outcome(number=job.number, device=self._device, readings=readings)
        self._done.append(Answer(task.number, self._device, outcome.model_dump_json()))

    def _reading(self, index: int) -> Reading:
        result = self._recorded.result(self._space.values(index))
        if result is None:
            return Reading(index=index, state="failed", reason="the recording has no such configuration")
        if result.time_ms is None:
            return Reading(index=index, state="failed", reason=result.reason or "it failed when recorded")
        # The file's own time, whatever it was made from: its smallest one is the best that can be found.
        return Reading(index=index, state="ok", times_ms=(result.time_ms,), origin="measured")

    def wait(self, timeout_s: float | None) -> tuple[Answer, ...]:
        _ = timeout_s
        done = tuple(self._done)
        self._done.clear()
        return done

    def close(self) -> None:
        self._done.clear()
