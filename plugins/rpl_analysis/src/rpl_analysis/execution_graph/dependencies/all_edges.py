"""Who waits for whom in a trace: the edges of every kind, and what could not be resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from rpl_analysis.contracts.dag import UnresolvedPart
from rpl_analysis.execution_graph.dependencies.graph_launches import spread_over_branches
from rpl_analysis.execution_graph.dependencies.host_syncs import HostSyncs, no_host_syncs
from rpl_analysis.execution_graph.dependencies.inferred_edges import inferred_edges
from rpl_analysis.execution_graph.dependencies.measured_event_edges import (
    MeasuredEvents,
    measured_event_edges,
)
from rpl_analysis.execution_graph.dependencies.null_streams import blocking_lanes, null_stream_edges
from rpl_analysis.execution_graph.graph import Confidence, EdgeTable, join_edges, no_edges
from rpl_analysis.execution_graph.host_program.program import host_program
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.awaited_work import AwaitedWork
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_core.model.trace import Trace

    Int64Column = NDArray[np.int64]

__all__ = ["Dependencies", "SyncInfo", "find_dependencies"]

#: Where edges between lanes come from. ``api_names``: calls without their arguments.
SyncInfo = Literal["none", "api_names", "api_calls", "measured_events"]


@frozen(eq=False, kw_only=True)
class Dependencies:
    """Edges over work nodes and, behind them, host synchronisations.

    ``submission_disagreements``: neighbours in a lane that began in another order than submitted.
    """

    program: HostProgram
    edges: EdgeTable
    syncs: HostSyncs
    sync_info: SyncInfo
    unresolved: UnresolvedPart
    submission_disagreements: int


def find_dependencies(trace: Trace, nodes: WorkNodes) -> Dependencies:
    """All edges between lanes of ``trace``."""
    program = host_program(trace, nodes)
    status = blocking_lanes(nodes, program.calls, program.streams)
    null = null_stream_edges(program, status)
    if program.calls is None or program.streams is None:
        measured = _measured(trace, program)
        return _result(
            program,
            edges=join_edges((null, measured.edges)),
            syncs=no_host_syncs(),
            sync_info="none" if trace.device_events is None else "measured_events",
            unresolved=UnresolvedPart(waits=measured.unresolved),
        )
    return _with_calls(trace, program, program.calls, status, null)


def _with_calls(
    trace: Trace, program: HostProgram, calls: HostCalls, status: NDArray[np.int8], null: EdgeTable
) -> Dependencies:
    # Here, so that a recording without calls need not import what reads them.
    from rpl_analysis.execution_graph.dependencies.awaited_work import awaited_work
    from rpl_analysis.execution_graph.dependencies.event_edges import find_records, find_waits, wait_edges
    from rpl_analysis.execution_graph.dependencies.host_syncs import find_host_syncs
    from rpl_analysis.execution_graph.dependencies.pending_waits import pending_work

    nodes = program.nodes
    records = find_records(program)
    waits = find_waits(program, records)
    pending = pending_work(program, records, waits)
    # API calls tell streams, measured events only queues: those count where arguments are missing.
    by_call = calls.with_arguments or trace.device_events is None
    measured = _nothing_measured() if by_call else _measured(trace, program)
    awaited = awaited_work(program, records, pending, status, _copies_of_host(trace, nodes))
    syncs = find_host_syncs(program, awaited, _graph_begins(trace, nodes))
    of_events = wait_edges(nodes, waits, records, pending)
    between = _without_known(join_edges((of_events, measured.edges, null)), awaited, program)
    return _result(
        program,
        edges=join_edges((between, syncs.edges)),
        syncs=syncs,
        sync_info=_sync_info(trace, with_arguments=calls.with_arguments),
        unresolved=UnresolvedPart(
            waits=waits.unresolved if by_call else measured.unresolved,
            waits_without_record=waits.unrecorded,
            syncs=awaited.unresolved,
            submissions=program.submissions.unknown(),
            late_syncs=awaited.inconsistent + syncs.inconsistent,
        ),
    )


def _result(
    program: HostProgram,
    *,
    edges: EdgeTable,
    syncs: HostSyncs,
    sync_info: SyncInfo,
    unresolved: UnresolvedPart,
) -> Dependencies:
    """The dependencies, with guesses where nothing tells of waits between several lanes."""
    edges = spread_over_branches(edges, program.nodes, program)
    if sync_info in ("none", "api_names") and len(program.nodes.lanes) > 1:
        edges = join_edges((edges, inferred_edges(program.nodes, program.order.in_start_order)))
    return Dependencies(
        program=program,
        edges=edges,
        syncs=syncs,
        sync_info=sync_info,
        unresolved=unresolved,
        submission_disagreements=program.order.disagreements,
    )


def _sync_info(trace: Trace, *, with_arguments: bool) -> SyncInfo:
    if with_arguments:
        return "api_calls"
    return "api_names" if trace.device_events is None else "measured_events"


def _measured(trace: Trace, program: HostProgram) -> MeasuredEvents:
    if trace.device_events is None or not len(trace.device_events):
        return _nothing_measured()
    return measured_event_edges(trace, trace.device_events, program)


def _nothing_measured() -> MeasuredEvents:
    return MeasuredEvents(no_edges(), 0)


def _without_known(edges: EdgeTable, awaited: AwaitedWork, program: HostProgram) -> EdgeTable:
    """Without edges that say what the submitting thread had already waited for."""
    from rpl_analysis.execution_graph.dependencies.awaited_work import known_before

    if not len(edges):
        return no_edges()
    submissions, order = program.submissions, program.order
    thread = submissions.thread[edges.target].astype(np.int64)
    lane = program.nodes.lane[edges.source].astype(np.int64)
    call = submissions.call[edges.target]
    known = known_before(awaited, program, thread, lane, call, certain=False)
    # What the thread had probably waited for makes no certain edge superfluous.
    certain = edges.confidence == Confidence.CERTAIN
    surely = known_before(awaited, program, thread[certain], lane[certain], call[certain], certain=True)
    known[certain] = surely
    return edges.pick((call < 0) | (order.rank[edges.source] > known))


def _graph_begins(trace: Trace, nodes: WorkNodes) -> Int64Column:
    """Per process the first begin of any work on its machine."""
    machines = sorted({process.node for process in trace.processes})
    of_process = np.array([machines.index(process.node) for process in trace.processes], dtype=np.int64)
    first = np.full(len(machines), np.iinfo(np.int64).max)
    known = nodes.process >= 0
    np.minimum.at(first, of_process[nodes.process[known]], nodes.begin_ns[known])
    return first[of_process]


def _copies_of_host(trace: Trace, nodes: WorkNodes) -> NDArray[np.bool_]:
    """Copies of which one end is not known to be a GPU's memory."""
    found = np.zeros(len(nodes), dtype=np.bool_)
    copied = np.flatnonzero(nodes.is_copy)
    if trace.copies is not None and copied.size:
        gpu = np.array([*(agent.kind == "GPU" for agent in trace.agents), False])
        row = nodes.row[copied]
        found[copied] = ~(gpu[trace.copies.source_agent[row]] & gpu[trace.copies.destination_agent[row]])
    return found
