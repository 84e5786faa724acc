"""Builders say how a source becomes a program; the optimizer builds candidates through them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.interfaces.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Build", "BuildFailure", "BuildRequest", "BuildSystem", "Builder"]


@attrs.frozen
class BuildRequest:
    """What is to be built: ``source`` is the file that candidates replace, ``command`` the application's.

    ``place`` is the working directory to which relative paths belong; ``options`` are those of the command.
    """

    command: tuple[str, ...]
    source: Path
    place: Path
    options: Options = attrs.field(factory=Options)
    architecture: str | None = None
    time_limit_s: float = 600.0


@attrs.frozen
class Build:
    """A finished build of one text of the source."""

    binary: Path
    commands: tuple[tuple[str, ...], ...]
    wall_s: float
    log: Path


@attrs.frozen
class BuildFailure:
    """Why there is no binary: the compiler's first error, or what went wrong around it."""

    reason: str
    commands: tuple[tuple[str, ...], ...]
    wall_s: float
    log: Path | None


class Builder(ABC):
    """One way to build one program. Never writes outside of the directory that it is given."""

    summary: str

    @abstractmethod
    def build(self, text: bytes, directory: Path) -> Build | BuildFailure:
        """Build with ``text`` in place of the user's source, inside ``directory`` (made, must be empty)."""

    @abstractmethod
    def command_for(self, build: Build) -> tuple[str, ...]:
        """The user's command with the built program in place of their own."""


class BuildSystem(ABC):
    """A kind of build. The optimizer asks in the order of ``priority``; the first that answers is used."""

    name: str
    summary: str
    priority: int = 0

    @abstractmethod
    def builder(self, request: BuildRequest) -> Builder | None:
        """A builder for the request, or ``None`` where this kind does not apply.

        Raises ``UsageError`` or ``MissingError`` where it applies and can't work.
        """


def all_commands(builds: Sequence[Build | BuildFailure]) -> tuple[tuple[str, ...], ...]:
    """The command lines of several builds, in order."""
    return tuple(command for build in builds for command in build.commands)
