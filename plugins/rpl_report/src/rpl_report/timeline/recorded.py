"""Find the recording behind documents and take the timeline from it, if it is the very same recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.phases.restrict import restricted
from rpl_core.errors import BadDataError, RplError
from rpl_core.ingest.load import load_recording
from rpl_core.run_directory.layout import is_run_directory
from rpl_core.values import frozen
from rpl_report.timeline.build import timeline_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rpl_analysis.contracts.dag import DagDocument
    from rpl_core.ingest.claims import Readers
    from rpl_core.model.trace import Trace
    from rpl_report.timeline.model import Timeline

__all__ = ["RecordedTimeline", "recorded_timeline"]


@frozen(eq=False)
class RecordedTimeline:
    """The timeline, or why there is none; the hosts and the command that the recording names."""

    timeline: Timeline | None = None
    reason: str | None = None
    hosts: tuple[str, ...] = ()
    command: str | None = None


def recorded_timeline(
    directory: Path, recordings: Sequence[Path], dag: DagDocument, readers: Readers
) -> RecordedTimeline:
    """The timeline behind ``dag``, which was read from ``directory``.

    ``recordings`` name the recording where the directory holds documents alone; they must be the files that
    the documents were computed from. Raises ``BadDataError`` if they are not, and what reading them raises.
    A run directory whose recording can't be read has no timeline, with the reason.
    """
    if dag.status != "available":
        return RecordedTimeline(reason=f"there is no execution graph: {dag.reason}")
    if recordings:
        return _shown(_timing_run(recordings, dag, readers), dag)
    if not is_run_directory(directory):
        return RecordedTimeline(
            reason="the directory holds documents alone; name their recording with --recording to see it"
        )
    try:
        return _shown(_timing_run([directory], dag, readers), dag)
    except RplError as error:
        return RecordedTimeline(reason=f"the recording could not be shown: {error.fact}")


def _shown(trace: Trace, dag: DagDocument) -> RecordedTimeline:
    hosts = tuple(sorted({process.hostname for process in trace.processes if process.hostname}))
    command = next((process.command for process in trace.processes if process.command), None)
    return RecordedTimeline(_checked(trace, dag), hosts=hosts, command=command)


def _timing_run(recordings: Sequence[Path], dag: DagDocument, readers: Readers) -> Trace:
    """The run that the documents describe."""
    runs = restricted(load_recording(recordings, readers), dag.range).timing_runs
    number = dag.run or 0
    if number >= len(runs):
        raise _other_recording(f"timing run {number} of the documents is not in the recording")
    known = {artefact.sha256 for artefact in dag.provenance.artefacts} if dag.provenance else set()
    found = set(runs[number].source.sha256)
    if known - {None} and found - known:
        raise _other_recording("the recording has another SHA-256 than the files behind the documents")
    return runs[number]


def _checked(trace: Trace, dag: DagDocument) -> Timeline | None:
    timeline = timeline_of(trace)
    if timeline is None or (timeline.nodes, timeline.critical_path_ns) != (dag.nodes, dag.critical_path_ns):
        raise _other_recording("the recording does not give the critical path that dag.json states")
    return timeline


def _other_recording(fact: str) -> BadDataError:
    return BadDataError(
        fact,
        cause="the documents were computed from other files or by another version of rpl",
        next_step="analyse the recording again with `rpl analyze`, then report",
    )
