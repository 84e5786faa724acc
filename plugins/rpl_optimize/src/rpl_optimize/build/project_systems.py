"""What a project says of its build where nobody else does: CMake, PyTorch or make, and which source."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rpl_codeobject.reading import read_code_objects
from rpl_codeobject.reading.debug_info import kernel_sources, unit_sources
from rpl_core.errors import RplError, UsageError
from rpl_core.files import parse_json, read_regular
from rpl_core.process import require_program
from rpl_core.text import printable
from rpl_core.values import frozen
from rpl_optimize.build.build_run import NAME, Entry, find_database, read_database
from rpl_optimize.build.project_build import enclosing_tree, program_place, project_builder
from rpl_optimize.build.systems import is_header
from rpl_optimize.interfaces.builder import Builder, BuildRequest, BuildSystem
from rpl_optimize.running.program_word import find_program, why_no_mounts

# What a project says of its build where nobody else does: CMake, PyTorch or make, and which source.


def nothing_said(request: BuildRequest) -> bool:
    """Whether the user leaves it open how the program is built."""
    return request.build_command is None and request.compile_database is None and not request.link_flags


def found_program(request: BuildRequest) -> Path:
    """Where the program lies that is built. Raises as ``find_program`` does."""
    return program_place(find_program(request.command, request.binary, request.place).path)


def tree_of(request: BuildRequest, *more: Path) -> Path:
    """``--project``, else the tree around the source, with ``more`` where that is no whole part of a disk."""
    if request.project is not None:
        return request.project.resolve()
    tree = enclosing_tree(request.source, request.place.resolve())
    above = Path(os.path.commonpath((tree, *more)))
    return above if above == tree or above in more else tree


# Build with CMake as the user did: in a copy of their build directory, the target that makes the program.

CACHE: Final = "CMakeCache.txt"
_HOME: Final = re.compile(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", re.MULTILINE)
_MOST_CMAKE_BYTES: Final = 64 << 20
#: `build`, `build/release`, `out/build/x64` (chosen); a deeper one is named by the program in it.
_DEPTH: Final = 3


class CMakeBuilds(BuildSystem):
    """The build directory that holds the program, else the one whose targets make it."""

    name = "cmake"
    summary = "The build directory of CMake that the program is from: `cmake --build`."
    priority = 25

    def builder(self, request: BuildRequest) -> Builder | None:
        if not nothing_said(request) or why_no_mounts() is not None:
            return None
        program = found_program(request)
        directory = _build_directory(request, program)
        if directory is None:
            return None
        require_program(("cmake",))
        words = ("cmake", "--build", str(directory), *_target_words(directory, program), "--verbose")
        root = tree_of(request, _home(directory) or directory)
        outside = () if directory.is_relative_to(root) else (directory,)
        return project_builder(request, words, root, directory, more_trees=outside)


@frozen
class Target:
    """What CMake's file API says of a target; ``artifact`` is absolute."""

    name: str
    artifact: Path
    configuration: str | None = None  # where there are several


def _build_directory(request: BuildRequest, program: Path) -> Path | None:
    """Raises ``UsageError`` where several fit."""
    holding = next((folder for folder in program.parents if (folder / CACHE).is_file()), None)
    if holding is not None:
        return holding if _builds(holding, request.source) else None
    root = tree_of(request)
    folders = [folder for folder in _directories(root) if _builds(folder, request.source)]
    targets = {folder: targets_of(folder) for folder in folders}
    making = [folder for folder in folders if any(t.artifact == program for t in targets[folder])]
    unknown = [folder for folder in folders if not targets[folder]]
    fitting = making or unknown
    if len(fitting) > 1:
        names = ", ".join(os.path.relpath(folder, request.place) for folder in fitting)
        raise UsageError(
            f"several build directories of CMake may make {program.name}: {names}",
            next_step=f"choose one: --build 'cmake --build {os.path.relpath(fitting[0], request.place)}'",
        )
    return fitting[0] if fitting else None


def _directories(root: Path, depth: int = _DEPTH) -> Iterator[Path]:
    if (root / CACHE).is_file():
        yield root
        return
    if depth:
        try:
            folders = sorted(e.path for e in os.scandir(root) if e.is_dir(follow_symlinks=False))
        except OSError:
            return
        for folder in folders:
            yield from _directories(Path(folder), depth - 1)


def _home(directory: Path) -> Path | None:
    """The source directory that it was configured for; ``None`` when it was moved or is damaged."""
    try:
        with (directory / CACHE).open("rb") as file:
            match = _HOME.search(file.read(_MOST_CMAKE_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None
    home = None if match is None else Path(match[1].strip())
    return home.resolve() if home is not None and home.is_dir() else None


def _builds(directory: Path, source: Path) -> bool:
    home = _home(directory)
    return home is not None and source.is_relative_to(home)


def _target_words(directory: Path, program: Path) -> tuple[str, ...]:
    """By CMake's file API; else a target of the compile database with the program's name; else all."""
    for target in targets_of(directory):
        if target.artifact == program:
            chosen = () if target.configuration is None else ("--config", target.configuration)
            return ("--target", target.name, *chosen)
    names = {program.name, program.name.split(".")[0], program.name.split(".")[0].removeprefix("lib")}
    try:
        known = {entry.target for entry in read_database(directory / NAME)}
    except RplError:
        return ()
    return next((("--target", name) for name in sorted(names & (known - {None}))), ())


def targets_of(directory: Path) -> Sequence[Target]:
    """Targets with what they make, by the file API's answer; none where nobody asked (cmake-file-api(7))."""
    reply = directory / ".cmake" / "api" / "v1" / "reply"
    try:
        index = _read(max(reply.glob("index-*.json")))  # the last by name is the current one
        model = next(o["jsonFile"] for o in index["objects"] if o["kind"] == "codemodel")
        return tuple(_targets(reply, _read(reply / model), directory))
    except (OSError, ValueError, LookupError, TypeError, StopIteration, RplError):
        return ()


def _targets(reply: Path, model: Any, directory: Path) -> Iterator[Target]:
    several = len(model["configurations"]) > 1
    for configuration in model["configurations"]:
        for listed in configuration["targets"]:
            target = _read(reply / listed["jsonFile"])
            for artifact in target.get("artifacts", ()):
                path = program_place(Path(os.path.normpath(directory / artifact["path"])))
                yield Target(target["name"], path, configuration["name"] if several else None)


def _read(path: Path) -> Any:
    return parse_json(read_regular(path, _MOST_CMAKE_BYTES), path)


# Build what PyTorch's `cpp_extension` builds: by the file for ninja that it leaves, or by `setup.py`.

_BUILD_FILE, _SETUP = "build.ninja", "setup.py"
_PYTHON: Final = re.compile(r"python\d?(\.\d+)?$")


class NinjaBuilds(BuildSystem):
    """A ``build.ninja`` beside the program or above it, as ``torch.utils.cpp_extension.load`` writes one."""

    name = "ninja"
    summary = "The build.ninja beside or above the program."
    priority = 23

    def builder(self, request: BuildRequest) -> Builder | None:
        if not nothing_said(request) or why_no_mounts() is not None:
            return None
        program = found_program(request)
        folder = next((f for f in program.parents if (f / _BUILD_FILE).is_file()), None)
        if folder is None or (folder / CACHE).is_file():
            return None
        require_program(("ninja",))
        root = tree_of(request)
        outside = () if folder.is_relative_to(root) else (folder,)
        return project_builder(request, ("ninja", "--verbose"), root, folder, more_trees=outside)


class SetupBuilds(BuildSystem):
    """``setup.py build_ext`` for a library of Python's that lies in the project."""

    name = "setup"
    summary = "The setup.py above the source, for an extension of Python."
    priority = 21

    def builder(self, request: BuildRequest) -> Builder | None:
        if not nothing_said(request) or why_no_mounts() is not None:
            return None
        program = found_program(request)
        root = tree_of(request)
        above = (folder for folder in request.source.parents if folder.is_relative_to(root))
        folder = next((f for f in above if (f / _SETUP).is_file()), None)
        if folder is None or program.suffix != ".so" or not program.is_relative_to(folder):
            return None
        first = request.command[0]
        python = first if _PYTHON.search(Path(first).name) else "python3"
        require_program((python,))
        beside = () if program.is_relative_to(folder / "build") else ("--inplace",)
        return project_builder(request, (python, _SETUP, "build_ext", *beside), root, folder)


# Build with make where a makefile makes the program.

#: In the order in which make looks for them (GNU make's manual, "What Name to Give Your Makefile").
_NAMES: Final = ("GNUmakefile", "makefile", "Makefile")
_MOST_MAKEFILE_BYTES: Final = 4 << 20


class MakeBuilds(BuildSystem):
    """The makefile that names the program, in the working directory or above program or source."""

    name = "make"
    summary = "The makefile that names the program."
    priority = 22

    def builder(self, request: BuildRequest) -> Builder | None:
        if not nothing_said(request):
            return None
        program = found_program(request)
        root = tree_of(request)
        above = Path(os.path.commonpath((root, program)))
        if request.project is None and not program.is_relative_to(root) and _makefile_text(above):
            root = above  # the user stands in the directory of what is built, beside that of the source
        folder = _folder(request, program, root)
        if folder is None:
            return None
        require_program(("make",))
        entries = _entries(request) if is_header(request.source) else ()
        # Without anybody who knows what includes a header, everything is built anew.
        anew = ("-B",) if is_header(request.source) and not entries else ()
        words = ("make", *anew, *_target(folder, program))
        return project_builder(request, words, root, folder, entries=entries)


def _folder(request: BuildRequest, program: Path, root: Path) -> Path | None:
    """Raises ``UsageError`` where several makefiles name the program and none is where the user is."""
    if not program.is_relative_to(root):
        return None
    place = request.place.resolve()
    above = (*program.parents, *request.source.parents)
    folders = dict.fromkeys(folder for folder in (place, *above) if folder.is_relative_to(root))
    makers = [folder for folder in folders if _names(folder, program)]
    if len(makers) > 1 and makers[0] != place:
        names = ", ".join(os.path.relpath(folder, place) for folder in makers)
        raise UsageError(
            f"the makefiles of several directories name {program.name}: {names}",
            next_step=f"choose one: --build 'make -C {os.path.relpath(makers[0], place)}'",
        )
    return makers[0] if makers else None


def _makefile_text(folder: Path) -> str:
    """The makefile of a directory; nothing for one that CMake wrote."""
    if (folder / CACHE).is_file():
        return ""
    for name in _NAMES:
        try:
            with (folder / name).open("rb") as file:
                return file.read(_MOST_MAKEFILE_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
    return ""


def _names(folder: Path, program: Path) -> bool:
    name = re.escape(program.name)
    return re.search(rf"(?<![\w.+-]){name}(?![\w.+-])", _makefile_text(folder)) is not None


def _target(folder: Path, program: Path) -> tuple[str, ...]:
    """The program, where a rule is written for it in full; else what make makes of itself."""
    below = os.path.relpath(program, folder)
    for name in (below, f"./{below}"):
        if re.search(
            rf"^(?:[^#\t\n=]*[ \t])?{re.escape(name)}(?:[ \t][^=\n]*)?:(?!=)",
            _makefile_text(folder),
            re.MULTILINE,
        ):
            return (name,)
    return ()


def _entries(request: BuildRequest) -> tuple[Entry, ...]:
    database = find_database(request.source)
    try:
        return () if database is None else read_database(database)
    except RplError:
        return ()


# Find the source of a program's kernels: by name, debug information or compile database.

#: A source written by people; anything longer is not read (chosen).
_MAX_SOURCE_BYTES = 16 << 20
_MAX_SHOWN = 8
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_KERNEL = re.compile(rb"\b__global__\b")
#: Kernels in headers of the system and of ROCm are not the user's to change.
_FOREIGN = (Path("/usr"), Path("/opt"))
_NEXT_STEP = "name it with --source FILE, build with -g, or give --compile-database FILE"


@frozen
class FoundSource:
    """``how`` says where the path comes from, for people."""

    path: Path
    how: str


def find_source(
    command: Sequence[str],
    *,
    source: Path | None = None,
    compile_database: Path | None = None,
    binary: Path | None = None,
) -> FoundSource:
    """The one file that defines the kernels of ``command``, absolute.

    In this order: ``source``; debug information of the program's device code, then of its host code; the
    compile database. A file counts when it exists and holds ``__global__`` outside of comments.
    Raises ``UsageError`` that says what was found and what to pass, ``BadDataError`` for a broken database.
    """
    if source is not None:
        if not source.is_file():
            raise UsageError(f"no source file at {source}", next_step="check --source")
        return FoundSource(source.resolve(), "--source")
    program = find_program(command, binary, Path.cwd()).path
    looked: list[str] = []
    for how, named in _from_debug_information(program, looked):
        sources = _defining(named)
        if len(sources) > 1:
            raise _ambiguous(sources, f"{how} of {program.name}")
        if sources:
            return FoundSource(sources[0], f"{how} of {program.name}")
        looked.append(f"{how} of {program.name} names {_shown(named)}")
    return _from_database(compile_database, program, looked)


def defines_kernels(path: Path) -> bool:
    """Whether ``path`` is a regular file of a bearable size with ``__global__`` outside of comments."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SOURCE_BYTES:
            return False
        return _KERNEL.search(_COMMENT.sub(b" ", path.read_bytes())) is not None
    except (OSError, ValueError):
        return False


def _from_debug_information(program: Path, looked: list[str]) -> Iterable[tuple[str, Sequence[Path]]]:
    try:
        codes = read_code_objects(program)
    except RplError as error:
        looked.append(error.fact)  # a mistyped program must not read like one without debug information
        return
    yield "device debug information", sorted({place.path for place in kernel_sources(codes).values()})
    yield "host debug information", unit_sources(program)


def _from_database(path: Path | None, program: Path, looked: list[str]) -> FoundSource:
    # ``find_database`` looks above a file: the program's place, then the working directory.
    database = path or find_database(program) or find_database(Path.cwd() / program.name)
    if database is None:
        looked.append("no compile_commands.json was found")
        raise _nothing(looked)
    sources = _defining([entry.file for entry in read_database(database)])
    if len(sources) > 1:
        raise _ambiguous(sources, str(database))
    if not sources:
        looked.append(f"no file of {database} defines a kernel")
        raise _nothing(looked)
    return FoundSource(sources[0], str(database))


def _defining(paths: Iterable[Path]) -> list[Path]:
    resolved = sorted({_resolved(path) for path in paths if path.is_absolute()})
    found = [path for path in resolved if defines_kernels(path)]
    own = [path for path in found if not any(path.is_relative_to(place) for place in _FOREIGN)]
    return own or found


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
        return path


def _ambiguous(paths: Sequence[Path], where: str) -> UsageError:
    return UsageError(
        f"several files define kernels: {_shown(paths)}",
        cause=f"all of them are in {where}",
        next_step="name the one to work on with --source FILE",
    )


def _nothing(looked: Sequence[str]) -> UsageError:
    return UsageError(
        "the source of the kernels was not found", cause="; ".join(looked), next_step=_NEXT_STEP
    )


def _shown(paths: Sequence[Path]) -> str:
    if not paths:
        return "no file"
    names = [printable(str(path)) for path in paths[:_MAX_SHOWN]]
    more = f" and {len(paths) - _MAX_SHOWN} more" if len(paths) > _MAX_SHOWN else ""
    return ", ".join(names) + more
