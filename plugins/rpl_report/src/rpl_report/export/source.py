"""What is exported: the timing run that the documents speak of, from a run directory or recorded files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_core.errors import BadDataError
from rpl_core.ingest.load import load_recording
from rpl_report.timeline.work import timed_work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rpl_core.ingest.claims import Readers
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Float64Column
    from rpl_report.timeline.work import TimedWork

__all__ = ["ExportedRun", "load_run"]


@attrs.frozen(eq=False)
class ExportedRun:
    """A timing run with path and slack, and the recording that it is from."""

    work: TimedWork
    recording: Recording

    def counters(self) -> Mapping[str, Float64Column]:
        """Values of the counter passes per dispatch of the timing run, NaN where none was read."""
        from rpl_analysis.counters.by_dispatch import counters_by_dispatch

        return counters_by_dispatch(self.recording, self.work.trace)


def load_run(paths: Sequence[Path], readers: Readers) -> ExportedRun:
    """Dispatches and copies with path and slack. Raises ``BadDataError`` if nothing was timed."""
    recording = load_recording(paths, readers)
    chosen = median_run(recording)
    work = timed_work(chosen[1]) if chosen else None
    if work is None:
        raise BadDataError(
            f"there is nothing to export: {why_no_graph(recording)}",
            next_step="record a kernel trace without counters",
        )
    return ExportedRun(work, recording)
