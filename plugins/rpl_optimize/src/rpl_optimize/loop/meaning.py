"""The judge of what an edit means, for the version to beat and with the compiler of the user's own build."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_codeobject.demangle import demangled
from rpl_codeobject.kernel_code import CodeObject
from rpl_core.errors import RplError, UsageError
from rpl_optimize.build.build_run import Entry, find_database, read_database
from rpl_optimize.build.project_build import enclosing_tree
from rpl_optimize.build.systems import (
    CLANG,
    HIPCC,
    OUTPUT,
    SOURCE,
    CompilerBuilds,
    first_installed,
    given_words,
    is_header,
)
from rpl_optimize.contracts import GuardPart
from rpl_optimize.interfaces.builder import BuildRequest, Compilation
from rpl_optimize.interfaces.transformation import DeclaredChange, GuardVerdict, TunedConstants
from rpl_optimize.session_layout import is_session_directory
from rpl_optimize.source_meaning.constants import Retuned, judge_constants
from rpl_optimize.source_meaning.front_end import FrontEnd, NotJudgedError, front_end_of
from rpl_optimize.source_meaning.judge import Meaning, MeaningJudge
from rpl_optimize.source_meaning.reading import CompilerReading

if TYPE_CHECKING:
    from rpl_optimize.loop.baseline import Baseline


_UNITS = (".hip", ".cu", ".cpp", ".cc", ".cxx")
#: A project with more sources tells which of them includes a header by its compile database.
_MOST_FILES, _MOST_BYTES = 2000, 1 << 20


class SessionMeaning:
    """Judges edits of one version to beat, which is read once."""

    def __init__(self, request: BuildRequest, baseline: Baseline) -> None:
        self.baseline = baseline.number
        front_end = _front_end(request, baseline)
        self._unknown = front_end if isinstance(front_end, str) else None
        self._judge = MeaningJudge(front_end, baseline.text)
        self.reading = CompilerReading(front_end, baseline.text, self._judge.original)
        self._code_objects = baseline.build.code_objects
        self._of_templates: dict[str, tuple[MeaningJudge, frozenset[str]]] = {}

    def judge(self, after: bytes, declared: tuple[DeclaredChange, ...]) -> tuple[GuardPart, ...]:
        """The verdicts of all guards. Without a compiler nothing is known, and the edit is not built."""
        if self._unknown is not None:
            return (GuardPart(guard="judged", passed=None, reason=self._unknown),)
        meaning = self._judge.judge(after, declared)
        if meaning.template is not None:
            meaning = self._with_instances(meaning, meaning.template, after, declared)
        return tuple(
            GuardPart(guard=v.guard, passed=v.passed, reason=v.reason, line=v.line) for v in meaning.verdicts
        )

    def judge_constants(self, after: bytes, declared: TunedConstants, kernel: str) -> Retuned:
        """Of an edit that changes constants, with what follows from them."""
        if self._unknown is not None or self._judge.original is None:
            return Retuned(self._unknown)
        try:
            return judge_constants(self._judge.original, self._judge.text, after, declared, kernel)
        except NotJudgedError as error:
            return Retuned(str(error))

    def _with_instances(
        self, meaning: Meaning, template: str, after: bytes, declared: tuple[DeclaredChange, ...]
    ) -> Meaning:
        """The template of a source that makes no instance: those of the program, which other sources make."""
        if template not in self._of_templates:
            instances = instances_of(template, self._code_objects)
            front_end = self._judge.front_end
            assert not isinstance(front_end, str)
            front_end = attrs.evolve(front_end, instances=tuple(instances.values()))
            self._of_templates[template] = (MeaningJudge(front_end, self._judge.text), frozenset(instances))
        judge, expected = self._of_templates[template]
        if not expected:
            return meaning
        again = judge.judge(after, declared)
        if again.passed and not expected <= set(again.mangled):
            why = "the compiler makes other instances of this template than the program has"
            return Meaning((GuardVerdict("judged", False, why),))
        return again


def instances_of(template: str, code_objects: Sequence[CodeObject]) -> dict[str, str]:
    """Linker's name -> explicit instantiation, for each kernel of a program that is made of a template.

    The text is the demangled name, which is C++ but for lambdas and unnamed namespaces; the compiler refuses
    those, and then nothing is judged.
    """
    names = sorted({kernel.name for code in code_objects for kernel in code.kernels})
    shown = demangled(names)
    own = re.compile(r"void (?:[\w:]+::)?" + re.escape(template) + "<")
    return {
        name: f"template __attribute__((global)) {text};" for name, text in shown.items() if own.match(text)
    }


def _front_end(request: BuildRequest, baseline: Baseline) -> FrontEnd | str:
    """By the build's command for one file, else the compile database, else the installed compiler.

    It reads what the build reads: the project, and the folders of the compile database.
    """
    entries = _entries(request)
    front_end = _found_front_end(request, baseline, entries)
    if isinstance(front_end, str):
        return front_end
    ran = (compilation.directory for compilation in baseline.build.compilations)
    listed = (place for entry in entries for place in (entry.directory, entry.file.parent))
    places = (request.place, *ran, *listed)
    project = request.project or enclosing_tree(request.source, request.place.resolve())
    hidden = (Path.home(), *Path.home().parents)
    return attrs.evolve(front_end, readable=tuple({p: p for p in (project, *places) if p not in hidden}))


def _found_front_end(request: BuildRequest, baseline: Baseline, entries: tuple[Entry, ...]) -> FrontEnd | str:
    compiled = {
        path: compilation for compilation in baseline.build.compilations for path in _compiled_by(compilation)
    }
    unit = _unit(request, [*compiled, *(entry.file for entry in entries)])
    if unit is None:
        return f"no source was found that includes {request.source.name}"
    if unit in compiled:
        return front_end_of((compiled[unit].words,), request.source, compiled[unit].directory, unit)
    entry = next((one for one in entries if one.file == unit), None)
    if entry is not None and SOURCE not in (request.build_command or ""):
        return front_end_of((entry.words,), request.source, entry.directory, unit)
    front_end = front_end_of(baseline.build.commands, request.source, request.place, unit)
    return _usual_front_end(request, front_end) if isinstance(front_end, str) else front_end


def _entries(request: BuildRequest) -> tuple[Entry, ...]:
    database = request.compile_database or find_database(request.source)
    try:
        return () if database is None else read_database(database)
    except RplError:  # the build says so where it needs one
        return ()


def _compiled_by(one: Compilation) -> Iterator[Path]:
    for word in one.words[1:]:
        path = (one.directory / word).resolve()
        if path.suffix in _UNITS and not word.startswith("-") and path.is_file():
            yield path


def _unit(request: BuildRequest, known: Sequence[Path]) -> Path | None:
    """The source itself, or for a header the first source that includes it by name."""
    if not is_header(request.source):
        return request.source
    name = re.escape(request.source.name).encode()
    include = re.compile(rb'#\s*include\s*["<](?:[^">\n]*/)?' + name + rb'[">]')
    tree = request.project or request.place
    for path in chain(known, islice(_near(tree), _MOST_FILES)):
        try:
            with path.open("rb") as file:
                if include.search(file.read(_MOST_BYTES)):
                    return path
        except OSError:
            continue
    return None


def _near(tree: Path) -> Iterator[Path]:
    """Sources below a directory, without those of sessions and of their builds."""
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(one for one in folders if not is_session_directory(Path(folder, one)))
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(_UNITS))


def _usual_front_end(request: BuildRequest, why: str) -> FrontEnd | str:
    """The installed HIP compiler, where the project's own build does not show how it compiles."""
    try:
        builder = CompilerBuilds().one_file(request)
    except RplError as error:
        return f"{why}; {error.fact}"
    words = builder.compile_command(request.source, Path("unit.o"))
    return front_end_of((words,), request.source, request.place)


def reading_without_build(
    source: Path, text: bytes, build_command: str | None = None, compile_database: Path | None = None
) -> CompilerReading:
    """By the options of a build that nobody runs: of a command for one file, or of a compile database.

    Without either by the installed compiler: a database that lies somewhere names programs that nobody asked
    for. Raises ``UsageError`` for a command that does not name the source, ``BadDataError`` and
    ``MissingError`` for a database.
    """
    path = source.resolve()
    told = _told_front_end(path, build_command, compile_database)
    if told is not None:
        return CompilerReading(told, text)
    program = first_installed((*HIPCC, *CLANG))
    if program is None:
        return CompilerReading("no HIP compiler is installed", text)
    words = (program, "-x", "hip", "-O3", "-iquote", str(path.parent))
    usual = FrontEnd(words, path, path, path.parent)
    # Without ROCm's headers and device library, for sources that need neither.
    bare = attrs.evolve(usual, words=(*words, "-nogpuinc", "-nogpulib"))
    readings = [CompilerReading(one, text) for one in (usual, bare)]
    return next((reading for reading in readings if not isinstance(reading.parsed(), str)), readings[0])


def _told_front_end(
    source: Path, build_command: str | None, compile_database: Path | None
) -> FrontEnd | str | None:
    place = Path.cwd()
    if build_command is not None:
        request = BuildRequest((), source, place, build_command=build_command)
        words = given_words(request)
        if not any(SOURCE in word for word in words):
            raise UsageError(
                "rpl transform runs no build, so --build has to say how the file itself is compiled",
                next_step='--build "hipcc -Iinclude {source} -o {output}", or name a --compile-database',
            )
        named = tuple(word.replace(SOURCE, str(source)).replace(OUTPUT, "unit") for word in words)
        return _reading_place(front_end_of((named,), source, place), place)
    if compile_database is None:
        return None
    entry = next((one for one in read_database(compile_database) if one.file == source), None)
    if entry is None:
        return f"{compile_database} has no entry for {source.name}"
    return _reading_place(front_end_of((entry.words,), source, entry.directory), entry.directory)


def _reading_place(front_end: FrontEnd | str, place: Path) -> FrontEnd | str:
    """With the folder that the options' relative paths begin in, unless that is the user's whole home."""
    if isinstance(front_end, str) or place in (Path.home(), *Path.home().parents):
        return front_end
    return attrs.evolve(front_end, readable=(place,))
