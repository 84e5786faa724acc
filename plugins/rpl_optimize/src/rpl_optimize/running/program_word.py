"""Which file of the user's command is the one that is built, and putting another one in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from rpl_codeobject.reading.read import read_code_objects
from rpl_core.errors import MissingError, RplError, UsageError
from rpl_core.values import frozen

#: A launcher's command line is short; later words are the application's own data.
_MAX_WORDS = 64
_RUNS_OTHERS = (b"\x7fELF", b"#!")
_NAME_IT = "name the program, library or code object that is built with --binary FILE"


@frozen
class Program:
    """``path`` is absolute; ``words`` are the places in the command that mean it.

    Without such a word ``place`` is the working directory to which the command's paths are relative.
    """

    path: Path
    words: tuple[int, ...]
    place: Path | None = None

    def replaced(self, command: Sequence[str], built: Path) -> tuple[str, ...]:
        """``command`` with ``built`` for the program; every other word stays what the user wrote."""
        if not self.words:
            return mounted(command, ((built.absolute(), self.path),), self.place)
        return tuple(str(built) if i in self.words else word for i, word in enumerate(command))


def find_program(
    command: Sequence[str], binary: Path | None, place: Path, holds: Callable[[Path], bool] | None = None
) -> Program:
    """The program that the build makes: ``binary``, else the first word.

    Where the first word is there and holds no device code (``mpirun``, ``python``), the only other word
    that names a file with device code; what only starts other programs is never replaced. ``place`` is the
    working directory. ``holds`` tells device code, AMD's without it. Raises ``UsageError`` when nothing or
    several could be meant, ``MissingError`` for a file that no word names where none can be mounted.
    """
    if not command or not command[0]:
        raise UsageError("no application was given")
    if binary is not None:
        return _named(command, _absolute(binary, place), place)
    first = _program_path(command[0], place)
    holds = holds or holds_code_objects
    if not first.exists() or holds(first):
        return Program(first, _words(command, first, place))
    others = {path for word in command[1:_MAX_WORDS] if holds(path := place / word)}
    if len(others) > 1:
        names = ", ".join(sorted(str(path) for path in others))
        raise UsageError(f"several words of the command hold device code: {names}", next_step=_NAME_IT)
    if not others and _runs_others(first):
        raise UsageError(f"{first} holds no device code, so it is not what is built", next_step=_NAME_IT)
    chosen = _absolute(others.pop(), place) if others else first
    return Program(chosen, _words(command, chosen, place))


def names_program(command: Sequence[str], place: Path, holds: Callable[[Path], bool]) -> bool:
    """Whether a word of the command is the program, so that nobody needs to look what the command starts."""
    first = _program_path(command[0], place)
    if not first.exists() or not _runs_others(first):
        return True
    return any(map(holds, (first, *(place / word for word in command[1:_MAX_WORDS]))))


def _named(command: Sequence[str], program: Path, place: Path) -> Program:
    words = _words(command, program, place)
    if words:
        return Program(program, words)
    if not program.is_file():
        raise UsageError(
            f"the command does not name {program}, and there is no such file for a built one to stand in for",
            next_step="build it once, or give the command as it runs that file, or another --binary",
        )
    require_mounts(f"the command does not name {program}", "give the command as it runs that file")
    return Program(program, (), place)


def _words(command: Sequence[str], program: Path, place: Path) -> tuple[int, ...]:
    return tuple(
        i
        for i, word in enumerate(command)
        if word and _same((_program_path(word, place) if i == 0 else place / word), program)
    )


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _program_path(word: str, place: Path) -> Path:
    if os.sep not in word and (found := shutil.which(word)) is not None:
        return _absolute(Path(found), place)
    return _absolute(Path(word), place)


def _absolute(path: Path, place: Path) -> Path:
    # Not resolved: in a project the link's own place counts, not where it leads.
    return Path(os.path.normpath(place / path))


def holds_code_objects(path: Path) -> bool:
    """Whether a file holds device code of AMD."""
    try:
        return path.is_file() and bool(read_code_objects(path))
    except MissingError:  # no decoder for what is packed there
        return True
    except (RplError, OSError, ValueError):
        return False


def _runs_others(path: Path) -> bool:
    """Whether it is a finished program or a script, and not what an earlier build left."""
    try:
        with path.open("rb") as file:
            return file.read(4).startswith(_RUNS_OTHERS)
    except OSError:
        return False


# Let a command see a built file in the place of the user's own, which stays as it is.
#
# For what no word of the command names: the shared library of a Python driver, the program that a script
# starts, a project's tree that its build files name by absolute paths.

_PROGRAM: Final = str(Path(__file__).with_name("mount_and_run.py"))
_PROBE_S: Final = 20.0


def mounted(
    command: Sequence[str], pairs: Sequence[tuple[Path, Path]], place: Path | None = None
) -> tuple[str, ...]:
    """``command`` with the first of each pair at the second one's place.

    ``place``: the working directory to which the command's relative paths belong, wherever it is run.
    """
    words = [str(path) for pair in pairs for path in pair]
    known = () if place is None else ("--place", str(place))
    return (sys.executable, "-I", "-S", _PROGRAM, *known, *words, "--", *command)


@cache
def why_no_mounts() -> str | None:
    """Why this machine mounts nothing for a command of a user, or ``None``. Tried once."""
    with tempfile.TemporaryDirectory(prefix="rpl-mount-") as scratch:
        over, at = Path(scratch, "over"), Path(scratch, "at")
        over.write_text("seen", encoding="ascii")
        at.write_text("", encoding="ascii")
        command = mounted(("cat", str(at)), ((over, at),))
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.stdout == b"seen":
        return None
    return done.stderr.decode("utf-8", "replace").strip()[:200] or f"it ended with {done.returncode}"


def require_mounts(what: str, next_step: str) -> None:
    """``MissingError`` where ``what`` needs a mount and this machine allows none."""
    why = why_no_mounts()
    if why is not None:
        raise MissingError(
            f"{what}, and this machine lets nobody put a built file in its place",
            cause=why,
            next_step=next_step,
        )
