"""Build a project by its own command in a copy of its tree, and notice what reaches into the original."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import attrs

from rpl_core.errors import UsageError
from rpl_core.files import make_directory, storage_error
from rpl_core.process import require_program
from rpl_core.run_directory import is_run_directory
from rpl_core.text import masked_words
from rpl_core.values import frozen
from rpl_optimize.build.build_run import (
    MARKER,
    BuildRun,
    Entry,
    StepFailedError,
    TextBuilder,
    build_environment,
)
from rpl_optimize.build.host_code import HostComparison, including, watching
from rpl_optimize.build.systems import OUTPUT, SOURCE, given_words
from rpl_optimize.interfaces.builder import (
    Build,
    Builder,
    BuildFailure,
    BuildRequest,
    BuildSystem,
    Compilation,
)
from rpl_optimize.running.program_word import Program, find_program, why_no_mounts
from rpl_optimize.session_layout import is_session_directory

# Build a project by its own command in a copy of its tree, and notice what reaches into the original.

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


# The compilations of a build, out of the lines that make, ninja and CMake print.


#: Those that compile HIP; a launcher such as ccache may stand before them.
_COMPILER: Final = re.compile(r"(?:^|/)(?:hipcc|amdclang\+\+|clang\+\+|clang)(?:-\d+)?$")
_ENTERING: Final = re.compile(r"^\w+(?:\[\d+\])?: (Entering|Leaving) directory '(.+)'$")
_PROGRESS: Final = re.compile(r"^\[\s*\d+[/%]\s*\d*\]\s*")
_UNITS: Final = (".hip", ".cu", ".cpp", ".cc", ".cxx", ".C")


def compilations(lines: Iterable[str], place: Path) -> Iterator[Compilation]:
    """Commands that compile a source, with the directories in which they ran; ``place`` is the first one."""
    places = [place]
    for line in lines:
        if match := _ENTERING.match(line):
            places = [*places, Path(match[2])] if match[1] == "Entering" else places[:-1] or [place]
            continue
        for words, folder in _commands(_PROGRESS.sub("", line), places[-1]):
            if any(word.endswith(_UNITS) for word in words[1:]):
                yield Compilation(words, folder)


def _commands(line: str, place: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """The compilers' commands of one line, which a shell read: ``cd build && hipcc -c x.hip``."""
    try:
        words = shlex.split(line)
    except ValueError:
        return
    command: list[str] = []
    for word in (*words, "&&"):
        if word not in ("&&", ";"):
            command.append(word)
            continue
        if command[:1] == ["cd"] and len(command) == 2:
            place = place / command[1]
        start = next((i for i, part in enumerate(command[:3]) if _COMPILER.search(part)), None)
        if start is not None:
            yield tuple(command[start:]), place
        command = []


#: Variables in which a path of the project names a tool, not the project.
_TOOL_PATHS = frozenset(("PATH", "HOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH"))


@frozen
class ProjectBuilder(TextBuilder):
    """``words`` run in ``place`` (inside of ``root``) while a copy of ``root`` stands in for it.

    Where nothing can be mounted, they run in the copy itself: the project's absolute path in words and in
    variables is led there, and build directories of CMake are left out. The program is taken away before
    the build, so that an old one is never taken for the result. In the user's command only the program is
    replaced: data files stay the user's, and so does the working directory.
    """

    summary: str
    words: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    root: Path
    place: Path
    time_limit_s: float
    mounted: bool
    more_trees: tuple[Path, ...] = ()  # others that the build writes to, where copies can be mounted
    entries: tuple[Entry, ...] = ()  # of the compile database, where one tells who includes a header

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s)) as run:
            copies = self._copied(run)
            edited = copies.written(self.source)
            _replace(run, edited, text)
            binary = copies.written(program_place(self.program.path))
            _take_away(binary, copies)
            try:
                for unit in including(run, self.entries, self.source) if self.mounted else ():
                    copies.renew(unit.file)
                watched = {} if original is None else watching(run.temporary)
                compiled = self._run_command(run, copies, watched)
                built = _result(binary, copies)
                verdict = None
                if original is not None:
                    environment = self._environment(run, copies.seen(edited.parent), copies)
                    comparison = HostComparison(run, environment, edited, copies.trees())
                    verdict = comparison.verdict(original, text, built)
                return attrs.evolve(run.finished(built, verdict), compilations=compiled)
            except StepFailedError as error:
                return run.failed(str(error))

    def _copied(self, run: BuildRun) -> Copies:
        """Copies of all trees; commands see them at the trees' own places, if that is possible."""
        copies = Copies(mounted=self.mounted)
        for number, root in enumerate((self.root, *self.more_trees)):
            copy = run.directory / (f"tree-{number}" if number else "project")
            project = Project(root, self.source, whole=self.mounted)
            copies.add(project, copy, project.copy(copy))
            run.readable += project.outside
            if self.mounted:
                run.readable.append(root)
                run.stand_in_for(root, copy)
        return copies

    def _run_command(
        self, run: BuildRun, copies: Copies, watched: Mapping[str, str]
    ) -> tuple[Compilation, ...]:
        """What it was seen to compile, at the places of the user's own files."""
        if not copies.written(self.place).is_dir():
            raise UsageError(
                f"{self.place} is not copied: it belongs to a build of CMake or a run of rpl",
                next_step="start rpl in the project itself, with a --build that configures a build directory",
            )
        place = copies.seen(copies.written(self.place))
        words = tuple(copies.led(word) for word in self.words)
        try:
            lines = run.step(words, place, {**self._environment(run, place, copies), **watched})
        finally:
            copies.refuse_changes()
        return tuple(compilations(lines, place)) if self.mounted else ()

    def _environment(self, run: BuildRun, place: Path, copies: Copies) -> dict[str, str]:
        environment = build_environment(run.temporary, place)
        own = ("PWD", "TMPDIR")
        return {
            name: value if name in _TOOL_PATHS or name in own else copies.led(value)
            for name, value in environment.items()
        }


@attrs.define
class Copies:
    """Copied trees of one build. ``mounted``: commands see each where its original is."""

    mounted: bool
    _all: list[tuple[Project, Path, Snapshot]] = attrs.field(factory=list, init=False)

    def add(self, project: Project, copy: Path, before: Snapshot) -> None:
        self._all.append((project, copy, before))

    def written(self, path: Path) -> Path:
        """Where a path of an original is written."""
        project, copy = next((p, c) for p, c, _ in self._all if path.is_relative_to(p.root))
        return copy / path.relative_to(project.root)

    def holds(self, path: Path) -> bool:
        """Whether it lies in a copy, links on the way resolved."""
        return any(path.resolve().is_relative_to(copy.resolve()) for _, copy, _ in self._all)

    def seen(self, path: Path) -> Path:
        """Where commands see a path of a copy."""
        tree = next(copy for copy in self.trees() if path.is_relative_to(copy))
        return self.trees()[tree] / path.relative_to(tree)

    def trees(self) -> dict[Path, Path]:
        """The copies with the places where commands see them."""
        return {copy: project.root if self.mounted else copy for project, copy, _ in self._all}

    def led(self, text: str) -> str:
        """``text`` with paths of originals led to where commands see the copies."""
        for project, copy, _ in () if self.mounted else self._all:
            text = _led(text, project.root, copy)
        return text

    def renew(self, path: Path) -> None:
        """Have a file of an original look changed: not every makefile knows who includes a header."""
        if any(path.is_relative_to(project.root) for project, _, _ in self._all):
            self.written(path).touch()

    def as_built(self, link: Path) -> Path:
        """Where a link leads that a build made."""
        named = link.readlink()
        is_own = any(named.is_relative_to(project.root) for project, _, _ in self._all)
        return self.written(named) if is_own and self.mounted else link

    def refuse_changes(self) -> None:
        for project, _, before in self._all:
            changed = project.first_change(before)
            if changed is not None:
                raise StepFailedError(
                    f"{changed} changed in your own tree while the build ran in a copy: "
                    "the build command leads back there, or another program writes there"
                )


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
        place = request.place.resolve()
        if request.project is not None:
            root = request.project.resolve()
        else:
            root = enclosing_tree(request.source, place)
        return project_builder(request, words, root, place)


def project_builder(
    request: BuildRequest,
    words: tuple[str, ...],
    root: Path,
    place: Path,
    *,
    more_trees: tuple[Path, ...] = (),
    entries: tuple[Entry, ...] = (),
) -> ProjectBuilder:
    """``words`` are run in ``place``. ``UsageError`` unless source, program and place lie in the trees."""
    program = find_program(request.command, request.binary, request.place)
    if not root.is_dir():
        raise UsageError(f"--project {root} is not a directory")
    inside = {
        "the source": request.source,
        "the program that is built": program_place(program.path),
        "the working directory": place,
    }
    for what, path in inside.items():
        if not any(path.is_relative_to(tree) for tree in (root, *more_trees)):
            raise UsageError(
                f"{what}, {path}, is not inside the project {root}",
                next_step="name the project's root with --project DIR, and what it builds with --binary FILE",
            )
    can_mount = why_no_mounts() is None
    if not can_mount:
        refuse_in_source_build(root, request.source)
    return ProjectBuilder(
        summary=f"{shlex.join(masked_words(words))}, in a copy of {root}",
        words=words,
        command=request.command,
        source=request.source,
        program=program,
        root=root,
        place=place,
        time_limit_s=request.time_limit_s,
        mounted=can_mount,
        more_trees=more_trees,
        entries=entries,
    )


def enclosing_tree(source: Path, place: Path) -> Path:
    """The git work tree of the source, else the working directory above it, else its own directory."""
    found = (folder for folder in source.parents if (folder / ".git").exists())
    return next(found, place if source.is_relative_to(place) else source.parent)


def program_place(program: Path) -> Path:
    """Where the program lies, links on the way resolved, but not a link that it may be itself."""
    return program.parent.resolve() / program.name


def _led(text: str, root: Path, copy: Path) -> str:
    return re.sub(re.escape(str(root)) + r"(?![\w.+-])", lambda _: str(copy), text)


def _replace(run: BuildRun, edited: Path, text: bytes) -> None:
    mode = edited.stat().st_mode
    edited.unlink()  # never through a link
    run.write(edited, text)
    edited.chmod(mode & 0o777 | 0o200)


def _take_away(binary: Path, copies: Copies) -> None:
    real = Path(os.path.realpath(binary))
    (real if copies.holds(real) else binary).unlink(missing_ok=True)


def _result(binary: Path, copies: Copies) -> Path:
    if binary.is_symlink():
        binary = copies.as_built(binary)
    if not binary.is_file():
        hint = "" if binary.parent.is_dir() else f": there is no directory {binary.parent.name}"
        raise StepFailedError(f"the build command ended well, but did not make {binary.name}{hint}")
    if not copies.holds(binary):
        raise StepFailedError(f"{binary.name} is a link out of the project: it was not built in the copy")
    return binary
