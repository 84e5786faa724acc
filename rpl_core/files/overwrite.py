"""Bytes that must not stay in files of a folder: overwritten in place, whatever the format is."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Sequence
from pathlib import Path


def overwrite_in_files(folder: Path, sought: Sequence[bytes]) -> tuple[str, ...]:
    """Put asterisks over each of ``sought`` in the regular files below ``folder``; links are not followed.

    Nothing is moved, so that files of any format stay readable. Returns the names (below ``folder``) of
    files that could not be changed.
    """
    failed = []
    for place, _, names in os.walk(folder) if sought else ():
        for name in names:
            path = Path(place, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size:
                    _overwrite(path, sought)
            except (OSError, ValueError):
                failed.append(path.relative_to(folder).as_posix())
    return tuple(sorted(failed))


def _overwrite(path: Path, sought: Sequence[bytes]) -> None:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        places = [(at, len(one)) for one in sought for at in _places(content, one)]
    if places:
        with path.open("r+b") as target:
            for at, size in places:
                target.seek(at)
                target.write(b"*" * size)


def _places(content: mmap.mmap, one: bytes) -> list[int]:
    found, at = [], content.find(one)
    while at >= 0:
        found.append(at)
        at = content.find(one, at + len(one))
    return found
