"""Noting SIGINT, SIGTERM and SIGHUP while a command runs, instead of dying on them.

The command has its own session, so the terminal's Ctrl-C reaches rpl alone, and rpl has to stop the
command. A raised KeyboardInterrupt could strike between any two statements and leave processes behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_WATCHED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
_CLOSED = -1


class InterruptWatch:
    """Context manager that counts interrupts in ``count`` and calls ``notify`` at each.

    A signal that rpl was told to ignore (``nohup``) stays ignored. Outside the main thread Python allows
    no handlers, and the watch sees nothing.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self.count = 0
        self.first: signal.Signals | None = None
        self._notify = notify
        self._previous: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            try:
                self._install()
            except BaseException:  # Ctrl-C between two of the installations
                self._restore()
                raise

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _install(self) -> None:
        # SIGINT comes last: until then Ctrl-C still raises, and nothing has been started.
        for number in _WATCHED:
            previous = signal.getsignal(number)
            if previous not in (signal.SIG_IGN, None):
                self._previous.append((number, previous))
                signal.signal(number, self._note)

    def _restore(self) -> None:
        for number, previous in self._previous:
            signal.signal(number, previous)
        self._previous = []

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.first = self.first or signal.Signals(number)
        self._notify()


class WakePipe:
    """Ends a poll from a signal handler or another thread.

    ``notify`` makes ``descriptor`` readable; ``clear`` empties it. After ``close`` both do nothing.
    """

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
