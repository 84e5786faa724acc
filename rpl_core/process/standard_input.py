"""What a profiled command reads as its standard input.

An application is run several times and must see the same input each time. A regular file
(``rpl profile ./app < points.txt``) is opened anew for each run, at the position where rpl got it.
A pipe or a terminal can't be read twice, so the command gets an empty input instead.
"""

from __future__ import annotations

import os
import stat

_STDIN = 0


def open_repeatable_stdin() -> int:
    """A new descriptor for the command's standard input. The caller closes it."""
    try:
        if stat.S_ISREG(os.fstat(_STDIN).st_mode):
            return _reopened()
    except OSError:  # rpl's own standard input is closed, or the file may not be opened again
        pass
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _reopened() -> int:
    # A duplicate would share its position with the other runs; /proc gives an open file of its own.
    descriptor = os.open(f"/proc/self/fd/{_STDIN}", os.O_RDONLY | os.O_CLOEXEC)
    os.lseek(descriptor, os.lseek(_STDIN, 0, os.SEEK_CUR), os.SEEK_SET)
    return descriptor
