"""Builders say how a source becomes a program; the optimizer builds candidates through them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.interfaces.options import Options
from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import GuardVerdict

if TYPE_CHECKING:
    from rpl_core.model.device import Architecture

# What a build holds for the GPU, where its compiler makes no AMD code objects, and how two builds compare.
#
# A builder of such a compiler gives every ``Build`` a ``DeviceCode``. Without one the optimizer reads AMD
# code objects out of the binary itself.


@frozen
class CodeComparison:
    """What a candidate may change, and what the comparison needs to know beside both builds.

    ``kernel`` is the source name of the one kernel that may change. ``launch_size`` is the number of
    work-items per workgroup in the baseline's launches, ``None`` where it is not known. ``changes_loop``,
    ``workgroup_limit`` and ``lds_growth`` are what the candidate declares (``EditCandidate``). With
    ``measured``, resources that got worse pass and ask for the measurement.
    """

    kernel: str
    architecture_of: Callable[[str], Architecture | None]
    launch_size: int | None = None
    changes_loop: bool = False
    measured: bool = True
    allow_occupancy_loss: bool = False
    workgroup_limit: int | None = None
    lds_growth: int | None = None


class DeviceCode(ABC):
    """The device code of one build. ``digest`` is equal exactly where what the GPU executes is equal."""

    digest: str

    @abstractmethod
    def guards(self, after: DeviceCode, asked: CodeComparison) -> tuple[GuardVerdict, ...]:
        """Whether ``after`` differs from this by the kernel's code alone, and is launched in the same way.

        At least ``binary-kernels``, ``binary-abi``, ``binary-isa``, ``binary-cooperation`` and ``other-code``
        as docs/transformations.md has them; a comparison that can't be made does not pass.
        """

    @abstractmethod
    def why_not_moved(self, shifted: DeviceCode, kernel: str) -> str | None:
        """Why ``shifted`` does not hold the kernel's same code at another place, or ``None``."""


@frozen
class BuildRequest:
    """What is to be built, and what the user said about building; all of that is optional.

    ``command`` is the application's, ``source`` the absolute path of the file that candidates replace, and
    ``place`` the working directory to which relative paths belong. ``options`` are those that plugins declare
    for the command.
    """

    command: tuple[str, ...]
    source: Path
    place: Path
    build_command: str | None = None  # for one file, with {source} and {output}, or the project's own
    compile_database: Path | None = None
    project: Path | None = None  # the tree that the project's own build needs
    binary: Path | None = None  # the program in ``command`` that the build makes
    link_flags: tuple[str, ...] = ()
    architecture: str | None = None  # of the device, where it is named
    time_limit_s: float = 600.0
    #: Kernels that the command launches and no file holds: hipRTC compiles them, or memory is loaded.
    kernels_in_memory: tuple[str, ...] = ()
    options: Options = attrs.field(factory=Options)


@frozen
class Compilation:
    """A command that compiled a file, at paths that still hold the user's own files, and where it ran."""

    words: tuple[str, ...]
    directory: Path


@frozen
class Build:
    """A finished build of one text of the source; ``binary`` lies in the directory of the build.

    ``host_code`` says of a candidate whether its host code is that of the original, ``isolation`` in a
    sentence what its compilers could reach; ``None``: nobody knows. ``compilations`` are those that a
    project's own build was seen to run, where ``commands`` only start it; or a command of clang's that reads
    the source as the build does, where the build's own compiler shows no syntax tree. ``code`` is the device
    code where it is no AMD code object.
    """

    binary: Path
    commands: tuple[tuple[str, ...], ...]
    wall_s: float
    log: Path
    host_code: GuardVerdict | None = None
    isolation: str | None = None
    compilations: tuple[Compilation, ...] = ()
    code: DeviceCode | None = attrs.field(default=None, eq=False, repr=False)


@frozen
class BuildFailure:
    """Why there is no binary: the compiler's first error, or what went wrong around it."""

    reason: str
    commands: tuple[tuple[str, ...], ...]
    wall_s: float
    log: Path | None


class Builder(ABC):
    """One way to build one program. Never writes outside of the directory that it is given.

    ``devices`` are device files that its programs need in a sandbox, beside ``/dev/kfd`` and ``/dev/dri``.
    """

    summary: str

    @property
    def devices(self) -> tuple[Path, ...]:
        return ()

    @abstractmethod
    def build(self, text: bytes, directory: Path) -> Build | BuildFailure:
        """Build with ``text`` in place of the user's source, inside ``directory`` (made, must be empty)."""

    def build_candidate(self, candidate: bytes, original: bytes, directory: Path) -> Build | BuildFailure:
        """The same for a text that nobody trusts: its device code, with the host code of ``original``.

        Where that is impossible, ``Build.host_code`` tells whether host code is the same anyway. A candidate
        of which that is not said is refused before it runs.
        """
        _ = original
        return self.build(candidate, directory)

    @abstractmethod
    def command_for(self, build: Build) -> tuple[str, ...]:
        """The user's command with the built program in place of their own."""

    def padded(self, text: bytes, padding_bytes: int) -> bytes | None:
        """``text`` with unused device code, so that the kernels lie about ``padding_bytes`` further on.

        Lines keep their numbers, and of both builds that are compared the host's code changes alike.
        ``None``: as HIP compilers have it.
        """
        _ = (text, padding_bytes)
        return None


class BuildSystem(ABC):
    """A kind of build. The optimizer asks by ``priority``, highest first; the first that answers is used.

    With ``overrides_code`` its ``Builder.command_for`` gives a program other device code than it loads, so
    it is also asked where no file holds the kernels (``BuildRequest.kernels_in_memory``).
    """

    name: str
    summary: str
    priority: int = 0
    overrides_code: bool = False

    @abstractmethod
    def builder(self, request: BuildRequest) -> Builder | None:
        """A builder for the request, or ``None`` where this kind does not apply.

        Raises ``UsageError`` or ``MissingError`` where it applies and can't work.
        """

    def kernels_of(self, path: Path) -> tuple[str, ...]:
        """Names of the kernels in a finished program, as its linker has them; none for any other file.

        For programs of compilers that make no AMD code objects: those are known without asking.
        """
        _ = path
        return ()
