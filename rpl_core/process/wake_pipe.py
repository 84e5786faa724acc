"""A pipe to end a poll from a signal handler or another thread."""

from __future__ import annotations

import contextlib
import os

_CLOSED = -1


class WakePipe:
    """``notify`` makes ``descriptor`` readable; ``clear`` empties it. After ``close`` both do nothing."""

    def __init__(self) -> None:
        self.descriptor, self._write_end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write_end, False)

    def notify(self) -> None:
        if self._write_end != _CLOSED:
            with contextlib.suppress(BlockingIOError):  # full: a wake-up is pending anyway
                os.write(self._write_end, b"\0")

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass

    def close(self) -> None:
        write_end, self._write_end = self._write_end, _CLOSED
        os.close(write_end)
        os.close(self.descriptor)
