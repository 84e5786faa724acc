"""The host API calls of a trace by what they mean for the order of GPU work.

The meaning of each function is the reader's. Calls that are recorded into a graph order nothing when made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.segmented import carried_max
from rpl_analysis.execution_graph.graph import join_keys, number_keys
from rpl_analysis.execution_graph.host_program.submission import call_place
from rpl_core.model.trace import NO_HANDLE, NOT_RECORDED, CallKind, CallMeaning
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.host_program.submission import LaneOrder, Submissions
    from rpl_core.model.trace import ApiCalls, Trace

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]


@frozen(eq=False)
class HostCalls:
    """The API calls of a trace, one entry per row of ``Trace.api_calls`` (ascending by begin).

    ``thread`` numbers (process, thread id) densely. ``kind`` is OTHER for calls made while their thread
    captured a graph. ``own_null`` marks functions whose stream 0 is the thread's own.
    """

    table: ApiCalls
    kind: NDArray[np.int8]
    thread: NDArray[np.int32]
    threads: int
    own_null: NDArray[np.bool_]
    is_graph_launch: NDArray[np.bool_]  # per function, not per call
    with_arguments: bool

    def __len__(self) -> int:
        return len(self.table)

    def rows(self, *kinds: CallKind) -> Int64Column:
        """Rows of the calls of these kinds, ascending."""
        chosen = self.kind == kinds[0]
        for kind in kinds[1:]:
            chosen |= self.kind == kind
        return np.flatnonzero(chosen)


def host_calls(trace: Trace) -> HostCalls | None:
    """The calls of ``trace``; None where the API was not traced."""
    table = trace.api_calls
    if table is None or not len(table):
        return None
    # The last one is for calls without a function (-1).
    meanings = (*trace.meanings(), CallMeaning(CallKind.UNKNOWN))
    kinds = np.array([meaning.kind for meaning in meanings], dtype=np.int8)
    own_null = np.array([meaning.own_null for meaning in meanings], dtype=np.bool_)
    threads, thread = number_keys(join_keys((table.thread_id, table.process)))
    kind = _without_captured(kinds[table.function], thread)
    return HostCalls(
        table=table,
        kind=kind,
        thread=thread,
        threads=threads.size,
        own_null=own_null[table.function],
        is_graph_launch=np.array([meaning.launches_graph for meaning in meanings], dtype=np.bool_),
        with_arguments=bool((table.stream_handle != NO_HANDLE).any()),
    )


def _without_captured(kind: NDArray[np.int8], thread: NDArray[np.int32]) -> NDArray[np.int8]:
    """``kind`` with the calls that a thread made during stream capture turned into OTHER."""
    begins = kind == CallKind.BEGIN_CAPTURE
    if not begins.any():
        return kind
    order = np.argsort(thread, kind="stable")
    step = begins[order].astype(np.int64) - (kind[order] == CallKind.END_CAPTURE)
    depth = np.cumsum(step)
    # A thread starts outside a capture, whatever the one before it left open.
    opens = np.ones(order.size, dtype=np.bool_)
    opens[1:] = thread[order][1:] != thread[order][:-1]
    start = np.flatnonzero(opens)
    depth -= np.repeat((depth - step)[start], np.diff(start, append=order.size))
    captured = np.zeros(kind.size, dtype=np.bool_)
    captured[order] = depth > 0
    return np.where(captured, np.int8(CallKind.OTHER), kind)


# Calls of several threads that overlap in time: which of them took effect first is not recorded.
#
# A call surely took effect before another one if the same thread made it earlier, or if it had returned
# before another thread made its call (docs/reference/execution-graph.md, 2.11).

#: Overlapping launches of one stream that are looked at per call: as many as threads launch into it at once.
_MOST_STEPS = 64


def surely_before(calls: HostCalls, first: Int64Column, second: Int64Column) -> BoolColumn:
    """Whether each call of ``first`` surely took effect before that of ``second``, a later row."""
    sure: BoolColumn = calls.thread[first] == calls.thread[second]
    sure |= calls.table.end_ns[first] < calls.table.begin_ns[second]
    return sure


def surely_submitted(program: HostProgram, node: Int64Column, rows: Int64Column) -> BoolColumn:
    """Whether each node was surely submitted before a later call; true where its own call is unknown."""
    calls = program.calls
    assert calls is not None
    call = program.submissions.call[node]
    return (call < 0) | surely_before(calls, np.maximum(call, 0), rows)


def last_surely_before(program: HostProgram, lane: Int64Column, rows: Int64Column) -> Int64Column:
    """The node that ends last among those surely submitted to each lane before a call; -1 for none."""
    order = program.order
    node = order.last_before(lane, call_place(rows))
    for _ in range(_MOST_STEPS):
        unsure = np.flatnonzero(node >= 0)
        unsure = unsure[~surely_submitted(program, node[unsure], rows[unsure])]
        if not unsure.size:
            return node
        node[unsure] = order.before(node[unsure])
    node[unsure] = -1
    return node


def first_surely_after(program: HostProgram, lane: Int64Column, rows: Int64Column) -> Int64Column:
    """The first node that was surely submitted to each lane after a call; -1 for none."""
    calls, order = program.calls, program.order
    assert calls is not None
    node = order.first_after(lane, call_place(rows))
    for _ in range(_MOST_STEPS):
        unsure = np.flatnonzero(node >= 0)
        call = program.submissions.call[node[unsure]]
        unsure = unsure[(call >= 0) & ~surely_before(calls, rows[unsure], np.maximum(call, 0))]
        if not unsure.size:
            return node
        node[unsure] = order.behind(node[unsure])
    node[unsure] = -1
    return node


def submitted_as_they_ran(
    nodes: WorkNodes, submissions: Submissions, order: LaneOrder, calls: HostCalls
) -> Submissions:
    """``submissions`` with places that ascend as the nodes of a lane ran, where overlapping calls explain it.

    A stream is a FIFO, so of launches that overlap the one whose work ran first took effect first. Lanes in
    which calls contradict that otherwise stay as they are.
    """
    if not order.disagreements or nodes.by_queue or calls.threads < 2:
        return submissions
    node = order.in_start_order
    lane, place, call = nodes.lane[node], order.place[node], submissions.call[node]
    opens = np.ones(node.size, dtype=np.bool_)
    opens[1:] = lane[1:] != lane[:-1]
    reached = carried_max(place + 1, opens) - 1
    late = np.flatnonzero(place < reached)
    # Places are even where the call is known.
    other = reached[late] // 2
    explained = (reached[late] % 2 == 0) & (call[late] >= 0)
    explained &= calls.table.begin_ns[other] <= calls.table.end_ns[np.maximum(call[late], 0)]
    explained &= calls.thread[other] != calls.thread[np.maximum(call[late], 0)]
    contradicted = np.zeros(len(nodes.lanes), dtype=np.bool_)
    contradicted[lane[late[~explained]]] = True
    late = late[~contradicted[lane[late]]]
    places = submissions.place.copy()
    places[node[late]] = reached[late]
    return attrs.evolve(submissions, place=places)


# Which GPU a host thread works on when it makes a call: the one it chose, ordinals to agents.
#
# An ordinal is not an agent index (the environment can hide GPUs), so the mapping is learnt from launches:
# the ordinal that was current at the call and the agent that its dispatch ran on.

#: The device of a thread that never chose one.
_FIRST_DEVICE = 0
#: Ordinals above this are damaged arguments: no host has so many GPUs.
_MOST_DEVICES = 1024


@frozen(eq=False)
class CurrentDevice:
    """``only_agent`` [process]: its one agent, or -1 if ``agent`` [process, ordinal] is to be asked."""

    calls: HostCalls
    only_agent: Int64Column
    agent: Int64Column
    set_key: Int64Column
    set_ordinal: Int64Column

    def agent_at(self, rows: Int64Column) -> Int64Column:
        """Agent index that is current at each API call, -1 where it can't be told."""
        process = np.maximum(self.calls.table.process[rows], 0)
        agent = self.only_agent[process]
        unsure = agent < 0
        if unsure.any():
            ordinal = self.ordinal_at(rows[unsure])
            agent[unsure] = self.agent[process[unsure], np.minimum(ordinal, self.agent.shape[1] - 1)]
        return agent

    def ordinal_at(self, rows: Int64Column) -> Int64Column:
        """Ordinal that is current at each API call."""
        key = _thread_key(self.calls, rows)
        index = np.searchsorted(self.set_key, key, side="right") - 1
        ordinal = np.full(rows.size, _FIRST_DEVICE, dtype=np.int64)
        if self.set_key.size:
            known = np.maximum(index, 0)
            same = (index >= 0) & (self.set_key[known] // len(self.calls) == key // len(self.calls))
            ordinal[same] = self.set_ordinal[known[same]]
        return ordinal


def find_current_device(nodes: WorkNodes, submissions: Submissions, calls: HostCalls) -> CurrentDevice:
    """Learn the mapping from all nodes whose call is known."""
    table = calls.table
    rows = calls.rows(CallKind.SET_DEVICE)
    rows = rows[(table.device[rows] >= 0) & (table.device[rows] < _MOST_DEVICES)]
    key = _thread_key(calls, rows)
    order = np.argsort(key, kind="stable")
    processes = 1 + max(int(table.process.max()), int(nodes.process.max(initial=0)))
    elsewhere = np.zeros(processes, dtype=np.bool_)
    elsewhere[np.maximum(table.process[rows[table.device[rows] != _FIRST_DEVICE]], 0)] = True
    device = CurrentDevice(
        calls=calls,
        only_agent=_only_agents(nodes, processes),
        agent=np.full((processes, 1), NOT_RECORDED, dtype=np.int64),
        set_key=key[order],
        set_ordinal=table.device[rows][order],
    )
    if not elsewhere.any() and bool((device.only_agent[nodes.process] >= 0).all()):
        return device
    agent = _agents_by_ordinal(device, nodes, submissions, processes)
    # A device that was chosen may have no work: then a call there does not mean the only agent that has some.
    unsure = elsewhere & (agent >= 0).any(axis=1)
    return attrs.evolve(device, only_agent=np.where(unsure, NOT_RECORDED, device.only_agent), agent=agent)


def _thread_key(calls: HostCalls, rows: Int64Column) -> Int64Column:
    key: Int64Column = calls.thread[rows] * np.int64(len(calls)) + rows
    return key


def _only_agents(nodes: WorkNodes, processes: int) -> Int64Column:
    lowest = np.full(processes, np.iinfo(np.int64).max)
    highest = np.full(processes, NOT_RECORDED, dtype=np.int64)
    np.minimum.at(lowest, nodes.lanes.process, nodes.lanes.agent)
    np.maximum.at(highest, nodes.lanes.process, nodes.lanes.agent)
    return np.where(lowest == highest, highest, NOT_RECORDED)


def _agents_by_ordinal(
    device: CurrentDevice, nodes: WorkNodes, submissions: Submissions, processes: int
) -> Int64Column:
    """The agent that most launches under each ordinal ran on; -1 for ordinals without launches."""
    launched = np.flatnonzero((submissions.call >= 0) & (nodes.agent >= 0))
    ordinal = device.ordinal_at(submissions.call[launched])
    ordinals = int(ordinal.max(initial=0)) + 2
    agents = int(nodes.agent.max(initial=0)) + 1
    cell = (nodes.process[launched] * np.int64(ordinals) + ordinal) * agents + nodes.agent[launched]
    votes = np.bincount(cell, minlength=processes * ordinals * agents).reshape(processes, ordinals, agents)
    return np.where(votes.any(axis=2), votes.argmax(axis=2), NOT_RECORDED).astype(np.int64)
