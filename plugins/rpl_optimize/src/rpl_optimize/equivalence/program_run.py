"""Runs of a build in a stand-in for the user's working directory, which stays as it is."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import attrs

from rpl_core.errors import MissingError, TimeLimitError
from rpl_core.files import storage_error
from rpl_core.process import ProcessRequest, describe_exit
from rpl_core.values import frozen
from rpl_optimize.running.sandbox import run_application
from rpl_optimize.session_layout import is_session_directory

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


# One run of one build in a stand-in for the user's working directory.

#: A shell reports a child ended by signal n as 128 + n; 255 is what a program that returns -1 gives.
_SHELL_SIGNALS = range(129, 129 + signal.SIGRTMAX)
_SHOWN_CHARACTERS = 200


@frozen
class ProgramRun:
    """``failure`` says how it failed, ``None`` for exit status 0; ``crashed``: by a signal or a time limit.

    ``stdout_problem`` says why the file at ``stdout`` is incomplete. ``last_line`` is the last of its
    output that is not empty, without control characters.
    """

    copy: WorkingCopy
    stdout: Path
    failure: str | None = None
    crashed: bool = False
    stdout_problem: str | None = None
    last_line: str = ""

    def explained(self) -> str:
        """The failure with the program's last words."""
        return f"{self.failure}: {self.last_line}" if self.last_line else f"{self.failure}"


@frozen
class RunPlan:
    """``outputs`` are left out of the stand-in. ``what`` names the program in messages."""

    command: tuple[str, ...]
    original: Path
    outputs: tuple[PurePosixPath, ...]
    time_limit_s: float
    what: str
    split_output: bool = True

    @property
    def readable(self) -> tuple[Path, ...]:
        """The user's working directory and the parents that a stand-in leads to, as far as they are near."""
        original = self.original.resolve()
        return (original, *tuple(original.parents)[: levels_up(self.command)])


def run_program(plan: RunPlan, place: Path) -> ProgramRun:
    """Run inside ``place``, which must be new. A program that fails is a result, not an error.

    Raises ``MissingError`` or ``UsageError`` when it can't be started or ``place`` can't be written, and
    ``InterruptedRunError``.
    """
    copy = make_working_copy(plan.original, place / "work", plan.outputs, plan.command)
    return run_in(copy, plan, place)


def run_in(copy: WorkingCopy, plan: RunPlan, place: Path) -> ProgramRun:
    """As ``run_program``, in a stand-in that exists."""
    stdout, last = place / "stdout", _LastLine()
    request = ProcessRequest(
        command=plan.command,
        log_path=place / "log",
        time_limit_s=plan.time_limit_s,
        what=plan.what,
        working_directory=copy.directory,
        stdout_path=stdout if plan.split_output else None,
    )
    try:
        result = run_application(request, last.take, place.absolute(), plan.readable)
    except TimeLimitError as error:
        return ProgramRun(copy, stdout, error.fact, crashed=True, last_line=last.line)
    run = ProgramRun(copy, stdout, stdout_problem=result.stdout_problem, last_line=last.line or _tail(stdout))
    if result.succeeded:
        return run
    return attrs.evolve(
        run,
        failure=f"{plan.what} {describe_exit(result)}",
        crashed=result.exit_status is None or result.exit_status in _SHELL_SIGNALS,
    )


class _LastLine:
    def __init__(self) -> None:
        self.line = ""

    def take(self, line: str) -> None:
        self.line = shown(line) or self.line


def shown(text: str) -> str:
    """Foreign text as a short part of a sentence."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _SHOWN_CHARACTERS]).split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."


def _tail(path: Path) -> str:
    """The last line of a file that is not empty, out of its last block."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 4096))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    return next((line for line in map(shown, reversed(lines)) if line), "")


def program_of(command: Iterable[str], built: Iterable[str]) -> str:
    """The built program in a command line: the word that differs from the user's own."""
    original, changed = tuple(command), tuple(built)
    pairs = zip(original, changed)  # noqa: B905 - lengths may differ
    return next((new for old, new in pairs if old != new), changed[0])


# Directories for runs inside the scratch directory that a check was given.


def fresh_place(directory: Path, name: str) -> Path:
    """Make and return ``directory/name``, or ``name-2`` and so on where earlier runs stay.

    Raises as ``rpl_core.files.storage_error`` says.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            place = directory / (name if number == 1 else f"{name}-{number}")
            try:
                place.mkdir()
            except FileExistsError:
                continue
            return place
    except OSError as error:
        raise storage_error(directory, error) from error
    raise AssertionError("unreachable")
