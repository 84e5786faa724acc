"""Commands of a build: run in its sandbox, and taken from a compile database.

A run has its environment, a time limit over all commands, one log, and the first error.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rpl_codeobject.reading import BUNDLE_MAGIC, COMPRESSED_MAGIC, ELF_MAGIC
from rpl_codeobject.reading.elf_file import guarded, is_device_elf, open_elf
from rpl_core.errors import BadDataError, MemoryLimitError, MissingError, TimeLimitError, UsageError
from rpl_core.files import make_directory, parse_json, read_regular, storage_error
from rpl_core.process import describe_exit
from rpl_core.process.output import LogFile
from rpl_core.text import masked_words, printable, shorten
from rpl_core.values import frozen
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.running.program_word import Program, mounted
from rpl_optimize.running.sandbox import Reach, find_sandbox, run_confined

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


# A compile database: which compiler and options each source has, and commands to compile and link anew.

# Reading ``compile_commands.json``.

NAME = "compile_commands.json"
_PLACES = (Path(), Path("build"))
#: Databases of large projects reach some tens of megabytes.
_MAX_BYTES = 256 << 20
#: They start a compiler; the link has no use for them.
_LAUNCHERS = frozenset(("ccache", "sccache", "distcc", "icecc"))
#: CMake compiles what belongs to target ``app`` into ``CMakeFiles/app.dir/``.
_CMAKE_TARGET = re.compile(r"(?:^|/)CMakeFiles/([^/]+)\.dir/")


@frozen
class Entry:
    """How one file is compiled. Paths are absolute; ``target`` is the one of CMake, if the entry shows it."""

    file: Path
    directory: Path
    words: tuple[str, ...]
    target: str | None = None

    @property
    def compiler(self) -> str:
        return self.words[0]


def find_database(source: Path) -> Path | None:
    """The nearest database at or above the source's directory, there or in ``build``."""
    for folder in source.parents:
        for place in _PLACES:
            path = folder / place / NAME
            if path.is_file():
                return path
    return None


def read_database(path: Path) -> tuple[Entry, ...]:
    """All entries in file order; a directory stands for the database in it.

    Raises ``MissingError`` without the file, ``BadDataError`` for what is no compile database.
    """
    path = (path / NAME if path.is_dir() else path).absolute()
    if not path.exists():
        raise MissingError(
            f"no compile database at {path}",
            next_step="make one with `cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON` or `bear -- make`",
        )
    values = parse_json(read_regular(path, _MAX_BYTES), path)
    if not isinstance(values, list):
        raise BadDataError(f"{path}: a compile database is a list, this is a {type(values).__name__}")
    return tuple(_entry(value, f"{path}, entry {number}", path.parent) for number, value in enumerate(values))


def _entry(value: Any, where: str, folder: Path) -> Entry:
    if not isinstance(value, dict):
        raise BadDataError(f"{where}: not an object")
    directory = folder / _required_text(value, "directory", where)
    words = _without_launcher(_words(value, where))
    if not words:
        raise BadDataError(f"{where}: no command")
    output = (
        value.get("output")
        if isinstance(value.get("output"), str)
        else next((value for word, value in pairwise(words) if word == "-o"), None)
    )
    target = _CMAKE_TARGET.search(output or "")
    return Entry(
        file=(directory / _required_text(value, "file", where)).resolve(),
        directory=directory,
        words=words,
        target=None if target is None else target[1],
    )


def _words(value: dict[str, Any], where: str) -> tuple[str, ...]:
    listed = value.get("arguments")
    if isinstance(listed, list) and all(isinstance(word, str) for word in listed):
        return tuple(listed)
    try:
        return tuple(shlex.split(_required_text(value, "command", where)))
    except ValueError as error:
        raise BadDataError(f"{where}: command can't be split into words: {error}") from None


def _without_launcher(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if words and Path(words[0]).name in _LAUNCHERS else words


def _required_text(value: dict[str, Any], key: str, where: str) -> str:
    text = value.get(key)
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadDataError(f"{where}: {key} is {text!r}, expected a text")
    return text


# Objects of a build by compile database: the commands that compile and link them, and which to link.
#
# A compile database lists the objects of all programs of a project.

#: Options that write files besides the object (dependency files, temporaries, diagnostics).
_WRITING = frozenset(("-M", "-MM", "-MD", "-MMD", "-MP", "-MG", "-MV", "-c", "--compile", "--"))
_WRITING_WITH_VALUE = frozenset(
    ("-o", "--output", "-MF", "-MT", "-MQ", "-MJ", "--serialize-diagnostics", "-serialize-diagnostics")
)
_WRITING_JOINED = ("-MF", "-MT", "-MQ", "-MJ", "-Wp,-M", "-save-temps", "--save-temps", "--output=")
#: Options of a compilation that its link needs too (clang's command line reference).
_LINKED = (
    *("--offload-arch=", "--amdgpu-target=", "--offload-compress", "--no-offload-compress", "-fgpu-rdc"),
    *("-fno-gpu-rdc", "--rocm-path=", "--hip-path=", "--rocm-device-lib-path=", "-nogpulib", "-O"),
    *("--sysroot=", "--target=", "--gcc-toolchain=", "--gcc-install-dir=", "-m32", "-m64", "-stdlib="),
    *("-pthread", "-fopenmp", "-fsanitize", "-flto", "-fprofile", "--coverage", "-fuse-ld="),
)
_LINKED_WITH_VALUE = frozenset(("-target", "--sysroot", "-isysroot"))


def compile_command(entry: Entry, source: Path, output: Path, beside: Path | None = None) -> tuple[str, ...]:
    """The entry's command for ``source`` in place of its file; nothing but ``output`` is written.

    Quoted includes find headers in ``beside``. ``BadDataError`` when the entry does not name its file.
    """
    options = tuple(_options(entry))
    if len(options) == len(tuple(_without_outputs(entry.words[1:]))):
        raise BadDataError(f"the compile database's command for {entry.file} does not name that file")
    includes = () if beside is None else ("-iquote", str(beside))
    return (entry.compiler, *options, *includes, "-c", str(source), "-o", str(output))


def dependency_command(entry: Entry, rules: Path) -> tuple[str, ...]:
    """Has the entry's compiler write to ``rules`` which files it reads, and nothing else."""
    return (entry.compiler, *_options(entry), "-MM", "-MT", "unit", "-MF", str(rules), str(entry.file))


def is_library(path: Path) -> bool:
    """Whether a built file of this name is loaded, not started: ``libx.so``, ``libx.so.2``."""
    return ".so" in path.suffixes


def is_device_code(path: Path) -> bool:
    """Whether a file holds device code and nothing for the host: a code object, or a bundle of such."""
    with path.open("rb") as file:
        begin = file.read(len(BUNDLE_MAGIC))
    if begin.startswith((BUNDLE_MAGIC, COMPRESSED_MAGIC)):
        return True
    try:
        return begin.startswith(ELF_MAGIC) and is_device_elf(path.read_bytes(), path.name)
    except BadDataError:
        return False


def link_command(
    entry: Entry, objects: Sequence[Path], output: Path, flags: Sequence[str]
) -> tuple[str, ...]:
    """Link ``objects`` with the compiler and the fitting options of ``entry``, then ``flags``."""
    # hipcc says so itself; plain clang has to be told to join the device code of all objects.
    hip = () if Path(entry.compiler).name.startswith("hipcc") else ("--hip-link",)
    hip = (*hip, *(("-shared",) if is_library(output) else ()))
    files = tuple(map(str, objects))
    return (entry.compiler, *_link_options(entry), *hip, *files, "-o", str(output), *flags)


def _options(entry: Entry) -> Iterator[str]:
    for word in _without_outputs(entry.words[1:]):
        if word.startswith("-") or (entry.directory / word).resolve() != entry.file:
            yield word


def _without_outputs(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in _WRITING_WITH_VALUE:
            next(rest, None)
        elif word not in _WRITING and not word.startswith(_WRITING_JOINED) and not _is_joined_output(word):
            yield word


def _is_joined_output(word: str) -> bool:
    return word.startswith("-o") and not word.startswith(("-obj", "-object"))


def _link_options(entry: Entry) -> Iterator[str]:
    rest = iter(entry.words[1:])
    for word in rest:
        if word in _LINKED_WITH_VALUE:
            yield from (word, next(rest, ""))
        elif word.startswith(_LINKED):
            yield word


@frozen
class CompiledObject:
    path: Path
    entry: Entry


def objects_to_link(
    own: Sequence[CompiledObject], others: Sequence[CompiledObject], program: str
) -> list[Path]:
    """The candidate's objects and all others, without those that hold the ``main`` of another program.

    Where several do and the candidate does not, ``main`` is taken from the candidate's CMake target, else
    from the target named like the program. ``StepFailedError`` when neither decides.
    """
    mains = [other for other in others if defines_main(other.path)]
    has_main = is_library(Path(program)) or any(defines_main(one.path) for one in own)
    kept = [] if has_main else _main(mains, own[0], program)
    linked = (other.path for other in others if other not in mains or other in kept)
    return [*(one.path for one in own), *linked]


def _main(mains: list[CompiledObject], own: CompiledObject, program: str) -> list[CompiledObject]:
    if len(mains) <= 1:
        return mains
    for target in (own.entry.target, program):
        fitting = [main for main in mains if target is not None and main.entry.target == target]
        if len(fitting) == 1:
            return fitting
    names = ", ".join(main.entry.file.name for main in mains[:5])
    raise StepFailedError(
        f"the compile database holds several programs ({names}) and does not say which one it is: "
        "give the program's own build with --build"
    )


def defines_main(path: Path) -> bool:
    """Whether an object defines ``main``; false for what is no ELF (bitcode of a link-time optimization)."""
    data = path.read_bytes()
    if not data.startswith(ELF_MAGIC):
        return False

    def look() -> bool:
        table = open_elf(data).get_section_by_name(".symtab")
        found = () if table is None else (table.get_symbol_by_name("main") or ())
        return any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in found)

    try:
        return guarded(look, path.name)
    except BadDataError as error:
        raise StepFailedError(f"the compiler wrote an object that can't be read: {error.fact}") from None
