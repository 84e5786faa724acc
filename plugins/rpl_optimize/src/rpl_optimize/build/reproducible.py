"""Build twice and compare: what is measured must be what the source says, not chance.

Both builds start from nothing, at the same path: the first one is put aside meanwhile. At different paths
two builds of one source may well differ, since compilers write paths into messages, unit ids and debug
information; that says nothing about the source.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from rpl_core.text.safety import encodable
from rpl_core.values import frozen
from rpl_optimize.build.model import BuiltProgram
from rpl_optimize.contracts.optimize import BuildPart

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_optimize.build.model import ProgramBuilder
    from rpl_optimize.interfaces.builder import BuildFailure

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
        return ReproducibleBuild(None, _part((first,), root, first.log, problem=first.reason))
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
        return ReproducibleBuild(None, _part(builds, root, log, problem=problem))
    same = first.code_sha256 == second.code_sha256
    if same:
        shutil.rmtree(directory / _SECOND, ignore_errors=True)
    return ReproducibleBuild(first, _part(builds, root, first.log, reproducible=same))


def _part(
    builds: Sequence[BuiltProgram | BuildFailure],
    root: Path,
    log: Path | None,
    *,
    problem: str | None = None,
    reproducible: bool | None = None,
) -> BuildPart:
    first = builds[0]
    built = first if isinstance(first, BuiltProgram) else None
    return BuildPart(
        commands=tuple(tuple(map(encodable, command)) for build in builds for command in build.commands),
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
