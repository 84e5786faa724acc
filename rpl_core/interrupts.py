"""Ctrl-C and its relatives as KeyboardInterrupt, told apart from one that a plugin raises.

Imported at every start, so it imports nothing heavy.
"""

from __future__ import annotations

import signal
import threading

_WATCHED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)


class _Signals:
    """Signals belong to the process, so there is one of these."""

    watched = False
    came = False


def treat_termination_as_interrupt() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that run directories are closed whoever stops us.

    A signal that rpl was told to ignore (``nohup``) stays ignored.
    """
    if threading.current_thread() is threading.main_thread():
        _Signals.watched, _Signals.came = True, False
        for number in _WATCHED:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: object) -> None:
    _Signals.came = True
    raise KeyboardInterrupt


def is_ctrl_c(error: BaseException) -> bool:
    """Whether a signal is behind ``error``: plugins raise KeyboardInterrupt too."""
    return isinstance(error, KeyboardInterrupt) and (_Signals.came or not _Signals.watched)
