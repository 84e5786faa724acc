"""Calls of several threads that overlap in time: which of them took effect first is not recorded.

A call surely took effect before another one if the same thread made it earlier, or if it had returned before
another thread made its call (docs/reference/execution-graph.md, 2.11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path.segmented import carried_max
from rpl_analysis.execution_graph.host_program.submission import call_place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph.nodes import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.lane_order import LaneOrder
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.host_program.submission import Submissions

    Int64Column = NDArray[np.int64]
    BoolColumn = NDArray[np.bool_]

__all__ = [
    "first_surely_after",
    "last_surely_before",
    "submitted_as_they_ran",
    "surely_before",
    "surely_submitted",
]

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
