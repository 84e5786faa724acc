"""Builders of plugins inside their boundary, and what the device code of a finished build is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import MissingError, PluginError, RplError
from rpl_core.files.digest import sha256_of
from rpl_core.model.value_checks import value_violation
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen
from rpl_optimize.build.separate_compile import HOST_CODE
from rpl_optimize.interfaces.builder import Build, Builder, BuildFailure
from rpl_optimize.interfaces.transformation import GuardVerdict
from rpl_optimize.measurement.placement import padded

if TYPE_CHECKING:
    from rpl_codeobject.values import CodeObject


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
    from rpl_codeobject.instructions.digest import code_digest
    from rpl_codeobject.reading.read import read_code_objects

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
