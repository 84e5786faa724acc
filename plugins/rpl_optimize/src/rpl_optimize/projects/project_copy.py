"""A copy of a project's tree to build in, and noticing when a build reached back into the original."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import UsageError
from rpl_core.process.storage import make_directory, storage_error
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.values import frozen
from rpl_optimize.build.build_run import MARKER
from rpl_optimize.session_layout import is_session_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A source tree with its assets; data sets do not belong into a copy per build (chosen).
MAX_FILES = 100_000
MAX_BYTES = 4 << 30
_CMAKE_CACHE = "CMakeCache.txt"
_REPOSITORY = ".git"

#: Path below the project -> size, time of the last change, inode.
Snapshot = dict[Path, tuple[int, int, int]]


@frozen
class Project:
    """The tree below ``root``, which is resolved; ``source`` is absolute and inside.

    ``whole``: build directories of CMake too, for a copy that is seen at the project's own place.
    ``outside`` fills up with what links of a copy lead to outside of it.
    """

    root: Path
    source: Path
    whole: bool = False
    outside: list[Path] = attrs.field(factory=list, eq=False)

    def copy(self, target: Path) -> Snapshot:
        """Copy the tree to ``target`` (made here), times and modes kept; returns what the original was.

        Left out: ``.git``, runs, sessions and builds of rpl, special files, and unless it is ``whole`` build
        directories of CMake, whose absolute paths would lead back into the original. Links are copied as
        links: inside the project they lead to the copy, others to where they led. A build that writes
        through such a link writes there.

        Raises ``UsageError`` for a tree that is too large or can't be read, and as ``storage_error`` says.
        """
        seen: Snapshot = {}
        size = 0
        make_directory(target)
        for entry, below, status in self._walk():
            if stat.S_ISDIR(status.st_mode):
                make_directory(target / below)
                continue
            seen[below] = _facts(status)
            size += status.st_size
            if len(seen) > MAX_FILES or size > MAX_BYTES:
                raise UsageError(
                    f"{self.root} has more than {MAX_FILES} files or {MAX_BYTES >> 30} GiB, too much to copy",
                    next_step="name the part that the build needs with --project DIR",
                )
            self._copy_file(entry, target, below)
        return seen

    def first_change(self, before: Snapshot) -> Path | None:
        """The first file that was changed, made or removed since ``before``, or ``None``."""
        now = {below: _facts(s) for _, below, s in self._walk() if not stat.S_ISDIR(s.st_mode)}
        different = (path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        return min(different, default=None)

    def _walk(self) -> Iterator[tuple[os.DirEntry[str], Path, os.stat_result]]:
        """Directories (before what they hold), regular files and links, by name."""
        pending = [self.root]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(folder) as listed:
                    entries = sorted(listed, key=lambda entry: entry.name)
            except OSError as error:
                raise UsageError(f"cannot read {folder}: {error.strerror}") from None
            for entry in entries:
                path = Path(entry.path)
                if entry.name == _REPOSITORY or not (status := _status(entry)):
                    continue
                if stat.S_ISDIR(status.st_mode):
                    if self._left_out(path):
                        continue
                    pending.append(path)
                yield entry, path.relative_to(self.root), status

    def _left_out(self, folder: Path) -> bool:
        if (folder / MARKER).is_file() or is_run_directory(folder) or is_session_directory(folder):
            return True
        return not self.whole and (folder / _CMAKE_CACHE).is_file() and folder not in self.source.parents

    def _copy_file(self, entry: os.DirEntry[str], target: Path, below: Path) -> None:
        try:
            if entry.is_symlink():
                (target / below).symlink_to(self._link(Path(entry.path), target))
            else:
                shutil.copy2(entry.path, target / below, follow_symlinks=False)
        except PermissionError as error:
            raise UsageError(f"cannot copy {entry.path}: {error.strerror}") from None
        except OSError as error:
            raise storage_error(target / below, error) from error

    def _link(self, link: Path, target: Path) -> str:
        named = link.readlink()
        end = Path(os.path.normpath(link.parent.resolve() / named))
        if not end.is_relative_to(self.root):
            self.outside.append(end)
            return str(end)
        return str(target / end.relative_to(self.root) if named.is_absolute() else named)


def refuse_in_source_build(root: Path, source: Path) -> None:
    """``UsageError`` when CMake was configured where the source lies: its files all name that place."""
    for folder in source.parents:
        if (folder / _CMAKE_CACHE).is_file():
            raise UsageError(
                f"CMake was configured inside {folder}, so its files lead any copy back there",
                next_step="configure in a build directory and give a --build that configures it anew",
            )
        if folder == root:
            return


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Of a directory, regular file or link; ``None`` for others and for what vanished meanwhile."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    kinds = (stat.S_ISDIR, stat.S_ISREG, stat.S_ISLNK)
    return status if any(is_kind(status.st_mode) for is_kind in kinds) else None


def _facts(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino
