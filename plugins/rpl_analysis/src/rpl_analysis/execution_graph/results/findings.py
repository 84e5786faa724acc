"""What a reader of the execution graph must know about its edges, as diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.model.diagnostic import Diagnostic, Severity
from rpl_core.model.trace import CallKind, HostApi
from rpl_core.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rpl_analysis.execution_graph.results.model import ExecutionGraph
    from rpl_core.model.trace import Trace

__all__ = ["graph_diagnostics"]


def graph_diagnostics(graph: ExecutionGraph, trace: Trace) -> tuple[Diagnostic, ...]:
    """Findings about the graph of ``trace`` in the order of their weight."""
    return (
        *_unknown_calls(trace),
        *_missing_sync(graph, trace.host_api or HostApi("host")),
        *_unresolved(graph),
        *_contradictions(graph),
    )


def _unknown_calls(trace: Trace) -> Iterator[Diagnostic]:
    if trace.api_calls is None:
        return
    unknown = [meaning.kind is CallKind.UNKNOWN for meaning in trace.meanings()]
    calls = int(np.isin(trace.api_calls.function, np.flatnonzero(unknown)).sum())
    if calls:
        names = [name for name, strange in zip(trace.api_functions, unknown, strict=True) if strange]
        yield Diagnostic(
            "graph.unknown_calls",
            f"{counted(calls, 'API call has', 'API calls have')} no known meaning, "
            f"such as {names[0]}: their waits are not in the graph",
            cause=f"the reader {trace.source.reader} does not say what the functions of this runtime mean",
            remedy="use a reader that gives them (`Trace.api_meanings`): `rpl plugins list` shows them",
            severity=Severity.WARNING,
            count=calls,
        )


def _missing_sync(graph: ExecutionGraph, api: HostApi) -> Iterator[Diagnostic]:
    lanes = any(edge.kind == "queue" for edge in graph.edges)
    if graph.sync_info == "none":
        yield Diagnostic(
            "graph.no_sync_info",
            "the recording has no API calls: the graph knows the order inside streams only",
            cause=f"the {api.name} API was not traced, so waits between streams and on the host are unknown",
            remedy="rpl profile, without --no-api" + (f", or {api.trace_with}" if api.trace_with else ""),
            severity=Severity.INFO,
        )
    if graph.sync_info == "api_names":
        yield Diagnostic(
            "graph.no_arguments",
            "the API calls have no arguments: waits for one stream or event can't be resolved",
            cause="this kind of trace holds the names and times of calls only, or no arguments were recorded",
            remedy="record with rocprofv3 --output-format rocpd, or with rpl profile",
            severity=Severity.INFO,
        )
    if lanes:
        yield Diagnostic(
            "graph.queues_for_streams",
            "the recording has no usable stream ids: hardware queues stand in for streams",
            cause="--group-by-queue, an old profiler, or a program that uses the null stream only",
            remedy="record with rocprofv3 of ROCm 7.0 or later without --group-by-queue",
            severity=Severity.INFO,
        )


def _unresolved(graph: ExecutionGraph) -> Iterator[Diagnostic]:
    unresolved = graph.unresolved
    submissions = unresolved.submissions if graph.sync_info != "none" else 0
    for code, count, subject, fact in (
        (
            "graph.unresolved_waits",
            unresolved.waits,
            counted(unresolved.waits, "wait for an event is no edge", "waits for events are no edges"),
            "a stream is unknown",
        ),
        (
            "graph.unresolved_syncs",
            unresolved.syncs,
            counted(
                unresolved.syncs, "host synchronisation is no edge", "host synchronisations are no edges"
            ),
            "the stream, event or device is unknown, or too many wait",
        ),
        (
            "graph.unknown_submissions",
            submissions,
            counted(submissions, "dispatch or copy has", "dispatches and copies have")
            + " no API call in the recording",
            "when the host submitted is unknown",
        ),
    ):
        if count:
            yield Diagnostic(
                code,
                f"{subject}: {fact}",
                cause="the calls that would tell were made before the recording began or left no arguments",
                severity=Severity.INFO,
                count=count,
            )


def _contradictions(graph: ExecutionGraph) -> Iterator[Diagnostic]:
    dropped = graph.inconsistent_edges + graph.unresolved.late_syncs
    if dropped:
        yield Diagnostic(
            "graph.inconsistent_edges",
            f"{counted(dropped, 'dependency contradicts', 'dependencies contradict')} the clock: dropped",
            cause="clock conversion errors between host and GPU, or a program that breaks the rule",
            severity=Severity.INFO,
            count=dropped,
        )
    if graph.chain_overlaps:
        yield Diagnostic(
            "graph.chain_overlap",
            f"{counted(graph.chain_overlaps, 'node overlaps', 'nodes overlap')} a predecessor in the same "
            "stream or queue; the last one that had ended counts",
            cause="several streams share the queue, or clock inaccuracies of the firmware",
            severity=Severity.INFO,
            count=graph.chain_overlaps,
        )
    if graph.submission_disagreements:
        yield Diagnostic(
            "graph.submission_order",
            f"{counted(graph.submission_disagreements, 'neighbour')} in a stream began in another order than "
            "submitted",
            cause="threads share the stream, or branches of a graph launch",
            severity=Severity.INFO,
            count=graph.submission_disagreements,
        )
