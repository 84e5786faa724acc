"""One side of an interleaved measurement: its run directory and the runs taken so far."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rpl_compare.comparison.side import RunFacts, Side, observe_pass
from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.interfaces.collector import CollectionPlan, CollectRequest
from rpl_core.profiling.session import ProfileSession
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.run_directory.writer import RunDirectory
from rpl_core.values import frozen

if TYPE_CHECKING:
    from typing_extensions import Self

    from rpl_compare.comparison.model import RunObservation, Statistic
    from rpl_core.interfaces.collector import Collector, LineSink
    from rpl_core.plugins.host import PluginHost
    from rpl_core.profiling.session import StepSink

_DEVICE_SOURCE = "not looked up before the runs"


@frozen(eq=False)
class ArmSettings:
    """What all arms of a measurement share."""

    collector: Collector
    host: PluginHost
    statistic: Statistic
    trace_dependencies: bool
    time_limit_s: float | None
    log: LineSink
    step: StepSink


class Arm:
    """Context manager around one run directory; leaving it closes the directory truthfully.

    ``label`` is "base" or "new". Nothing is planned in the manifest before its turn comes. A directory that
    holds runs of this side already is gone on with; ``counted`` are the runs of complete pairs in it.
    """

    def __init__(
        self,
        label: str,
        command: tuple[str, ...],
        directory: Path,
        most_runs: int,
        settings: ArmSettings,
        counted: tuple[str, ...] = (),
    ) -> None:
        self.label = label
        self._command = command
        self._settings = settings
        request = CollectRequest(
            command=command,
            runs=most_runs,
            trace_dependencies=settings.trace_dependencies,
            time_limit_s=settings.time_limit_s,
        )
        self._plan = settings.collector.plan(request)
        self._run = RunDirectory.reopen(directory) if is_run_directory(directory) else self._create(directory)
        self._session = ProfileSession(
            self._run, settings.collector, settings.host.relay, settings.log, self._say
        )
        self._taken = len(self._run.manifest.passes)
        self._counted = list(counted)
        self._observed: list[tuple[RunObservation, RunFacts]] = []

    def _create(self, directory: Path) -> RunDirectory:
        records = self._settings.host.records
        return RunDirectory.create(
            directory,
            command=self._command,
            collector=self._settings.collector.name,
            device=None,
            device_source=_DEVICE_SOURCE,
            options={
                "focus_critical": self._settings.trace_dependencies,
                "time_limit_s": self._settings.time_limit_s,
            },
            plan=(),
            plugins=tuple(f"{r.name} {r.version or '?'}" for r in records if r.status == "loaded"),
        )

    def _say(self, name: str) -> None:
        self._settings.step(f"{self._run.path.name} {name}")

    def __enter__(self) -> Self:
        self._session.diagnostics += self._plan.diagnostics
        self._session.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is None:
            self._session.finish(None)
        elif isinstance(error, (InterruptedRunError, KeyboardInterrupt)):
            self._session.finish("interrupted")
        else:
            self._session.finish(error.fact if isinstance(error, RplError) else "internal error")

    @property
    def last_name(self) -> str:
        """The run that was started last."""
        return self._plan.passes[max(self._taken - 1, 0)].name

    def run_next(self) -> str:
        """Execute the next run and return its name. Raises what made it fail."""
        planned = self._plan.passes[self._taken]
        self._taken += 1
        self._run.add_passes((planned,), None, _DEVICE_SOURCE)
        self._session.execute(CollectionPlan((planned,)))
        if self._session.failure is not None:
            raise self._session.failure
        return planned.name

    def count(self, name: str) -> None:
        """The run ``name`` is one of a complete pair."""
        self._counted.append(name)

    def side(self) -> Side:
        """All runs that count so far. Each is read once, when it is first asked for."""
        readers = self._settings.host.catalog.readers().contributions
        entries = {entry.name: entry for entry in self._run.manifest.passes}
        for name in self._counted[len(self._observed) :]:
            self._observed.append(
                observe_pass(
                    self._run.path,
                    entries[name],
                    readers,
                    self._settings.statistic,
                    include_copies=self._settings.trace_dependencies,
                )
            )
        return Side(
            label=self.label,
            runs=tuple(run for run, _ in self._observed),
            facts=tuple(facts for _, facts in self._observed),
            manifests=(self._run.manifest,),
            command=self._run.manifest.command,
        )
