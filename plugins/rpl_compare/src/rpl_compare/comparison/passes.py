"""Single passes of a run directory as observations, one at a time, so that no trace stays in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rpl_compare.comparison.observe import observe, observe_process
from rpl_compare.comparison.side import RunFacts, facts_of, process_facts, timed_traces
from rpl_core.errors import BadDataError
from rpl_core.ingest.load import load_recording
from rpl_core.run_directory.reader import pass_files

if TYPE_CHECKING:
    from rpl_compare.comparison.model import RunObservation, Statistic
    from rpl_core.contracts.run import PassEntry
    from rpl_core.ingest.claims import Readers


def observe_pass(
    directory: Path,
    entry: PassEntry,
    readers: Readers,
    statistic: Statistic,
    *,
    include_copies: bool,
) -> tuple[RunObservation, RunFacts]:
    """One finished timing pass. All of its files are processes of one run."""
    files = pass_files(directory, entry)
    if files:
        traces = timed_traces(load_recording(files, readers))
        if len(traces) == 1:
            found = observe(traces[0], statistic, include_copies=include_copies)
            return found, facts_of(traces[0], directory)
    elif entry.process_ms is not None:
        return observe_process(entry.process_ms), process_facts()
    raise BadDataError(
        f"pass {entry.name} in {directory} holds no kernel trace",
        cause="its files were removed or replaced after the run",
    )
