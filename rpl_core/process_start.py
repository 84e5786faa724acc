"""How the process of one command is made cheap; programs that use rpl as a library keep their own ways."""

from __future__ import annotations

import atexit
import gc
import os
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
