"""The version to beat: built from source like every candidate, and profiled with the user's command."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import BadDataError, NoVerdictError
from rpl_core.pipeline import analyse_paths
from rpl_core.profiling.record import ProfileRequest, record_application
from rpl_core.values import frozen
from rpl_optimize.build.reproducible import build_reproducibly

if TYPE_CHECKING:
    from rpl_core.documents.bundle import Documents
    from rpl_optimize.build.model import BuiltProgram, ProgramBuilder
    from rpl_optimize.contracts.optimize import BuildPart
    from rpl_optimize.loop.request import OptimizeRequest, Tools


@frozen(eq=False)
class Baseline:
    """``directory`` holds the profile; ``text`` is the source that ``build`` was made of."""

    number: int
    text: bytes
    build: BuiltProgram
    part: BuildPart
    directory: Path
    documents: Documents

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    @property
    def profile_directory(self) -> Path:
        return self.directory / "profile"

    def plain_documents(self) -> Mapping[str, Any]:
        """The documents as JSON values, as proposers take them."""
        return {
            name: json.loads(document.model_dump_json())
            for name, document in self.documents.by_name().items()
        }


def build_baseline(
    builder: ProgramBuilder, text: bytes, directory: Path, root: Path, *, original: bytes
) -> tuple[BuiltProgram, BuildPart]:
    """The version to beat, with the host code of ``original``, the user's own source.

    A build that fails, or that differs the second time, ends the session. So does one of an accepted text
    whose host code is another one.
    """
    accepted = text != original
    built = build_reproducibly(builder, text, directory, root=root, original=original if accepted else None)
    if built.build is None:
        raise BadDataError(
            f"the unchanged source does not build: {built.part.problem}",
            cause=f"it is built by: {builder.summary}",
            next_step="give the program's own build with --build or --compile-database",
        )
    if built.part.reproducible is False:
        raise NoVerdictError(
            "two builds of the unchanged source give different device code, so no change can be told apart",
            cause="the build embeds times, random numbers or paths",
            next_step="make the build reproducible",
        )
    host_code = built.build.host_code
    if accepted and (host_code is None or not host_code.passed):
        raise BadDataError(
            "the accepted version has other host code than the source",
            cause=None if host_code is None else host_code.reason,
            next_step="start a new session",
        )
    return built.build, built.part


def profile_baseline(
    request: OptimizeRequest, tools: Tools, command: tuple[str, ...], directory: Path
) -> Documents:
    """Record and analyse ``command`` as ``rpl profile`` does, in ``directory``."""
    recorded = record_application(
        ProfileRequest(
            command=command,
            runs=request.runs,
            roofline=request.roofline,
            trace_dependencies=request.trace_dependencies,
            time_limit_s=request.time_limit_s,
            allow_dangerous_counters=False,
            output=directory,
            runs_directory=directory.parent,
            analysis=request.analysis,
        ),
        tools.collector,
        tools.host,
        tools.log,
        tools.run_step,
    )
    if recorded.failure is not None:
        raise recorded.failure
    documents, _ = analyse_paths((directory,), attrs.evolve(request.analysis, root=directory), tools.host)
    return documents
