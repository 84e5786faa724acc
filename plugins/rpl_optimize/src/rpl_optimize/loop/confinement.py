"""The sandbox of a session's measured runs: tried once, with the program that is the user's own."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import InterruptedRunError, RplError
from rpl_optimize.equivalence.working_copy import stand_in_for
from rpl_optimize.isolation.application import (
    ApplicationSandbox,
    find_application_sandbox,
    in_session,
)
from rpl_optimize.isolation.sandbox import Sandbox
from rpl_optimize.loop.baseline import profile_baseline
from rpl_optimize.session_layout import ORIGINAL, RUNS, fresh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rpl_optimize.loop.baseline import Baseline
    from rpl_optimize.loop.request import OptimizeRequest, Tools


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
