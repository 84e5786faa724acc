"""How the process of one command is made cheap; programs that use rpl as a library keep their own ways."""

from __future__ import annotations

import atexit
import gc
import os

#: Allocations between two looks for garbage. Python's own 700 mean 170 looks while modules are imported,
#: which make no garbage; a short analysis stays below this number (chosen), its one look cost 15 ms.
_ALLOCATIONS = 200_000
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


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
    if _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401, ICN001 - it is only loaded
    finally:
        del os.environ[_BLAS_THREADS]
