"""The version to beat: built from source like every candidate, and profiled with the user's command."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.documents import Documents
from rpl_core.errors import BadDataError, InterruptedRunError, NoVerdictError, RplError
from rpl_core.pipeline import analyse_paths
from rpl_core.profiling import ProfileRequest, record_application
from rpl_core.values import frozen
from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder, build_reproducibly
from rpl_optimize.contracts.optimize import BuildPart
from rpl_optimize.equivalence.program_run import stand_in_for
from rpl_optimize.isolation.application import ApplicationSandbox, find_application_sandbox, in_session
from rpl_optimize.isolation.sandbox import Sandbox
from rpl_optimize.session_layout import ORIGINAL, RUNS, fresh

if TYPE_CHECKING:
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


# The sandbox of a session's measured runs: tried once, with the program that is the user's own.


@attrs.define(eq=False)
class Confinement:
    """Base and candidate run in it alike, in a copy of the user's working directory that stays.

    ``record`` gets a sentence for the ledger: what the sandbox is, or why there is none.
    """

    request: OptimizeRequest
    tools: Tools
    root: Path
    record: Callable[[str], None]
    _found: ApplicationSandbox | None = None

    def prepare(self, baseline: Baseline) -> None:
        """Find out with one run of the version to beat; later calls do nothing."""
        if self._found is not None:
            return
        sandbox = find_application_sandbox()
        self._found = ApplicationSandbox(sandbox)
        if sandbox.kind is not None:
            self.tools.step("baseline: one run in the sandbox")
            problem = self._tried(sandbox, baseline)
            if problem is not None:
                self._found = ApplicationSandbox(Sandbox(None, problem))
        if self._found.sandbox.kind is None:
            self.tools.note(f"warning: candidates run without a sandbox: {self._found.sandbox.reason}")
        self.record(f"measured runs: {self._found.summary}")

    def _tried(self, sandbox: Sandbox, baseline: Baseline) -> str | None:
        """Why the program does not run there, with all kernels that it has outside."""
        directory = fresh(self.root, RUNS)
        try:
            self._found = self._around_copy(sandbox, directory)
            asked = attrs.evolve(self.request, runs=1, roofline=False)
            command = self.tools.builder.command_for(baseline.build)
            with self.around(directory):
                documents = profile_baseline(asked, self.tools, command, directory / "first")
        except InterruptedRunError:
            raise
        except RplError as error:
            return f"the unchanged program does not run in it: {error.fact}"
        names, wanted = (
            {kernel.name for kernel in found.model("profile").kernels}
            for found in (documents, baseline.documents)
        )
        lost = sorted(wanted - names)
        return f"the unchanged program does not launch {lost[0]} in it" if lost else None

    def _around_copy(self, sandbox: Sandbox, directory: Path) -> ApplicationSandbox:
        user, copy, seen_at = Path.cwd(), directory / "here", directory / "there"
        seen_at.mkdir(parents=True)
        began = (self.root / ORIGINAL).stat().st_mtime_ns
        stand_in_for(user, copy, seen_at, began)
        if self.root.is_relative_to(user):
            _make_way(copy, self.root.relative_to(user))
        seen = ((user, True, copy), (seen_at, False, user))
        devices = self.tools.builder.builder.devices
        return ApplicationSandbox(sandbox, directory, (self.root,), seen, devices)

    @contextmanager
    def around(self, directory: Path) -> Iterator[None]:
        """Within it, the profiler and what it starts write below ``directory`` and into the copy only."""
        if self._found is None:
            yield
            return
        with self._found.around(directory):
            yield

    @contextmanager
    def of_checks(self) -> Iterator[None]:
        """Within it, checks of results run programs as this session does."""
        if self._found is None:
            yield
            return
        with in_session(self._found):
            yield


def _make_way(copy: Path, inside: Path) -> None:
    """Directories in place of links, so that the session can be shown where it is."""
    place = copy
    for part in inside.parts:
        place = place / part
        if place.is_symlink():
            place.unlink()
        place.mkdir(exist_ok=True)
