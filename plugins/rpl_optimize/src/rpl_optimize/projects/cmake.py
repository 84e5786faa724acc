"""Build with CMake as the user did: in a copy of their build directory, the target that makes the program."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rpl_core.errors import RplError, UsageError
from rpl_core.files.bounded import parse_json, read_regular
from rpl_core.process.launch import require_program
from rpl_core.values import frozen
from rpl_optimize.build.compile_database import NAME, read_database
from rpl_optimize.interfaces.builder import Builder, BuildSystem
from rpl_optimize.projects.found_tree import found_program, nothing_said, tree_of
from rpl_optimize.projects.project_build import program_place, project_builder
from rpl_optimize.running.mounts import why_no_mounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rpl_optimize.interfaces.builder import BuildRequest

CACHE: Final = "CMakeCache.txt"
_HOME: Final = re.compile(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", re.MULTILINE)
_MOST_BYTES: Final = 64 << 20
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
            match = _HOME.search(file.read(_MOST_BYTES).decode("utf-8", "replace"))
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
    return parse_json(read_regular(path, _MOST_BYTES), path)
