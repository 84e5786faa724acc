"""Build systems that need no project: a command line of the user, the compiler, a compile database."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import attrs

from rpl_codeobject.reading import read_code_objects
from rpl_core.errors import MissingError, RplError, UsageError
from rpl_core.files import make_directory, sha256_of
from rpl_core.process import require_program
from rpl_core.text import masked_text
from rpl_core.values import frozen
from rpl_optimize.build.build_run import (
    BuildRun,
    CompiledObject,
    Entry,
    StepFailedError,
    TextBuilder,
    build_environment,
    compile_command,
    find_database,
    is_device_code,
    is_library,
    link_command,
    objects_to_link,
    read_database,
)
from rpl_optimize.build.host_code import (
    NO_HOST_CODE,
    HostComparison,
    SeparateCompile,
    including,
    overlay,
    unit_id,
    watching,
)
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure, BuildRequest, BuildSystem
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.running.program_word import Program, find_program

SOURCE, OUTPUT = "{source}", "{output}"
_HEADERS = frozenset((".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inc", ".inl", ".ipp", ".tpp"))
_SHELL_WORDS = frozenset(("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"))


class CommandBuilds(BuildSystem):
    """``--build`` with ``{source}`` and ``{output}``: a command for one file."""

    name = "command"
    summary = "The command of --build, with {source} and {output} in it."
    priority = 30

    def builder(self, request: BuildRequest) -> Builder | None:
        words = given_words(request)
        named = [name for name in (SOURCE, OUTPUT) if any(name in word for word in words)]
        if not named:
            return None
        if len(named) == 1:
            missing = OUTPUT if named == [SOURCE] else SOURCE
            raise UsageError(
                f"--build has {named[0]}, but no {missing}",
                next_step=f"put {missing} into the command, or leave both out for a project's own build",
            )
        if is_header(request.source):
            raise UsageError(
                f"{request.source.name} is a header, so no command for one file builds it",
                next_step="give the project's own build without {source} and {output}: --build 'make app'",
            )
        require_program(words)
        return TemplateBuilder(
            summary=masked_text(str(request.build_command)),
            words=words,
            command=request.command,
            source=request.source,
            program=find_program(request.command, request.binary, request.place),
            place=request.place,
            time_limit_s=request.time_limit_s,
        )


def given_words(request: BuildRequest) -> tuple[str, ...]:
    """The words of ``--build``; none without it. Raises ``UsageError`` for what only a shell understands."""
    if request.build_command is None:
        return ()
    try:
        words = tuple(shlex.split(request.build_command))
    except ValueError as error:
        raise UsageError(f"--build can't be split into words: {error}") from None
    if not words:
        raise UsageError("--build is empty")
    shell = next((word for word in words if word in _SHELL_WORDS), None)
    if shell is not None or "=" in words[0]:
        raise UsageError(
            f"--build is not run by a shell, so {shell or words[0]!r} means nothing there",
            next_step="write --build \"sh -c '...'\", or a script",
        )
    return words


def is_header(path: Path) -> bool:
    return path.suffix.lower() in _HEADERS


@frozen
class TemplateBuilder(TextBuilder):
    """Runs ``words`` in ``place`` (the user's working directory), without a shell.

    The candidate keeps its file name, in a scratch directory. The directory of the user's source is searched
    for headers behind all ``-I`` of the command, by ``CPATH``: that covers ``#include "foo.h"`` and
    ``#include "../foo.h"``. Not covered: a header there that is named like one of the system's is found
    before it; a header that includes the source itself gets the user's. Besides ``{output}`` the command may
    write beside it and into ``TMPDIR``; without a sandbox it also writes where else it says.
    """

    summary: str
    words: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    place: Path
    time_limit_s: float

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s, (self.source.parent,))) as run:
            candidate = run.directory / "source" / self.source.name
            output = run.directory / "bin" / self.program.path.name
            make_directory(output.parent)
            run.write(candidate, text)
            beside = (self.source.parent,)
            environment = build_environment(run.temporary, self.place, include=beside)
            try:
                watched = {} if original is None else watching(run.temporary)
                run.step(self._filled(candidate, output), self.place, environment | watched)
                if not output.is_file():
                    return run.failed("the build command ended well, but wrote no {output}")
                if original is None:
                    return run.finished(output)
                comparison = HostComparison(run, environment, candidate, {run.directory: run.directory})
                return run.finished(output, comparison.verdict(original, text, output))
            except StepFailedError as error:
                return run.failed(str(error))

    def _filled(self, candidate: Path, output: Path) -> tuple[str, ...]:
        return tuple(word.replace(SOURCE, str(candidate)).replace(OUTPUT, str(output)) for word in self.words)


# Build without any instruction: one source, the HIP compiler that is installed.

#: In order of preference: the user's ROCm first, then a plain clang.
HIPCC = ("hipcc", "/opt/rocm/bin/hipcc")
CLANG = ("amdclang++", "/opt/rocm/llvm/bin/clang++", "clang++-22", "clang++")


class CompilerBuilds(BuildSystem):
    """hipcc, else clang; for the architectures of the user's program, else ``request.architecture``."""

    name = "compiler"
    summary = "The HIP compiler that is installed: one command for one file."
    priority = 0

    def builder(self, request: BuildRequest) -> Builder | None:
        return self.one_file(request)

    def one_file(self, request: BuildRequest) -> OneFileBuilder:
        """Raises ``UsageError`` for a header, ``MissingError`` without a compiler."""
        if is_header(request.source):
            raise UsageError(
                f"{request.source.name} is a header, so no single command builds it",
                next_step="give the build of the whole program: --build 'make app', or "
                "--compile-database FILE",
            )
        program = find_program(request.command, request.binary, request.place)
        architectures = offload_architectures(program.path, request.architecture)
        return OneFileBuilder(
            compiler=_compiler(architectures),
            targets=tuple(f"--offload-arch={name}" for name in architectures),
            link_flags=request.link_flags,
            command=request.command,
            source=request.source,
            program=program,
            place=request.place,
            time_limit_s=request.time_limit_s,
            only_device=program.path.is_file() and is_device_code(program.path),
        )


@frozen
class Compiler:
    """``compiling`` and ``linking`` are what makes it compile and link HIP."""

    program: str
    compiling: tuple[str, ...] = ()
    linking: tuple[str, ...] = ()


@frozen
class OneFileBuilder(TextBuilder):
    """Compiles the one source in two steps and links it, in ``place``, the user's working directory."""

    compiler: Compiler
    targets: tuple[str, ...]
    link_flags: tuple[str, ...]
    command: tuple[str, ...]
    source: Path
    program: Program
    place: Path
    time_limit_s: float
    only_device: bool = False  # a file for ``hipModuleLoad``

    @property
    def summary(self) -> str:  # type: ignore[override]
        """The commands that compile and link."""
        compiling = self.compile_command(Path(self.source.name), Path(f"{self.source.stem}.o"))
        linking = self._link(Path(f"{self.source.stem}.o"), Path(self.program.path.name))
        return f"{' '.join(compiling)}; {' '.join(linking)}"

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s, (self.source.parent,))) as run:
            output = run.directory / "bin" / self.program.path.name
            make_directory(output.parent)
            device, host = run.write_both(self.source.name, text, original or text)
            environment = build_environment(run.temporary, self.place)
            compiling = SeparateCompile(self.compile_command, self.place, environment, unit_id(self.source))
            try:
                if self.only_device:
                    run.step(
                        self.compile_command(device, output, "--offload-device-only"), self.place, environment
                    )
                    return run.finished(output, None if original is None else NO_HOST_CODE)
                compiled = compiling.compile(run, device, host, run.directory / f"{self.source.stem}.o")
                run.step(self._link(compiled, output), self.place, environment)
                if not output.is_file():
                    return run.failed("the link ended well, but wrote no program")
                return run.finished(output, None if original is None else compiling.verdict(run, host, text))
            except StepFailedError as error:
                return run.failed(str(error))

    def compile_command(self, source: Path, target: Path, *more: str) -> tuple[str, ...]:
        """Of one file to an object."""
        # Quoted includes only: a header of the user's must not hide one of the system's.
        beside = ("-iquote", str(self.source.parent), *(("-fPIC",) if is_library(self.program.path) else ()))
        own = (*self.compiler.compiling, *more, "-c", str(source), "-o", str(target))
        return (self.compiler.program, "-O3", *self.targets, *beside, *own)

    def _link(self, compiled: Path, output: Path) -> tuple[str, ...]:
        shared = ("-shared",) if is_library(output) else ()
        own = (*self.compiler.linking, *shared, str(compiled), "-o", str(output))
        return (self.compiler.program, "-O3", *self.targets, *own, *self.link_flags)


def offload_architectures(program: Path, architecture: str | None) -> tuple[str, ...]:
    """Target ids for ``--offload-arch``: those of the user's program, of ``architecture`` if it has such."""
    try:
        codes = read_code_objects(program)
    except RplError:  # not built yet, or its code is elsewhere
        codes = ()
    targets = {c.target.partition("--")[2]: c.architecture for c in codes}
    fitting = [name for name, base in targets.items() if name and base == (architecture or base)]
    return tuple(sorted(fitting)) or (() if architecture is None else (architecture,))


def _compiler(architectures: tuple[str, ...]) -> Compiler:
    hipcc, clang = first_installed(HIPCC), first_installed(CLANG)
    if hipcc is not None:
        return Compiler(hipcc)
    if clang is None:
        raise MissingError(
            "no HIP compiler found: neither hipcc nor clang++",
            next_step="install ROCm, put hipcc on PATH, or give your own build with --build",
        )
    if not architectures:
        raise UsageError(
            "there is no hipcc, and clang has to be told the GPU's architecture, which is not known",
            next_step="give your own build with --build 'clang++ ... {source} -o {output}'",
        )
    return Compiler(clang, compiling=("-x", "hip"), linking=("--hip-link",))


def first_installed(names: tuple[str, ...]) -> str | None:
    """The first of these programs that is there."""
    return next((name for name in names if shutil.which(name) is not None), None)


# Build by a compile database: the candidate anew, every other file once, then a link.


class DatabaseBuilds(BuildSystem):
    """A compile database that was named, or the nearest one above the source that has an entry for it."""

    name = "compile-database"
    summary = "The compile database of the source (--compile-database, else the nearest one)."
    priority = 20

    def builder(self, request: BuildRequest) -> Builder | None:
        """Raises ``BadDataError`` for a broken database as well."""
        named = request.compile_database
        database = find_database(request.source) if named is None else named
        if database is None:
            return None
        entries = read_database(database)
        own = any(entry.file == request.source for entry in entries)
        if named is None and not own and not is_header(request.source):
            return None
        return DatabaseBuilder.choose(request, database, entries)


@attrs.define(eq=False)
class DatabaseBuilder(TextBuilder):
    """Compilers run in the directory that their entry names, with objects in the scratch directory.

    ``entry`` is that of the source. A header has none: all files that include it, which the first build finds
    out, are compiled with the candidate in its place (``-ivfsoverlay``). Other files are compiled from the
    user's tree as it is at the first build; later builds link the same objects as long as those lie unchanged
    where they were made. The database does not say what is linked to what: see ``linked_objects``, and
    ``--link-flags`` for libraries.
    """

    summary: str
    command: tuple[str, ...]
    source: Path
    entry: Entry | None
    others: tuple[Entry, ...]
    link_flags: tuple[str, ...]
    program: Program
    time_limit_s: float
    _cache: dict[Path, tuple[Path, str]] = attrs.field(factory=dict, init=False, repr=False)
    _units: tuple[Entry, ...] = attrs.field(default=(), init=False)  # that the source is part of

    @classmethod
    def choose(cls, request: BuildRequest, database: Path, entries: Sequence[Entry]) -> DatabaseBuilder:
        """Raises ``UsageError`` when the database has no entry for the source or its compiler is missing."""
        program = find_program(request.command, request.binary, request.place)
        by_file = _one_per_file(entries, program.path.name)
        entry = by_file.pop(request.source, None)
        if entry is None and (not is_header(request.source) or not by_file):
            raise UsageError(
                f"{database} has no entry for {request.source}",
                cause="it belongs to another project",
                next_step="give the project's own build: --build 'make app'",
            )
        compiler = entry or next(iter(by_file.values()))
        word = compiler.compiler
        require_program((str(compiler.directory / word) if os.sep in word else word,))
        return cls(
            summary=f"{Path(compiler.compiler).name} as in {database}",
            command=request.command,
            source=request.source,
            entry=entry,
            others=tuple(by_file.values()),
            link_flags=request.link_flags,
            program=program,
            time_limit_s=request.time_limit_s,
        )

    def _built(self, text: bytes, original: bytes | None, directory: Path) -> Build | BuildFailure:
        with closing(BuildRun(directory, self.time_limit_s, self._readable())) as run:
            output = run.directory / "bin" / self.program.path.name
            for folder in (output.parent, run.directory / "objects"):
                make_directory(folder)
            try:
                return self._linked(run, text, original, output)
            except StepFailedError as error:
                return run.failed(str(error))

    def _linked(
        self, run: BuildRun, text: bytes, original: bytes | None, output: Path
    ) -> Build | BuildFailure:
        device, host = run.write_both(self.source.name, text, original or text)
        own: list[CompiledObject] = []
        verdicts: list[GuardVerdict] = []
        for number, unit in enumerate(self._own_units(run)):
            compiling = self._compiling(run, unit, (device, host))
            target = run.directory / "objects" / f"own-{number}-{unit.file.stem}.o"
            own.append(CompiledObject(compiling.compile(run, device, host, target), unit))
            if original is not None:
                verdicts.append(compiling.verdict(run, host, text))
        others = [entry for entry in self.others if entry not in self._units]
        compiled = [self._other(run, number, entry) for number, entry in enumerate(others)]
        objects = objects_to_link(own, compiled, self.program.path.name)
        first = own[0].entry
        link = link_command(first, objects, output, self.link_flags)
        run.step(link, first.directory, self._environment(run, first))
        if not output.is_file():
            return run.failed("the link ended well, but wrote no program")
        refused = [verdict for verdict in verdicts if not verdict.passed]
        return run.finished(output, next(iter((*refused, *verdicts)), None))

    def _own_units(self, run: BuildRun) -> tuple[Entry, ...]:
        if self.entry is not None:
            self._units = (self.entry,)
        elif not self._units:
            self._units = including(run, self.others, self.source)
        if not self._units:
            raise StepFailedError(f"no file of the compile database includes {self.source.name}")
        return self._units

    def _readable(self) -> tuple[Path, ...]:
        """Where the project's files are compiled and lie, and objects of earlier builds."""
        entries = (*self.others, *(() if self.entry is None else (self.entry,)))
        places = (place for entry in entries for place in (entry.directory, entry.file.parent))
        own = (self.source.parent, *places)
        return (*dict.fromkeys(own), *(known for known, _ in self._cache.values()))

    def _compiling(self, run: BuildRun, unit: Entry, texts: tuple[Path, Path]) -> SeparateCompile:
        def beside(source: Path, target: Path) -> tuple[str, ...]:
            return compile_command(unit, source, target, beside=self.source.parent)

        def overlaid(source: Path, target: Path) -> tuple[str, ...]:
            compiler, *words = compile_command(unit, unit.file, target)
            return (compiler, f"-ivfsoverlay{_overlay_of(source)}", *words)

        if self.entry is None:
            for text in texts:
                run.write(_overlay_of(text), overlay(self.source, text).encode())
        command = beside if self.entry is not None else overlaid
        return SeparateCompile(command, unit.directory, self._environment(run, unit), unit_id(unit.file))

    def _other(self, run: BuildRun, number: int, entry: Entry) -> CompiledObject:
        known, digest = self._cache.get(entry.file, (None, ""))
        if known is not None and known.is_file() and sha256_of(known) == digest:
            return CompiledObject(known, entry)
        target = run.directory / "objects" / f"{number}-{entry.file.stem}.o"
        command = compile_command(entry, entry.file, target)
        run.step(command, entry.directory, self._environment(run, entry))
        self._cache[entry.file] = (_written(target), sha256_of(target))
        return CompiledObject(target, entry)

    def _environment(self, run: BuildRun, entry: Entry) -> dict[str, str]:
        return build_environment(run.temporary, entry.directory)


def _one_per_file(entries: Sequence[Entry], program: str) -> dict[Path, Entry]:
    """CMake lists a file once per target that it belongs to: take the program's, else the first."""
    by_file: dict[Path, Entry] = {}
    for entry in entries:
        if entry.file not in by_file or (entry.target == program != by_file[entry.file].target):
            by_file[entry.file] = entry
    return by_file


def _overlay_of(text: Path) -> Path:
    return text.with_name(f"{text.name}.overlay.yaml")


def _written(path: Path) -> Path:
    if not path.is_file():
        raise StepFailedError(f"the compiler ended well, but wrote no {path.name}")
    return path
