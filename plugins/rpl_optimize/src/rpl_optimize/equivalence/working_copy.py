"""A stand-in for the user's working directory: runs of a candidate must not overwrite the user's files.

Directories are made anew, small files are copied, large ones are links. Declared outputs are left out, so
that only what a run wrote itself can be there afterwards; so are sessions of the optimizer, which grow by
every check. Linked files are watched: a program that writes through a link has changed a file of the user,
which ``touched`` names.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import deque
from typing import TYPE_CHECKING

from rpl_core.errors import MissingError
from rpl_core.process.storage import storage_error
from rpl_core.values import frozen
from rpl_optimize.session_layout import is_session_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path, PurePosixPath

#: A file that is rewritten by each run is seldom larger; input data often is, and copying it takes long.
COPIED_FILE_BYTES = 1 << 20
COPIED_TOTAL_BYTES = 64 << 20
#: Beyond this, directories are linked as a whole.
MOST_ENTRIES = 5_000
#: They are linked as a whole, too: histories, virtual environments (PEP 405) and caches (bford.info/cachedir)
#: hold thousands of files and no program's data.
_HISTORIES, _MARKS = frozenset((".git", ".hg", ".svn")), ("pyvenv.cfg", "CACHEDIR.TAG")

_PATHS = re.compile(r"[\s=,:;'\"]")
Stamp = tuple[int, int, int]  # inode, bytes, modification time in ns


@frozen
class WorkingCopy:
    """``directory`` is where to run; ``linked`` are the user's files that it leads to."""

    directory: Path
    linked: dict[Path, Stamp | None]

    def touched(self) -> Path | None:
        """The first linked file that changed since the copy was made."""
        return next((path for path, stamp in self.linked.items() if _stamp(path) != stamp), None)


def make_working_copy(
    original: Path, place: Path, outputs: Iterable[PurePosixPath], command: Sequence[str]
) -> WorkingCopy:
    """Copy ``original`` below ``place`` (which must be empty), with as many parents as ``command`` names.

    Raises ``MissingError`` when the directory can't be read, ``UsageError`` or ``MissingError`` when
    the copy can't be written.
    """
    original = original.resolve()
    try:
        place.mkdir(parents=True, exist_ok=True)
        directory = _mirror_parents(original, place, levels_up(command))
        copier = _Copier(place.resolve(), frozenset(original.joinpath(output) for output in outputs))
        copier.copy(original, directory)
    except PermissionError as error:
        raise MissingError(f"cannot read {error.filename}: {error.strerror}") from error
    except OSError as error:
        raise storage_error(place, error) from error
    return WorkingCopy(directory, copier.linked)


def stand_in_for(original: Path, place: Path, seen_at: Path, written_since_ns: int) -> None:
    """Copy ``original`` to ``place`` for runs that see the copy in its place, and itself at ``seen_at``.

    What was written since a time is copied whole, however large: programs write their results anew.
    Raises as ``make_working_copy`` does.
    """
    try:
        place.mkdir(parents=True)
        _Copier(place.resolve(), frozenset(), (original, seen_at), written_since_ns).copy(original, place)
    except PermissionError as error:
        raise MissingError(f"cannot read {error.filename}: {error.strerror}") from error
    except OSError as error:
        raise storage_error(place, error) from error


def levels_up(command: Sequence[str]) -> int:
    """How far relative paths on the command line climb: ``../data/in.bin`` needs one parent."""
    highest = 0
    for path in (path for word in command for path in _PATHS.split(word) if not path.startswith("/")):
        level = 0
        for part in path.split("/"):
            level += {"..": 1, ".": 0, "": 0}.get(part, -1)
            highest = max(highest, level)
    return highest


def _mirror_parents(original: Path, place: Path, levels: int) -> Path:
    """Stand-ins for the parents, which lead to everything beside the way down to ``original``."""
    parents = list(original.parents)[:levels]
    directory = place
    for parent in reversed(parents):
        below = original if parent == original.parent else parents[parents.index(parent) - 1]
        for entry in os.scandir(parent):
            if entry.name != below.name:
                (directory / entry.name).symlink_to(entry.path)
        directory = directory / below.name
        directory.mkdir()
    return directory


class _Copier:
    """Breadth first, so that the limits cost deep directories and not the ones near the program."""

    def __init__(
        self,
        scratch: Path,
        left_out: frozenset[Path],
        seen_at: tuple[Path, Path] | None = None,
        copied_since_ns: int | None = None,
    ) -> None:
        self.linked: dict[Path, Stamp | None] = {}
        self._seen_at, self._copied_since_ns = seen_at, copied_since_ns
        self._scratch = scratch
        self._left_out = left_out
        self._bytes_left = COPIED_TOTAL_BYTES
        self._entries_left = MOST_ENTRIES

    def copy(self, original: Path, directory: Path) -> None:
        waiting = deque([(original, directory)])
        while waiting:
            source, target = waiting.popleft()
            with os.scandir(source) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
            self._entries_left -= len(entries)
            for entry in entries:
                path = source / entry.name
                if path in self._left_out or (entry.is_dir() and is_session_directory(path)):
                    continue
                if self._descends(entry, path):
                    (target / entry.name).mkdir()
                    waiting.append((path, target / entry.name))
                else:
                    self._take_over(entry, path, target / entry.name)

    def _descends(self, entry: os.DirEntry[str], path: Path) -> bool:
        if not entry.is_dir(follow_symlinks=False) or not os.access(path, os.R_OK | os.X_OK):
            return False
        needed = any(path in output.parents for output in self._left_out)
        holds_scratch = path == self._scratch or path in self._scratch.parents
        return needed or (self._entries_left > 0 and not holds_scratch and not _holds_no_data(path))

    def _take_over(self, entry: os.DirEntry[str], path: Path, target: Path) -> None:
        if entry.is_file(follow_symlinks=False) and os.access(path, os.R_OK):
            status = entry.stat(follow_symlinks=False)
            new = self._copied_since_ns is not None and status.st_mtime_ns >= self._copied_since_ns
            if new or status.st_size <= min(COPIED_FILE_BYTES, self._bytes_left):
                self._bytes_left -= 0 if new else status.st_size
                shutil.copy2(path, target)
                return
        target.symlink_to(
            path if self._seen_at is None else self._seen_at[1] / path.relative_to(self._seen_at[0])
        )
        if entry.is_file():
            self.linked[path] = _stamp(path)


def _holds_no_data(directory: Path) -> bool:
    return directory.name in _HISTORIES or any((directory / mark).is_file() for mark in _MARKS)


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
