"""Edges of the legacy null stream: it waits for all blocking streams of its device, and they for it.

Exempt are non-blocking streams, which the create call's flags tell (docs/reference/execution-graph.md, 2.2).
Without those calls a stream counts as blocking, the default, unless times prove otherwise. Default streams
of threads are blocking ones.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.graph import DEFAULT_TOLERANCE_NS
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind, EdgeTable, no_edges
from rpl_core.model.trace import NO_HANDLE, NON_BLOCKING, CallKind, distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.calls import HostCalls
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.host_program.stream_handles import StreamHandles

    Int64Column = NDArray[np.int64]

__all__ = ["Blocking", "blocking_lanes", "null_stream_edges"]


class Blocking(IntEnum):
    """Whether the null stream and a lane wait for each other; ASSUMED where no create call was seen."""

    NO = 0
    YES = 1
    ASSUMED = 2
    UNKNOWN = 3


def blocking_lanes(
    nodes: WorkNodes, calls: HostCalls | None, streams: StreamHandles | None
) -> NDArray[np.int8]:
    """``Blocking`` per lane, from the flags of the call that created the lane's stream."""
    status = np.full(len(nodes.lanes), Blocking.ASSUMED, dtype=np.int8)
    status[nodes.lanes.is_null | (nodes.lanes.stream < 0)] = Blocking.NO
    if calls is None or streams is None:
        return status
    creates = calls.rows(CallKind.STREAM_CREATE)
    flags = np.maximum(calls.table.flags[creates], 0)
    non_blocking = (flags & NON_BLOCKING).astype(np.bool_)
    lane, create = _created_lanes(calls, streams, creates)
    matched = np.zeros(status.size, dtype=np.bool_)
    matched[lane] = True
    _apply_unmatched(status, matched, nodes, calls, creates, non_blocking)
    status[lane] = np.where(non_blocking[create], Blocking.NO, Blocking.YES)
    status[streams.own_lanes()] = Blocking.YES
    return status


def _created_lanes(
    calls: HostCalls, streams: StreamHandles, creates: Int64Column
) -> tuple[Int64Column, Int64Column]:
    """Lanes and the index of the create call whose handle names them from then on; the latest one counts."""
    named = np.flatnonzero(calls.table.stream_handle[creates] != NO_HANDLE)
    ranges = streams.range_at(creates[named])
    known = ranges >= 0
    return streams.range_lane[ranges[known]], named[known]


def _apply_unmatched(
    status: NDArray[np.int8],
    matched: NDArray[np.bool_],
    nodes: WorkNodes,
    calls: HostCalls,
    creates: Int64Column,
    non_blocking: NDArray[np.bool_],
) -> None:
    """Lanes without a create call of their own: judged by all creations of their process."""
    process = calls.table.process[creates]
    for number in distinct_values(process).tolist():
        here = process == number
        lanes = (nodes.lanes.process == number) & ~matched & (status == Blocking.ASSUMED)
        if non_blocking[here].all():
            status[lanes] = Blocking.NO
        elif non_blocking[here].any():
            status[lanes] = Blocking.UNKNOWN


@frozen(eq=False)
class _Group:
    """Nodes of one device's null stream and the blocking streams beside it, in order of submission."""

    node: Int64Column
    lane: NDArray[np.int32]
    is_null: NDArray[np.bool_]


def null_stream_edges(program: HostProgram, status: NDArray[np.int8]) -> EdgeTable:
    """Both directions. Linear in the nodes: only neighbours in the order of submission are joined."""
    nodes = program.nodes
    lanes = nodes.lanes
    takes_part = (status == Blocking.YES) | (status == Blocking.ASSUMED)
    tables = [_edges_beside(program, int(null), takes_part) for null in np.flatnonzero(lanes.is_null)]
    edges = [table for table in tables if table is not None]
    if not edges:
        return no_edges()
    source = np.concatenate([edge[0] for edge in edges])
    target = np.concatenate([edge[1] for edge in edges])
    source, target = _without_refuted(nodes, status, source, target)
    confidence = Confidence.GUESS if program.calls is None else Confidence.PROBABLE
    return EdgeTable.of_kind(source, target, EdgeKind.NULL_STREAM, confidence)


def _edges_beside(
    program: HostProgram, null: int, takes_part: NDArray[np.bool_]
) -> tuple[Int64Column, Int64Column] | None:
    lanes = program.nodes.lanes
    beside = takes_part & (lanes.process == lanes.process[null]) & (lanes.agent == lanes.agent[null])
    if not beside.any():
        return None
    beside[null] = True
    order = program.order
    node = order.node[beside[program.nodes.lane[order.node]]]
    place = order.key[order.rank[node]] % order.span
    if not place.all():
        return None  # Some submissions are unknown: no order between lanes.
    node = node[np.argsort(place, kind="stable")]
    lane = program.nodes.lane[node]
    return _alternations(_Group(node, lane, lane == null))


def _alternations(group: _Group) -> tuple[Int64Column, Int64Column]:
    """Last blocking node of each lane before a null node -> it; it -> first node of each lane after it."""
    index = np.arange(group.node.size)
    before = np.maximum.accumulate(np.where(group.is_null, index, -1))
    after = np.minimum.accumulate(np.where(group.is_null, index, index.size)[::-1])[::-1]
    blocking = np.flatnonzero(~group.is_null)
    blocking = blocking[np.argsort(group.lane[blocking], kind="stable")]
    lane = group.lane[blocking]
    changes = lane[1:] != lane[:-1]
    first = np.ones(blocking.size, dtype=np.bool_)
    first[1:] = changes | (before[blocking[1:]] != before[blocking[:-1]])
    last = np.ones(blocking.size, dtype=np.bool_)
    last[:-1] = changes | (after[blocking[1:]] != after[blocking[:-1]])
    to = blocking[first & (before[blocking] >= 0)]
    of = blocking[last & (after[blocking] < index.size)]
    source = np.concatenate([before[to], of])
    target = np.concatenate([to, after[of]])
    return group.node[source], group.node[target]


def _without_refuted(
    nodes: WorkNodes, status: NDArray[np.int8], source: Int64Column, target: Int64Column
) -> tuple[Int64Column, Int64Column]:
    """Without the edges of lanes taken as blocking that once ran beside the null stream."""
    early = nodes.end_ns[source] > nodes.begin_ns[target] + DEFAULT_TOLERANCE_NS
    refuted = np.zeros(len(nodes.lanes), dtype=np.bool_)
    refuted[nodes.lane[source[early]]] = True
    refuted[nodes.lane[target[early]]] = True
    refuted &= status == Blocking.ASSUMED
    kept = ~(refuted[nodes.lane[source]] | refuted[nodes.lane[target]])
    return source[kept], target[kept]
