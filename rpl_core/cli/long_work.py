"""A sign of life while large recordings are read and analysed."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["shown_while_long"]

#: From this size of the input on (chosen: about a second of work).
_LARGE_BYTES = 64 << 20
#: Files of a folder that are looked at (chosen: looking must stay cheap).
_MOST_FILES = 2000


@contextmanager
def shown_while_long(title: str, paths: Iterable[Path], *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal's stderr that ``title`` goes on, how much there is to read and since when.

    Nothing is shown for small inputs, and nothing where stderr is no terminal.
    """
    if quiet or not sys.stderr.isatty() or (size := _bytes_of(paths)) < _LARGE_BYTES:
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color="NO_COLOR" in os.environ)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as shown:
        shown.add_task(f"{title}: {size / (1 << 20):,.0f} MiB", total=None)
        yield


def _bytes_of(paths: Iterable[Path]) -> int:
    """The size of all files, at most 2000 of them; what can't be looked at counts nothing."""
    total = seen = 0
    for path in paths:
        files = (
            [path]
            if path.is_file()
            else (Path(at) / name for at, _, names in os.walk(path) for name in names)
        )
        for file in files:
            try:
                total += file.stat().st_size
            except OSError:
                continue
            seen += 1
            if seen >= _MOST_FILES:
                return total
    return total
