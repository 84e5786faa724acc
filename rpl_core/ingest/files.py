"""Expand what the user named into files, with bounds, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rpl_core.errors import BadDataError, MissingError
from rpl_core.run_directory.layout import DOCUMENTS, RECORDINGS, is_run_directory

#: A folder with more files is not a recording; naming the files still works (chosen).
MAX_FILES = 20_000
_MAX_DEPTH = 8


def expand(paths: Sequence[Path]) -> tuple[Path, ...]:
    """All regular files in ``paths``, folders walked to a bounded depth, sorted within each argument.

    A file that is reached in two ways is taken once: its work must not count twice. Symbolic links inside
    folders are not followed. Raises ``MissingError`` for a path that does not exist.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            for file in _walk(path, 0):
                files.setdefault(file.resolve(), file)
                if len(files) > MAX_FILES:
                    raise BadDataError(
                        f"{path} holds more than {MAX_FILES} files", next_step="name the recording itself"
                    )
        elif path.is_file():
            files.setdefault(path.resolve(), path)
        elif path.exists():
            raise BadDataError(f"{path} is a pipe or a device", next_step="name a file or a folder")
        else:
            raise MissingError(f"{path} does not exist", next_step="check the path")
    return tuple(files.values())


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if depth > _MAX_DEPTH:
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink():
            continue
        if entry.is_dir() and not (entry.name == RECORDINGS and is_run_directory(folder)):  # copies
            yield from _walk(entry, depth + 1)
        elif entry.is_file() and entry.name not in DOCUMENTS:
            yield entry
