"""Directories and files that a run needs, and what to say when the file system refuses them."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError, UsageError

if TYPE_CHECKING:
    from rpl_core.errors import RplError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def storage_error(path: Path, error: OSError, needed_bytes: int | None = None) -> RplError:
    """``MissingError`` for a full disk or quota, ``UsageError`` for a place that can't be written.

    ``needed_bytes`` is what was to be written, where that is known.
    """
    if error.errno in _FULL:
        needed = "" if needed_bytes is None else f": {needed_bytes} bytes are needed, {_free(path)} are free"
        return MissingError(
            f"no space left to write {path}",
            cause=f"{error.strerror}{needed}",
            next_step="free some space, or choose another place with -o DIR",
        )
    return UsageError(
        f"cannot write {path}: {error.strerror}", next_step="choose a place that you may write with -o DIR"
    )


def _free(path: Path) -> str:
    """Bytes that this user may still write where ``path`` is, as text."""
    try:
        return str(shutil.disk_usage(path.parent).free)
    except OSError:
        return "an unknown number"


def make_directory(path: Path) -> None:
    """Make ``path`` and its parents. Raises as ``storage_error`` says."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error
