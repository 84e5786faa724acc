"""Build a project by its own command, in a copy of its tree."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import UsageError
from rpl_core.process.launch import require_program
from rpl_core.values import frozen
from rpl_optimize.build.build_run import BuildRun, StepFailedError, TextBuilder
from rpl_optimize.build.environment import build_environment
from rpl_optimize.build.host_comparison import HostComparison, watching
from rpl_optimize.build.program_word import Program, find_program
from rpl_optimize.build.project_copy import Project, Snapshot, refuse_in_source_build
from rpl_optimize.build.template_build import OUTPUT, SOURCE, given_words
from rpl_optimize.interfaces.builder import Builder, BuildSystem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpl_optimize.interfaces.builder import Build, BuildFailure, BuildRequest

#: Variables in which a path of the project names a tool, not the project.
_TOOL_PATHS = frozenset(("PATH", "HOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH"))


@frozen
class ProjectBuilder(TextBuilder):
    """``words`` run in the counterpart of ``place`` (the user's working directory) in a copy of ``root``.

    The project's absolute path in words and in variables is led to the copy. The program is taken away
    before the build, so that an old one is never taken for the result. In the user's command only the
    program is replaced: data files stay the user's, and so does the working directory.
    """

    summary: str
    words: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    root: Path
    place: Path
    time_limit_s: float

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s)) as run:
            copy = run.directory / "project"
            project = Project(self.root, self.source)
            before = project.copy(copy)
            run.readable += project.outside
            self._replace_source(run, copy, text)
            binary = copy / program_place(self.program.path).relative_to(self.root)
            _take_away(binary, copy)
            try:
                watched = {} if original is None else watching(run.temporary)
                self._run_command(run, copy, project, before, watched)
                built = _result(binary, copy)
                if original is None:
                    return run.finished(built)
                edited = copy / self.source.relative_to(self.root)
                comparison = HostComparison(run, self._environment(run, copy, edited.parent), edited, copy)
                return run.finished(built, comparison.verdict(original, text))
            except StepFailedError as error:
                return run.failed(str(error))

    def command_for(self, build: Build) -> tuple[str, ...]:
        return self.program.replaced(self.command, build.binary)

    def _run_command(
        self, run: BuildRun, copy: Path, project: Project, before: Snapshot, watched: Mapping[str, str]
    ) -> None:
        place = copy / self.place.relative_to(self.root)
        if not place.is_dir():
            raise UsageError(
                f"{self.place} is not copied: it belongs to a build of CMake or a run of rpl",
                next_step="start rpl in the project itself, with a --build that configures a build directory",
            )
        try:
            run.step(self._led(copy), place, {**self._environment(run, copy, place), **watched})
        except StepFailedError:
            _refuse_changes(project, before)
            raise
        _refuse_changes(project, before)

    def _replace_source(self, run: BuildRun, copy: Path, text: bytes) -> None:
        place = copy / self.source.relative_to(self.root)
        mode = place.stat().st_mode
        place.unlink()  # never through a link
        run.write(place, text)
        place.chmod(mode & 0o777 | 0o200)

    def _led(self, copy: Path) -> tuple[str, ...]:
        return tuple(_led(word, self.root, copy) for word in self.words)

    def _environment(self, run: BuildRun, copy: Path, place: Path) -> dict[str, str]:
        found = build_environment(run.temporary, place)
        own = ("PWD", "TMPDIR")
        return {
            name: value if name in _TOOL_PATHS or name in own else _led(value, self.root, copy)
            for name, value in found.items()
        }


class ProjectBuilds(BuildSystem):
    """``--build`` without ``{source}`` and ``{output}``: the project's own build, in a copy of its tree."""

    name = "project"
    summary = "The project's own build command (--build), in a copy of its tree."
    priority = 30

    def builder(self, request: BuildRequest) -> Builder | None:
        words = given_words(request)
        if not words or any(name in word for name in (SOURCE, OUTPUT) for word in words):
            return None
        require_program(words)
        return _project_builder(request, words)


def _project_builder(request: BuildRequest, words: tuple[str, ...]) -> ProjectBuilder:
    """Raises ``UsageError`` unless source, program and working directory lie inside the project."""
    place = request.place.resolve()
    program = find_program(request.command, request.binary, request.place)
    root = request.project.resolve() if request.project is not None else _enclosing(request.source, place)
    if not root.is_dir():
        raise UsageError(f"--project {root} is not a directory")
    inside = {
        "the source": request.source,
        "the program that is built": program_place(program.path),
        "the working directory": place,
    }
    for what, path in inside.items():
        if not path.is_relative_to(root):
            raise UsageError(
                f"{what}, {path}, is not inside the project {root}",
                next_step="name the project's root with --project DIR, and what it builds with --binary FILE",
            )
    refuse_in_source_build(root, request.source)
    return ProjectBuilder(
        summary=f"{shlex.join(words)}, in a copy of {root}",
        words=words,
        command=request.command,
        source=request.source,
        program=program,
        root=root,
        place=place,
        time_limit_s=request.time_limit_s,
    )


def _enclosing(source: Path, place: Path) -> Path:
    """The git work tree of the source, else the working directory above it, else its own directory."""
    found = (folder for folder in source.parents if (folder / ".git").exists())
    return next(found, place if source.is_relative_to(place) else source.parent)


def program_place(program: Path) -> Path:
    """Where the program lies, links on the way resolved, but not a link that it may be itself."""
    return program.parent.resolve() / program.name


def _led(text: str, root: Path, copy: Path) -> str:
    return re.sub(re.escape(str(root)) + r"(?![\w.+-])", lambda _: str(copy), text)


def _refuse_changes(project: Project, before: Snapshot) -> None:
    changed = project.first_change(before)
    if changed is not None:
        raise StepFailedError(
            f"{changed} changed in your own tree while the build ran in a copy: "
            "the build command leads back there, or another program writes there"
        )


def _take_away(binary: Path, copy: Path) -> None:
    real = Path(os.path.realpath(binary))
    (real if real.is_relative_to(copy.resolve()) else binary).unlink(missing_ok=True)


def _result(binary: Path, copy: Path) -> Path:
    name = binary.relative_to(copy)
    if not binary.is_file():
        hint = (
            "" if binary.parent.is_dir() else "; build directories of CMake are not copied, it must make one"
        )
        raise StepFailedError(f"the build command ended well, but did not make {name}{hint}")
    if not binary.resolve().is_relative_to(copy.resolve()):
        raise StepFailedError(f"{name} is a link out of the project: it was not built in the copy")
    return binary
