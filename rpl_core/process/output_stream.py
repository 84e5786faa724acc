"""The output of a command on its way from a pipe to a log file and to a line sink."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO

from rpl_core.process.log_file import LogFile

_CHUNK_BYTES = 64 * 1024
#: A longer line reaches the sink in pieces: output without a line end must not fill the memory.
LINE_LIMIT_BYTES = 64 * 1024


def _no_sink(_line: str) -> None:
    """Drop a line."""


class OutputStream:
    """Reads ``source`` without blocking. ``open`` turns false at the end of the output."""

    def __init__(self, source: IO[bytes], log: LogFile | None, sink: Callable[[str], None]) -> None:
        self.open = True
        self._source = source
        self._log = log
        self._sink = sink
        self._rest = b""
        os.set_blocking(source.fileno(), False)

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
        if self._log is not None:
            self._log.write(data)
        self._give_lines(data)
        return True

    def finish(self) -> None:
        """Close the pipe and give the last line although it has no end."""
        self.open = False
        self._source.close()
        rest, self._rest = self._rest, b""
        if rest:
            self._emit(rest)

    def _give_lines(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._emit(line)
        while len(self._rest) >= LINE_LIMIT_BYTES:
            self._emit(self._rest[:LINE_LIMIT_BYTES])
            self._rest = self._rest[LINE_LIMIT_BYTES:]

    def _emit(self, line: bytes) -> None:
        self._sink(line.rstrip(b"\r").decode("utf-8", errors="replace"))
