"""Noting SIGINT, SIGTERM and SIGHUP while a command runs, instead of dying on them.

The command has its own session, so the terminal's Ctrl-C reaches rpl alone, and rpl has to stop the
command. A raised KeyboardInterrupt could strike between any two statements and leave processes behind.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_WATCHED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


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
