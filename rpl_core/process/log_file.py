"""A log that never stops the work: a full disk or an endless writer costs log lines, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from rpl_core.process.storage import storage_error

#: A loop that prints must not fill the disk that the recording needs.
LOG_LIMIT_BYTES = 64 * 1024 * 1024

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class LogFile:
    """Bytes to ``path``, at most ``limit_bytes``. ``problem`` says why some are missing.

    Raises the error of ``storage_error`` when the file can't be made.
    """

    def __init__(self, path: Path, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
        self.problem: str | None = None
        self._room = limit_bytes
        try:
            self._descriptor = os.open(path, _FLAGS, 0o666)
        except OSError as error:
            raise storage_error(path, error) from error

    def write(self, data: bytes) -> None:
        if self.problem is not None:
            return
        if len(data) > self._room:
            self.problem = "the output is longer than the log may be"
            data = data[: self._room] + b"\n[rpl: the log ends here, the output went on]\n"
        self._room -= len(data)
        self._write_all(memoryview(data))

    def close(self) -> None:
        try:
            os.close(self._descriptor)
        except OSError as error:  # network file systems report a full disk only now
            self.problem = self.problem or str(error.strerror)

    def _write_all(self, view: memoryview) -> None:
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            self.problem = str(error.strerror)
