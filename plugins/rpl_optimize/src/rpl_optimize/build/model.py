"""What is built, how, and what came of it, as values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_codeobject.values import CodeObject


@attrs.frozen
class BuildOptions:
    """What the user said about building; everything is optional. ``command`` is the application's."""

    command: tuple[str, ...]
    source: Path
    template: str | None = None  # --build: with {source} and {output}, or a project's own build command
    compile_database: Path | None = None  # --compile-database
    project: Path | None = None  # --project: the tree that a project build needs
    binary: Path | None = None  # --binary: the program in ``command`` that the build makes
    link_flags: tuple[str, ...] = ()  # --link-flags
    architecture: str | None = None
    time_limit_s: float = 600.0


@attrs.frozen
class Build:
    """A finished build. ``code_objects`` are those of ``binary``, in file order."""

    binary: Path
    binary_sha256: str
    code_sha256: str  # over the device code only
    commands: tuple[tuple[str, ...], ...]
    wall_s: float
    log: Path
    code_objects: tuple[CodeObject, ...] = attrs.field(repr=False)


@attrs.frozen
class BuildFailure:
    """Why there is no binary: the compiler's first error, or what went wrong around it."""

    reason: str
    commands: tuple[tuple[str, ...], ...]
    wall_s: float
    log: Path | None


class Builder(ABC):
    """One way to build. Never writes outside of the directory that it is given."""

    #: For people: how the program is built.
    summary: str

    @abstractmethod
    def build(self, text: bytes, directory: Path) -> Build | BuildFailure:
        """Build with ``text`` in place of the user's source, inside ``directory`` (made, must be empty)."""

    @abstractmethod
    def command_for(self, build: Build) -> tuple[str, ...]:
        """The user's command with the built program in place of his own."""


def all_commands(builds: Sequence[Build | BuildFailure]) -> tuple[tuple[str, ...], ...]:
    """The command lines of several builds, in order."""
    return tuple(command for build in builds for command in build.commands)
