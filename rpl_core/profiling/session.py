"""Run the passes of a profile one after the other and keep the run directory true."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.documents.drafts import diagnostic_docs
from rpl_core.errors import InterruptedRunError, RplError, TimeLimitError
from rpl_core.interfaces.run import RunInfo, RunOutcome, RunState
from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import TraceRole
from rpl_core.text.secrets import secret_bytes

if TYPE_CHECKING:
    from rpl_core.interfaces.collector import CollectionPlan, Collector, LineSink, PlannedPass
    from rpl_core.plugins.relay import HookRelay
    from rpl_core.run_directory.writer import RunDirectory

# Bytes that must not stay in files of a folder: overwritten in place, whatever the format is.


def overwrite_in_files(folder: Path, sought: Sequence[bytes]) -> tuple[str, ...]:
    """Put asterisks over each of ``sought`` in the regular files below ``folder``; links are not followed.

    Nothing is moved, so that files of any format stay readable. Returns the names (below ``folder``) of
    files that could not be changed.
    """
    failed = []
    for place, _, names in os.walk(folder) if sought else ():
        for name in names:
            path = Path(place, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size:
                    _overwrite(path, sought)
            except (OSError, ValueError):
                failed.append(path.relative_to(folder).as_posix())
    return tuple(sorted(failed))


def _overwrite(path: Path, sought: Sequence[bytes]) -> None:
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        places = [(at, len(text)) for text in sought for at in _places(content, text)]
    if places:
        with path.open("r+b") as target:
            for at, size in places:
                target.seek(at)
                target.write(b"*" * size)


def _places(content: mmap.mmap, one: bytes) -> list[int]:
    found, at = [], content.find(one)
    while at >= 0:
        found.append(at)
        at = content.find(one, at + len(one))
    return found


#: Hears the name of each pass before it starts.
StepSink = Callable[[str], None]


@attrs.define
class ProfileSession:
    """One run in progress. ``failure`` is the first thing that went wrong; finished passes are kept."""

    run: RunDirectory
    collector: Collector
    relay: HookRelay
    log: LineSink
    step: StepSink
    failure: RplError | None = None
    diagnostics: list[Diagnostic] = attrs.field(factory=list)

    @property
    def info(self) -> RunInfo:
        manifest = self.run.manifest
        return RunInfo(self.run.path, self.run.command, manifest.device, manifest.collector)

    def start(self) -> None:
        self.relay.run_started(self.info)

    def execute(self, plan: CollectionPlan, collector: Collector | None = None) -> None:
        """Run the passes of ``plan``, with another collector than the profile's where one is given.

        A failed timing pass ends the profile, because without it nothing can be said. A failed counter
        pass costs its counters, a failed reference run what it would have told, both the exit code only if
        the time limit ended them. A failed follow-up pass costs itself. An interrupt is recorded and goes on
        up.
        """
        self.diagnostics += plan.diagnostics
        for planned in plan.passes:
            if self.failure is not None and planned.role in (TraceRole.TIMING, TraceRole.REFERENCE):
                break
            names = [entry.name for entry in self.run.manifest.passes]
            self.step(f"{planned.name} ({names.index(planned.name) + 1} of {len(names)})")
            self._execute_pass(planned, collector or self.collector)

    def _execute_pass(self, planned: PlannedPass, collector: Collector) -> None:
        try:
            try:
                outcome = collector.run(planned, self.run.path, self.log)
            finally:
                self._hide_secrets(planned)
            self.run.pass_succeeded(outcome)
            self.diagnostics += outcome.diagnostics
        except (InterruptedRunError, KeyboardInterrupt):
            self.run.pass_failed(planned.name, "interrupted")
            raise
        except RplError as error:
            self.run.pass_failed(
                planned.name, error.one_line(), exit_status=getattr(error, "exit_status", None)
            )
            self._note_failure(planned, collector, error)

    def _hide_secrets(self, planned: PlannedPass) -> None:
        """Profilers write the command line into what they record."""
        if self.run.keep_command:
            return
        unchanged = overwrite_in_files(self.run.path / planned.directory, secret_bytes(planned.command))
        if unchanged:
            self.diagnostics.append(
                Diagnostic(
                    "collect.secrets_kept",
                    f"a secret of the command line may stand in {unchanged[0]}, which could not be changed",
                    severity=Severity.WARNING,
                    remedy="do not share the file",
                    where=planned.directory,
                    count=len(unchanged),
                )
            )

    def _note_failure(self, planned: PlannedPass, collector: Collector, error: RplError) -> None:
        if collector.role is not TraceRole.TIMING:
            self.diagnostics.append(attrs.evolve(collector.lost(error), where=planned.directory))
            return
        # A limit that the user set ends the profile; any other failure under counters costs the counters.
        if planned.role is TraceRole.TIMING or isinstance(error, TimeLimitError):
            self.failure = self.failure or error
        if planned.role is TraceRole.TIMING:
            return
        counted = planned.role is TraceRole.COUNTERS
        unknown = "what recording API calls costs is unknown: the run without them failed"
        self.diagnostics.append(
            Diagnostic(
                "collect.counter_pass_failed" if counted else "collect.reference_run_failed",
                f"{f'counter pass {planned.name} failed' if counted else unknown}: {error.fact}",
                severity=Severity.WARNING,
                cause=error.cause,
                remedy=error.next_step,
                where=planned.directory,
            )
        )

    def interrupted(self) -> InterruptedRunError:
        """Close the run directory after an interrupt; returns the error that tells the user."""
        self.finish("interrupted")
        return InterruptedRunError(
            f"interrupted; what finished is kept in {self.run.path}",
            next_step=f"analyse it with `rpl analyze {self.run.path}`",
        )

    def finish(self, reason: str | None, *, documents_follow: bool = False) -> None:
        """Close the run directory and tell the plugins."""
        if reason is None and self.failure is not None:
            reason = self.failure.fact
        self.run.finish(reason, diagnostic_docs(self.diagnostics), documents_follow=documents_follow)
        state = RunState.COMPLETE if reason is None else RunState.INCOMPLETE
        self.relay.run_finished(self.info, RunOutcome(state, reason))


def describe_plan(passes: Iterable[PlannedPass], run_directory: Path) -> Sequence[str]:
    """The commands of a plan as lines that can be pasted into a shell."""
    import shlex

    lines = []
    for planned in passes:
        command = shlex.join(_with_directory(planned.command, run_directory / planned.directory))
        lines.append(f"{planned.name} ({planned.role.value}): {command}")
        lines += [f"{planned.name} reads {name}: {text.strip()}" for name, text in planned.inputs]
    return lines


def _with_directory(command: tuple[str, ...], directory: Path) -> list[str]:
    """The pass's directory filled in; the application's own words (after ``--``) stay as they are."""
    end = command.index("--") if "--" in command else len(command)
    return [word.replace("{directory}", str(directory)) for word in command[:end]] + list(command[end:])
