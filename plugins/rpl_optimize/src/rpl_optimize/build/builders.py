"""Builders of plugins inside their boundary: which one builds, and building twice to compare."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_codeobject.kernel_code import CodeObject
from rpl_core.errors import MissingError, PluginError, RplError, UsageError
from rpl_core.files import sha256_of
from rpl_core.model.value_checks import value_violation
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.text import encodable, masked_words
from rpl_core.values import frozen
from rpl_optimize.build.host_code import HOST_CODE
from rpl_optimize.contracts import BuildPart
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure, BuildRequest, BuildSystem
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.measurement.gains import padded

if TYPE_CHECKING:
    from rpl_core.plugins.host import Contribution


@frozen(kw_only=True)
class BuiltProgram(Build):
    """``code_objects`` are AMD's in ``binary``, in file order; none where the builder gave ``code``."""

    binary_sha256: str
    code_sha256: str  # over the device code only
    code_objects: tuple[CodeObject, ...] = attrs.field(repr=False)


@frozen
class ProgramBuilder:
    """The builder of a plugin's build system; what it returns is looked at before anything relies on it."""

    plugin: str
    system: str
    builder: Builder
    keep_command: bool = False  # with its secrets, in what is written down

    @property
    def summary(self) -> str:
        """For people: how the program is built."""
        return self.builder.summary

    def build(
        self, text: bytes, directory: Path, original: bytes | None = None
    ) -> BuiltProgram | BuildFailure:
        """Build with ``text`` in place of the user's source, inside ``directory`` (made, must be empty).

        With ``original``, ``text`` is a candidate, and ``host_code`` of the build is never ``None``.

        Raises ``PluginError`` for what no builder may return, ``MissingError`` without a decoder for
        compressed device code.
        """
        where = f"build by {self.system}"
        with plugin_boundary(self.plugin, where):
            answer: object = (
                self.builder.build(text, directory)
                if original is None
                else self.builder.build_candidate(text, original, directory)
            )
        if not isinstance(answer, (Build, BuildFailure)) or value_violation(answer):
            problem = value_violation(answer) or "no build"
            raise PluginError(
                self.plugin, where, f"returned {answer!r:.80} where a build was expected: {problem}"
            )
        if isinstance(answer, BuildFailure):
            return answer
        if not answer.binary.absolute().is_relative_to(directory.absolute()) or not answer.binary.is_file():
            raise PluginError(self.plugin, where, f"there is no {answer.binary} in the build's directory")
        host_code = None if original is None else self._host_code(answer)
        answer = attrs.evolve(answer, host_code=host_code)
        if answer.code is None:
            return _looked_at(answer)
        with plugin_boundary(self.plugin, where):
            digest: object = answer.code.digest
            if not isinstance(digest, str) or not digest:
                raise TypeError(f"the device code's digest is {digest!r:.80}")
        return _program(answer, digest, ())

    def _host_code(self, build: Build) -> GuardVerdict:
        said: object = build.host_code
        if isinstance(said, GuardVerdict) and isinstance(said.passed, bool):
            return said
        reason = f"build system {self.system} does not say whether the host's code is the original's"
        return GuardVerdict(HOST_CODE, False, reason)

    def command_for(self, build: Build) -> tuple[str, ...]:
        """The user's command with the built program in place of their own."""
        with plugin_boundary(self.plugin, f"command of {self.system}"):
            words = tuple(self.builder.command_for(build))
            if not words or not all(isinstance(word, str) for word in words):
                raise TypeError(f"{words!r:.80} is no command")
        return words

    def padded(self, text: bytes, padding_bytes: int) -> bytes:
        """``text`` with unused device code before the kernels."""
        with plugin_boundary(self.plugin, f"padding of {self.system}"):
            own: object = self.builder.padded(text, padding_bytes)
            if own is not None and not isinstance(own, bytes):
                raise TypeError(f"{own!r:.80} is no source")
        return padded(text, padding_bytes) if own is None else own


def _looked_at(build: Build) -> BuiltProgram | BuildFailure:
    """The build with its device code; a failure where it is no program for a GPU."""
    from rpl_codeobject.reading import read_code_objects
    from rpl_codeobject.reading.elf_file import code_digest

    try:
        code_objects = read_code_objects(build.binary)
        return _program(build, code_digest(code_objects), code_objects)
    except MissingError:
        raise
    except (RplError, OSError) as error:
        fact = error.fact if isinstance(error, RplError) else str(error.strerror)
        reason = f"the build made a program whose device code can't be read: {fact}"
        reason = reason.replace(str(build.binary), build.binary.name)
        return BuildFailure(reason, build.commands, build.wall_s, build.log)


def _program(build: Build, digest: str, code_objects: tuple[CodeObject, ...]) -> BuiltProgram:
    own = {field.name: getattr(build, field.name) for field in attrs.fields(Build)}
    return BuiltProgram(
        **own, binary_sha256=sha256_of(build.binary), code_sha256=digest, code_objects=code_objects
    )


# Choose how candidates are built: the one entry point of this package.


def choose_builder(
    request: BuildRequest, systems: Iterable[Contribution[BuildSystem]], note: Callable[[str], None]
) -> ProgramBuilder:
    """The builder of the first build system that has one, by priority; a broken one costs only itself.

    Raises what the system raises that applies and can't work: ``UsageError`` where what the user said
    contradicts itself or the files, ``MissingError`` without a compiler or build program, ``BadDataError``
    for a broken compile database. ``MissingError`` too where no system applies.
    """
    request = attrs.evolve(request, source=(request.place / request.source).resolve())
    if not request.source.is_file():
        raise UsageError(f"no source file at {request.source}", next_step="check --source")
    if request.kernels_in_memory:
        systems = [offered for offered in systems if offered.value.overrides_code is True]
        if not systems:
            raise _in_memory(request.kernels_in_memory)
    for offered in sorted(systems, key=lambda system: (-system.value.priority, system.plugin)):
        try:
            builder = _builder_from(offered, request)
        except PluginError as error:
            note(f"warning: {error.fact}; another way to build is looked for")
            continue
        if builder is not None:
            return ProgramBuilder(offered.plugin, offered.value.name, builder)
    raise MissingError(
        f"no installed plugin can build {request.source.name}",
        next_step="give your own build with --build, see `rpl plugins list`",
    )


def _in_memory(kernels: Sequence[str]) -> MissingError:
    return MissingError(
        f"no file holds {', '.join(kernels)}: it is compiled while the program runs (hipRTC, Triton), "
        "or loaded from memory",
        cause="no installed plugin gives a running program other code objects (a build system with "
        "overrides_code)",
        next_step="have the program load a file with hipModuleLoad, and name that with --binary FILE",
    )


def _builder_from(offered: Contribution[BuildSystem], request: BuildRequest) -> Builder | None:
    where = f"build system {offered.value.name}"
    with plugin_boundary(offered.plugin, where):
        answer: object = offered.value.builder(request)
    if answer is not None and not isinstance(answer, Builder):
        raise PluginError(offered.plugin, where, f"returned {type(answer).__name__}")
    if answer is not None and not isinstance(getattr(answer, "summary", None), str):
        raise PluginError(offered.plugin, where, "its builder has no text in 'summary'")
    return answer


# Build twice and compare: what is measured must be what the source says, not chance.
#
# Both builds start from nothing, at the same path: the first one is put aside meanwhile. At different paths
# two builds of one source may well differ, since compilers write paths into messages, unit ids and debug
# information; that says nothing about the source.

_PLACE, _FIRST, _SECOND = "build", "first", "second"


@frozen
class ReproducibleBuild:
    """``build`` is ``None`` when the first or second build failed: ``part.problem`` says why.

    A build whose device code differs the second time is given, with ``part.reproducible`` false.
    """

    build: BuiltProgram | None
    part: BuildPart


def build_reproducibly(
    builder: ProgramBuilder, text: bytes, directory: Path, *, root: Path, original: bytes | None = None
) -> ReproducibleBuild:
    """Build ``text`` twice inside ``directory``; paths in ``part`` are relative to ``root``.

    With ``original`` it is a candidate, whose host code is to be that of ``original``.

    ``directory/build`` is the first build. A second one that differs or fails stays as ``directory/second``.
    """
    place, aside = directory / _PLACE, directory / _FIRST
    first = builder.build(text, place, original)
    if not isinstance(first, BuiltProgram):
        return ReproducibleBuild(None, _part(builder, (first,), root, first.log, problem=first.reason))
    place.rename(aside)
    try:
        second = builder.build(text, place)  # to compare device code; nobody runs it
    finally:
        if place.exists():
            place.rename(directory / _SECOND)
        aside.rename(place)
    builds = (first, second)
    if not isinstance(second, BuiltProgram):
        problem = f"the first build succeeded, the second one failed: {second.reason}"
        log = None if second.log is None else directory / _SECOND / second.log.name
        return ReproducibleBuild(None, _part(builder, builds, root, log, problem=problem))
    same = first.code_sha256 == second.code_sha256
    if same:
        shutil.rmtree(directory / _SECOND, ignore_errors=True)
    return ReproducibleBuild(first, _part(builder, builds, root, first.log, reproducible=same))


def _part(
    builder: ProgramBuilder,
    builds: Sequence[BuiltProgram | BuildFailure],
    root: Path,
    log: Path | None,
    *,
    problem: str | None = None,
    reproducible: bool | None = None,
) -> BuildPart:
    first = builds[0]
    told: Callable[[Sequence[str]], Sequence[str]] = tuple if builder.keep_command else masked_words
    commands = (told(command) for build in builds for command in build.commands)
    built = first if isinstance(first, BuiltProgram) else None
    return BuildPart(
        commands=tuple(tuple(map(encodable, words)) for words in commands),
        problem=None if problem is None else encodable(problem),
        binary=None if built is None else _relative(built.binary, root),
        binary_sha256=None if built is None else built.binary_sha256,
        code_sha256=None if built is None else built.code_sha256,
        reproducible=reproducible,
        isolation=None if built is None or built.isolation is None else encodable(built.isolation),
        wall_s=sum(build.wall_s for build in builds),
        log=None if log is None else _relative(log, root),
    )


def _relative(path: Path, root: Path) -> str:
    return encodable(str(path.absolute().relative_to(root.absolute())))
