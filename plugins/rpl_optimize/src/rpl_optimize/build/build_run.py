"""Run the commands of one build: its environment, a time limit over all of them, one log, the first error."""

from __future__ import annotations

import os
import re
import shlex
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rpl_core.errors import MemoryLimitError, TimeLimitError, UsageError
from rpl_core.files import make_directory, storage_error
from rpl_core.process.outcome import describe_exit
from rpl_core.process.output import LogFile
from rpl_core.text import masked_words, printable, shorten
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.isolation.sandbox import Reach, find_sandbox, run_confined
from rpl_optimize.running.program_word import Program, mounted

_DROPPED = frozenset(
    (
        *("CCC_OVERRIDE_OPTIONS", "CCC_PRINT_OPTIONS", "CCC_PRINT_OPTIONS_FILE", "CCC_PRINT_BINDINGS"),
        *("CC_PRINT_HEADERS", "CC_PRINT_HEADERS_FILE", "CC_PRINT_HEADERS_FORMAT", "CC_PRINT_OPTIONS"),
        *("CC_PRINT_OPTIONS_FILE", "CC_PRINT_PROC_STAT", "CC_PRINT_PROC_STAT_FILE", "CC_LOG_DIAGNOSTICS"),
        *("CC_LOG_DIAGNOSTICS_FILE", "FORCE_CLANG_DIAGNOSTICS_CRASH", "GCC_COMPARE_DEBUG"),
        *("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "OLDPWD"),
    )
)
#: A cache would hand the second build the first one's result, and then nothing would have been rebuilt.
_ADDED = {"CCACHE_DISABLE": "1", "SCCACHE_RECACHE": "1", "LC_ALL": "C"}


def build_environment(
    scratch: Path, place: Path, *, include: Sequence[Path] = (), user: Mapping[str, str] | None = None
) -> dict[str, str]:
    """``user`` (default: rpl's own) for a build in ``place`` whose temporary files go to ``scratch``.

    ``include`` is searched for headers behind all ``-I`` of the command (``CPATH``).
    """
    given = os.environ if user is None else user
    kept = {name: value for name, value in given.items() if _passes(name, value)}
    kept |= _ADDED | {"TMPDIR": str(scratch), "PWD": str(place)}  # makefiles read $(PWD)
    if include:
        places = [*map(str, include), *filter(None, [given.get("CPATH")])]
        kept["CPATH"] = os.pathsep.join(places)
    return kept


def _passes(name: str, value: str) -> bool:
    if name in ("MAKEFLAGS", "MFLAGS"):  # the job server of a make that rpl itself was started by
        return "jobserver" not in value
    return name not in _DROPPED


# The run itself.

_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
#: Linkers name what is missing without the word "error": GNU ld, gold.
_ERROR = re.compile(
    r"\berror\b(?:\(s\))?:|\bundefined reference to\b|\bundefined symbol\b|No rule to make target"
)
#: What only repeats that something before it failed.
_LATER = re.compile(r"^(?:make|gmake|ninja)(?:\[\d+\])?:|linker command failed|ld returned \d+ exit status")
_WIDTH = 400
#: What a caller may want to look at; the log has all.
_MOST_LINES = 1000


#: Where a compiler says that an error is. Its message quotes what stands there.
_PLACE = re.compile(r"^(?P<path>[^\s:][^:]*):\d+(?::\d+)?:\s")


class TextBuilder(Builder):
    """A builder that takes the same steps for the user's own text and for a candidate.

    It puts the built program into the user's command, where their own stands.
    """

    command: tuple[str, ...]
    program: Program

    def build(self, text: bytes, directory: Path) -> Build | BuildFailure:
        return self._built(text, None, directory)

    def build_candidate(self, candidate: bytes, original: bytes, directory: Path) -> Build | BuildFailure:
        return self._built(candidate, original, directory)

    @abstractmethod
    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        """Build ``text``; ``original`` is the user's where ``text`` is a candidate."""

    def command_for(self, build: Build) -> tuple[str, ...]:
        return self.program.replaced(self.command, build.binary)


class FirstError:
    """Takes the lines of a build one by one; ``text`` is its first error, or ``None``.

    ``is_own`` tells files of the project: the error may be told to a language model, and what an error in
    another file quotes is nobody's business there (``#include "/etc/passwd"``). The log has all.
    """

    def __init__(self, is_own: Callable[[str], bool] = lambda _path: True) -> None:
        self._is_own = is_own
        self._error: str | None = None
        self._later: str | None = None
        self._last: str | None = None

    def take(self, line: str) -> None:
        plain = _COLOUR.sub("", line).strip()
        if not plain:
            return
        self._last = plain
        if self._error is None and _LATER.search(plain) is None and _ERROR.search(plain):
            self._error = plain
        elif self._later is None and _LATER.search(plain):
            self._later = plain

    @property
    def text(self) -> str | None:
        """The first error of a compiler or linker, else what the build system or the last line says."""
        error = self._error or self._later or self._last
        if error is None:
            return None
        place = _PLACE.match(error)
        if place is not None and not self._is_own(place["path"]):
            error = f"error in {place['path']}, which is not part of the project: see {LOG}"
        return shorten(printable(error), _WIDTH)


LOG = "build.log"
TEMPORARY = "tmp"
#: Marks a directory of a build, so that no copy of a project takes it along.
MARKER = ".rpl-build"


class StepFailedError(Exception):
    """A command of a build failed; the message is the reason for people. Stays inside this package."""


class BuildRun:
    """One build inside ``directory``, which is made; it must be empty. ``close`` it, or use ``closing``.

    Its commands run in a sandbox where there is one: they write into ``directory`` only, and read
    ``readable``, what they and their variables name, and what is installed.
    Raises ``UsageError`` for a directory that holds something, ``MissingError`` for a full disk.
    """

    def __init__(self, directory: Path, time_limit_s: float, readable: Sequence[Path] = ()) -> None:
        self.directory = directory.absolute()
        make_directory(self.directory)
        if any(self.directory.iterdir()):
            raise UsageError(f"{directory} is not empty, so nothing is built there")
        self.temporary = self.directory / TEMPORARY
        make_directory(self.temporary)
        self.write(self.directory / MARKER, b"")
        self.log = self.directory / LOG
        self.commands: list[tuple[str, ...]] = []
        self.readable = list(readable)
        self._over: tuple[tuple[Path, Path], ...] = ()
        self._log_file = LogFile(self.log)
        self._limit_s, self._begin = time_limit_s, time.monotonic()
        self.begin_ns = (self.directory / MARKER).stat().st_mtime_ns  # as file systems tell it

    @staticmethod
    def write(path: Path, content: bytes) -> None:
        """Write a file and the directories above it; raises as ``storage_error`` says."""
        make_directory(path.parent)
        try:
            path.write_bytes(content)
        except OSError as error:
            raise storage_error(path, error) from error

    def write_both(self, name: str, candidate: bytes, original: bytes) -> tuple[Path, Path]:
        """Files called ``name``: the one for device code, the one for host code."""
        device, host = (self.directory / folder / name for folder in ("source", "original"))
        self.write(device, candidate)
        self.write(host, original)
        return device, host

    def close(self) -> None:
        self._log_file.close()

    @property
    def wall_s(self) -> float:
        return time.monotonic() - self._begin

    def step(
        self, command: Sequence[str], place: Path, environment: Mapping[str, str], *, recorded: bool = True
    ) -> list[str]:
        """Run one command in ``place``; the first lines that it prints.

        ``StepFailedError`` when it fails or the build's time is over. ``recorded``: it is part of the build.
        """
        if recorded:
            self.commands.append(tuple(command))
        self.note(f"$ {shlex.join(masked_words(command))}")
        left_s = self._limit_s - self.wall_s
        errors, lines = FirstError(lambda path: self._is_own(path, place)), list[str]()

        def sink(line: str) -> None:
            errors.take(line)
            self.note(line)
            if len(lines) < _MOST_LINES:
                lines.append(line)

        reach = Reach(tuple(self.readable), (self.directory, *(at for _, at in self._over)), self.temporary)
        try:
            result = run_confined(
                command,
                place,
                reach,
                environment,
                left_s,
                what="the build",
                sink=sink,
                around=lambda words: mounted(words, self._over) if self._over else words,
            )
        except TimeLimitError:
            raise StepFailedError(
                f"the build did not end within {self._limit_s:g} s and was stopped"
            ) from None
        except MemoryLimitError as error:
            raise StepFailedError(error.fact) from None
        if not result.succeeded:
            raise StepFailedError(errors.text or f"{Path(command[0]).name} {describe_exit(result)}")
        return lines

    def _is_own(self, path: str, place: Path) -> bool:
        real = Path(os.path.realpath(place / path))
        own = (self.directory, place, *self.readable)
        return any(real.is_relative_to(os.path.realpath(folder)) for folder in own)

    def stand_in_for(self, tree: Path, copy: Path) -> None:
        """From now on commands see ``copy``, which lies in this build's directory, where ``tree`` is.

        Inside of it this build's directory stays where it is, so that what commands are told is found.
        """
        self._over = (*self._over, (copy, tree))
        if self.directory.is_relative_to(tree):
            inside = copy / self.directory.relative_to(tree)
            make_directory(inside)
            self._over = ((self.directory, inside), *self._over)

    def note(self, line: str) -> None:
        """Put a line into the log."""
        self._log_file.write(line.encode("utf-8", "surrogateescape") + b"\n")

    def finished(self, binary: Path, host_code: GuardVerdict | None = None) -> Build:
        """The build whose program is ``binary``."""
        isolation = find_sandbox().summary
        return Build(binary, tuple(self.commands), self.wall_s, self.log, host_code, isolation)

    def failed(self, reason: str) -> BuildFailure:
        self.note(f"rpl: {reason}")
        return BuildFailure(reason, tuple(self.commands), self.wall_s, self.log)
