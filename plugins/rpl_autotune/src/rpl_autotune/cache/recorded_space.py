"""Files of Kernel Tuner: its cache, and T4, the results format that autotuners share.

Read and written by their documented shapes (docs/reference/autotuning-files.md). Times are milliseconds.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpl_autotune.contracts.space_file import SpaceDescription
from rpl_core.errors import BadDataError, MissingError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from rpl_autotune.contracts.autotune import AutotuneDocument
    from rpl_autotune.interfaces.space import SearchSpace, Value

__all__ = ["RecordedResult", "RecordedSpace", "read_recorded", "write_kernel_tuner_cache", "write_t4"]

_MOST_BYTES = 1 << 30
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
    """``time_ms`` is ``None`` where the configuration failed."""

    time_ms: float | None
    times_ms: tuple[float, ...] = ()
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


def read_recorded(path: Path) -> RecordedSpace:
    """A cache file of Kernel Tuner (also an unfinished one) or a T4 file; gzip is unpacked."""
    text = _text(path)
    try:
        content = _parsed(text)
        if isinstance(content, dict) and isinstance(content.get("cache"), dict):
            return _kernel_tuner(content)
        if isinstance(content, dict) and isinstance(content.get("results"), list):
            return _t4(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadDataError(f"{path} is damaged: {type(error).__name__}: {error}") from None
    raise BadDataError(
        f"{path} is neither a cache file of Kernel Tuner nor T4",
        next_step="name a file with `cache` or `results` at its top",
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError) as error:
        raise MissingError(f"{path} can't be read: {error}", next_step="check the path") from None
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
    parameters = tuple(content["tune_params_keys"])
    results: dict[tuple[Value, ...], RecordedResult] = {}
    for entry in content["cache"].values():
        row = tuple(entry[name] for name in parameters)
        value = entry.get("time", entry.get("__error__"))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 1e19:
            times = tuple(t for t in entry.get("times", ()) if isinstance(t, (int, float)))
            results[row] = RecordedResult(float(value), times)
        else:
            results[row] = RecordedResult(None, reason=str(value))
    return RecordedSpace(parameters, results, content.get("device_name") or None)


def _t4(content: Mapping[str, Any]) -> RecordedSpace:
    entries = content["results"]
    parameters = tuple(entries[0]["configuration"]) if entries else ()
    results: dict[tuple[Value, ...], RecordedResult] = {}
    for entry in entries:
        row = tuple(entry["configuration"][name] for name in parameters)
        value = _t4_time(entry) if entry.get("invalidity", "correct") == "correct" else None
        times = tuple(entry.get("times", {}).get("runtimes") or ()) if value is not None else ()
        results[row] = RecordedResult(value, times, None if value is not None else str(entry["invalidity"]))
    device = content.get("metadata", {}).get("device") if isinstance(content.get("metadata"), dict) else None
    return RecordedSpace(parameters, results, device)


def _t4_time(entry: Mapping[str, Any]) -> float | None:
    for measurement in entry.get("measurements", ()):
        if measurement.get("name") == "time" and isinstance(measurement.get("value"), (int, float)):
            return float(measurement["value"])
    return None


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
    from rpl_core.files.atomic import write_atomic

    write_atomic(path, json.dumps(content, indent=1) + "\n")
