"""What is exported: the timing run that the documents speak of, from a run directory or recorded files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.analysis.execution_graph.analyzer import median_run, why_no_graph
from rpl_core.errors import BadDataError
from rpl_core.ingest.load import load_recording
from rpl_core.renderers.timeline.work import timed_work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_core.ingest.claims import Readers
    from rpl_core.renderers.timeline.work import TimedWork

__all__ = ["load_work"]


def load_work(paths: Sequence[Path], readers: Readers) -> TimedWork:
    """Dispatches and copies with path and slack. Raises ``BadDataError`` if nothing was timed."""
    recording = load_recording(paths, readers)
    chosen = median_run(recording)
    work = timed_work(chosen[1]) if chosen else None
    if work is None:
        raise BadDataError(
            f"there is nothing to export: {why_no_graph(recording)}",
            next_step="record a kernel trace without counters",
        )
    return work
