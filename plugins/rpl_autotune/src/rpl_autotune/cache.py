"""The cache of measurements: one JSON object per line, only ever appended to.

A line is written whole and synced before the search goes on, so that neither Ctrl-C nor kill -9 loses what
was measured; a line that was cut off is skipped. Several searches may share one file.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rpl_autotune.evaluation.templates import text_digest
from rpl_autotune.interfaces.job import Reading, Timing, Variant
from rpl_core.errors import BadDataError
from rpl_core.files import make_directory, open_regular, storage_error
from rpl_core.text import masked_words
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_autotune.interfaces.space import Value


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
