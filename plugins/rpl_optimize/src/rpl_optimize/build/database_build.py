"""Build by a compile database: the candidate anew, every other file once, then a link."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import UsageError
from rpl_core.files.digest import sha256_of
from rpl_core.process.launch import require_program
from rpl_core.process.storage import make_directory
from rpl_optimize.build.build_run import BuildRun, StepFailedError, TextBuilder
from rpl_optimize.build.compile_database import Entry, find_database, read_database
from rpl_optimize.build.environment import build_environment
from rpl_optimize.build.including import including
from rpl_optimize.build.objects import CompiledObject, compile_command, link_command, objects_to_link
from rpl_optimize.build.separate_compile import SeparateCompile, overlay, unit_id
from rpl_optimize.build.template_build import is_header
from rpl_optimize.interfaces.builder import Builder, BuildSystem
from rpl_optimize.running.program_word import Program, find_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_optimize.interfaces.builder import Build, BuildFailure, BuildRequest
    from rpl_optimize.interfaces.transformation import GuardVerdict


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
        require_program((_compiler_path(compiler),))
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


def _compiler_path(entry: Entry) -> str:
    return str(entry.directory / entry.compiler) if os.sep in entry.compiler else entry.compiler


def _written(path: Path) -> Path:
    if not path.is_file():
        raise StepFailedError(f"the compiler ended well, but wrote no {path.name}")
    return path
