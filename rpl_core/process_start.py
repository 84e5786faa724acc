"""How the process of one command begins: cheap, and with Ctrl-C and its relatives as KeyboardInterrupt.

Programs that use rpl as a library keep their own ways. Imported at every start, so it imports nothing heavy.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import threading
from contextlib import suppress

#: Allocations between two looks for garbage. Python's own 700 mean 170 looks while modules are imported,
#: which make no garbage; a short analysis stays below this number (chosen), its one look cost 15 ms.
_ALLOCATIONS = 200_000
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
#: Parameters of mallopt(3) of glibc, and blocks up to which freed memory is used again (all but all).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _KEPT_BYTES = -1, -3, (1 << 31) - 1


def collect_garbage_rarely() -> None:
    """One command lives for a second and its large data are arrays: cyclic garbage hardly exists."""
    gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def import_numpy_alone() -> None:
    """Import numpy without the thread pool of its linear algebra, which rpl hardly uses.

    OpenBLAS starts a thread per core when it is loaded. A number that the user has set stays; the variable
    does not outlive the import, because the application to profile inherits the environment.
    """
    alone = _BLAS_THREADS not in os.environ
    if alone:
        os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401, ICN001 - it is only loaded
    finally:
        if alone:
            del os.environ[_BLAS_THREADS]
    keep_freed_memory()


def keep_freed_memory() -> None:
    """Columns come and go: what goes back to the system is cleared again each time, a fifth of a long run.

    A setting of this process alone: a variable would reach the application to profile.
    """
    import ctypes  # numpy has loaded it

    with suppress(OSError, AttributeError):  # of another C library
        mallopt = ctypes.CDLL(None).mallopt
        for parameter in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            mallopt(parameter, _KEPT_BYTES)


# Ctrl-C and its relatives as KeyboardInterrupt, told apart from one that a plugin raises.

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
