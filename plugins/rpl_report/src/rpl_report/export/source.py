"""What is exported: the timing run that the documents speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_report.timeline.work import timed_work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rpl_core.model.architecture import Architecture
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Float64Column
    from rpl_report.timeline.work import TimedWork

__all__ = ["ExportedRun", "exported_run"]


@frozen(eq=False)
class ExportedRun:
    """A timing run with path and slack, the recording that it is from, and what is known of its GPU."""

    work: TimedWork
    recording: Recording
    architecture: Architecture | None = None

    def counters(self) -> Mapping[str, Float64Column]:
        """Values of the counter passes per dispatch of the timing run, NaN where none was read."""
        from rpl_analysis.counters.by_dispatch import counters_by_dispatch

        return counters_by_dispatch(self.recording, self.work.trace, self.architecture)


def exported_run(recording: Recording, architecture: Callable[[str], Architecture | None]) -> ExportedRun:
    """Dispatches and copies with path and slack. Raises ``BadDataError`` if nothing was timed."""
    chosen = median_run(recording)
    work = timed_work(chosen[1], with_idle=True) if chosen else None
    if work is None:
        raise BadDataError(
            f"there is nothing to export: {why_no_graph(recording)}",
            next_step="record a kernel trace without counters",
        )
    recorded = {agent.architecture for agent in recording.gpu_agents if agent.architecture}
    return ExportedRun(work, recording, architecture(recorded.pop()) if len(recorded) == 1 else None)
