"""Ctrl-C and its relatives as KeyboardInterrupt, told apart from one that a plugin raises.

Imported at every start, so it imports nothing heavy.
"""

from __future__ import annotations

import signal
import threading

_WATCHED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
#: Whether a signal came, once somebody looks after them.
_came: bool | None = None


def treat_termination_as_interrupt() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that run directories are closed whoever stops us.

    A signal that rpl was told to ignore (``nohup``) stays ignored.
    """
    global _came
    if threading.current_thread() is threading.main_thread():
        _came = False
        for number in _WATCHED:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: object) -> None:
    global _came
    _came = True
    raise KeyboardInterrupt


def is_ctrl_c(error: BaseException) -> bool:
    """Whether a signal is behind ``error``: plugins raise KeyboardInterrupt too."""
    return isinstance(error, KeyboardInterrupt) and _came is not False
