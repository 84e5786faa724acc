"""The output of a command on its way from a pipe to a log file and to a line sink.

A full disk or an endless writer costs log lines and never stops the work. Nor does reading slow the command
down, whose time is measured: lines are made and looked at while it is silent.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from rpl_core.files import storage_error
from rpl_core.text import MASK, secret_bytes

#: A loop that prints must not fill the disk that the recording needs.
LOG_LIMIT_BYTES = 64 * 1024 * 1024

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
_CHUNK_BYTES = 1024 * 1024
#: A longer line reaches the sink in pieces: output without a line end must not fill the memory.
LINE_LIMIT_BYTES = 64 * 1024
#: Of the lines behind these only the last ones reach the sink: each costs microseconds (chosen: a second).
MOST_LINES = 200_000


class Cover:
    """Puts ``***`` in the place of a command's own secrets, also where one comes in two pieces.

    Profilers and build tools print the command that they run.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._secrets = secret_bytes(command)
        self._held = b""

    def over(self, data: bytes, *, last: bool = False) -> bytes:
        """What may be shown by now; the begin of a secret waits for what follows it."""
        if not self._secrets:
            return data
        data, self._held = self._held + data, b""
        for secret in self._secrets:
            data = data.replace(secret, MASK.encode())
        for size in range(0 if last else len(self._secrets[0]) - 1, 0, -1):
            if any(secret.startswith(data[-size:]) for secret in self._secrets if size < len(secret)):
                data, self._held = data[:-size], data[-size:]
                break
        return data


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


def _no_sink(_line: str) -> None:
    """Drop a line."""


class OutputStream:
    """Reads ``source`` without blocking. ``open`` turns false at the end of the output.

    ``waiting`` counts the bytes of which the sink has not heard yet. An endless writer costs the lines in the
    middle: the first ``MOST_LINES`` and what fits into ``LINE_LIMIT_BYTES`` at the end are given.
    """

    def __init__(
        self,
        source: IO[bytes],
        log: LogFile | None,
        sink: Callable[[str], None],
        cover: Cover | None = None,
    ) -> None:
        self.open = True
        self._cover = cover
        self._source = source
        self._log = log
        self._sink = sink
        self._rest = b""
        self._lines_left = MOST_LINES
        self._bytes_left = LOG_LIMIT_BYTES
        self._tail: bytes | None = None  # of what came when there were enough lines
        self._cut = False  # whether lines before the tail are lost
        self._waiting: list[bytes] = []
        self.waiting = 0
        os.set_blocking(source.fileno(), False)
        with contextlib.suppress(OSError):  # more than the user may have, or an old kernel
            fcntl.fcntl(source.fileno(), fcntl.F_SETPIPE_SZ, _CHUNK_BYTES)

    def fileno(self) -> int:
        return self._source.fileno()

    def mute(self) -> None:
        """Call the sink no more. A sink that raises must not keep the command from being stopped."""
        self._sink = _no_sink

    def read_available(self) -> bool:
        """Take at most one chunk over; ``False`` if there is nothing at the moment."""
        try:
            data = os.read(self._source.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.open = False
            return False
        self._take(data if self._cover is None else self._cover.over(data))
        return True

    def _take(self, data: bytes) -> None:
        if self._log is not None:
            self._log.write(data)
        self._waiting.append(data)
        self.waiting += len(data)
        if self.waiting > LOG_LIMIT_BYTES:
            self.give_lines()

    def finish(self) -> None:
        """Close the pipe and give the last line although it has no end."""
        self.open = False
        self._source.close()
        if self._cover is not None:
            self._take(self._cover.over(b"", last=True))
        self.give_lines()
        if self._tail is not None:
            whole, self._rest = self._tail, b""
            if self._cut:
                self._sink("[rpl: lines are left out here, the output was too long]")
                whole = whole.partition(b"\n")[2] or whole
            *lines, self._rest = whole.split(b"\n")
            for line in lines:
                self._emit(line)
        rest, self._rest = self._rest, b""
        if rest:
            self._emit(rest)

    def give_lines(self) -> None:
        """Give what was read to the sink. To be called when the command is silent, or has ended."""
        waiting, self._waiting, self.waiting = self._waiting, [], 0
        for data in waiting:
            self._split(data)

    def _split(self, data: bytes) -> None:
        if self._tail is None and (self._lines_left <= 0 or self._bytes_left <= 0):
            self._tail, self._rest = self._rest, b""
        if self._tail is not None:
            self._keep_last(self._tail + data)
            return
        *lines, self._rest = (self._rest + data).split(b"\n", self._lines_left)
        self._lines_left -= len(lines)
        self._bytes_left -= len(data)
        if self._lines_left <= 0:  # what is left may hold many lines
            self._keep_last(self._rest)
            self._rest = b""
        for line in lines:
            self._emit(line)
        if len(self._rest) >= LINE_LIMIT_BYTES:
            rest, self._rest = self._rest, b""
            self._emit(rest)

    def _keep_last(self, data: bytes) -> None:
        self._cut = self._cut or len(data) > LINE_LIMIT_BYTES
        self._tail = data[-LINE_LIMIT_BYTES:]

    def _emit(self, line: bytes) -> None:
        for start in range(0, len(line) or 1, LINE_LIMIT_BYTES):
            piece = line[start : start + LINE_LIMIT_BYTES]
            self._sink(piece.rstrip(b"\r").decode("utf-8", errors="replace"))
