"""Which word of the user's command is the program that is built, and putting another one in its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_codeobject.reading.read import read_code_objects
from rpl_core.errors import RplError, UsageError
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A launcher's command line is short; later words are the application's own data.
_MAX_WORDS = 64


@frozen
class Program:
    """``path`` is absolute and may not exist yet; ``words`` are the places in the command that mean it."""

    path: Path
    words: tuple[int, ...]

    def replaced(self, command: Sequence[str], built: Path) -> tuple[str, ...]:
        """``command`` with ``built`` for the program; every other word stays what the user wrote."""
        return tuple(str(built) if i in self.words else word for i, word in enumerate(command))


def find_program(command: Sequence[str], binary: Path | None, place: Path) -> Program:
    """The program that the build makes: ``binary``, else the first word.

    Where the first word is there and holds no device code (``mpirun``, ``python``), the only other word
    that names a file with device code. ``place`` is the working directory. Raises ``UsageError`` when the
    command does not name the program, or several could be meant.
    """
    if not command or not command[0]:
        raise UsageError("no application was given")
    if binary is not None:
        wanted = _absolute(binary, place)
        return Program(wanted, _words(command, wanted, place))
    first = _program_path(command[0], place)
    if not first.exists() or _has_device_code(first):
        return Program(first, _words(command, first, place))
    others = {path for word in command[1:_MAX_WORDS] if _has_device_code(path := place / word)}
    if len(others) > 1:
        names = ", ".join(sorted(str(path) for path in others))
        raise UsageError(
            f"several words of the command hold device code: {names}",
            next_step="name the one that is built with --binary FILE",
        )
    found = _absolute(others.pop(), place) if others else first
    return Program(found, _words(command, found, place))


def _words(command: Sequence[str], program: Path, place: Path) -> tuple[int, ...]:
    found = tuple(
        i
        for i, word in enumerate(command)
        if word and _same((_program_path(word, place) if i == 0 else place / word), program)
    )
    if not found:
        raise UsageError(
            f"the command does not name {program}, so the built one can't take its place",
            next_step="give the command as it runs that file, or another --binary",
        )
    return found


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _program_path(word: str, place: Path) -> Path:
    if os.sep not in word and (found := shutil.which(word)) is not None:
        return _absolute(Path(found), place)
    return _absolute(Path(word), place)


def _absolute(path: Path, place: Path) -> Path:
    # Not resolved: in a project the link's own place counts, not where it leads.
    return Path(os.path.normpath(place / path))


def _has_device_code(path: Path) -> bool:
    try:
        return path.is_file() and bool(read_code_objects(path))
    except (RplError, OSError, ValueError):
        return False
