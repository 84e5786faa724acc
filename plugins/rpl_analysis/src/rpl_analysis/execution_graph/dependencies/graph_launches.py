"""The order inside lanes, and where it is not certain: the nodes of one graph launch.

All nodes of a graph launch carry the one stream that it was launched on, though branches of the graph
may run in parallel on several queues (docs/reference/execution-graph.md, 2.6). Between two of them the order
is probable if one queue ran them one after the other, else a guess. What waits for a launch waits for all of
its branches, and each of them for what the launch waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.execution_graph.graph import BLOCK, Confidence, EdgeKind, join_keys, number_keys
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph import EdgeTable, WorkNodes
    from rpl_analysis.execution_graph.host_program.program import HostProgram

    Int64Column = NDArray[np.int64]

__all__ = ["LaneLinks", "launch_groups", "link_lanes", "spread_over_branches"]

#: ``LaneLinks.kind`` of a lane's first node.
NO_LINK = -1
#: Branches of a launch that get edges of their own, the longest ones: a device has no more queues (chosen).
_MOST_BRANCHES = 64


@frozen(eq=False)
class LaneLinks:
    """Per work node the edge from its predecessor in the lane; ``kind`` is NO_LINK where there is none."""

    kind: NDArray[np.int8]
    confidence: NDArray[np.int8]


def link_lanes(nodes: WorkNodes, program: HostProgram) -> LaneLinks:
    """The links of all lanes, in start order."""
    by_lane = program.order.in_start_order
    kind = np.full(len(nodes), NO_LINK, dtype=np.int8)
    confidence = np.full(len(nodes), Confidence.CERTAIN, dtype=np.int8)
    for first in range(1, len(nodes), BLOCK):
        node = by_lane[first : first + BLOCK]
        before = by_lane[first - 1 : first - 1 + node.size]
        linked = nodes.lane[node] == nodes.lane[before]
        if not linked.all():
            node, before = node[linked], before[linked]
        kind[node] = EdgeKind.QUEUE if nodes.by_queue else EdgeKind.STREAM
        if nodes.by_queue:
            confidence[node] = Confidence.PROBABLE
        inner = _same_launch(nodes, program, node, before)
        node, before = node[inner], before[inner]
        kind[node] = EdgeKind.GRAPH_LAUNCH
        serial = (nodes.queue[node] == nodes.queue[before]) & (nodes.queue[node] >= 0)
        serial &= nodes.end_ns[before] <= nodes.begin_ns[node]
        confidence[node] = np.where(serial, Confidence.PROBABLE, Confidence.GUESS)
    return LaneLinks(kind, confidence)


def _same_launch(
    nodes: WorkNodes, program: HostProgram, node: Int64Column, before: Int64Column
) -> NDArray[np.bool_]:
    """Whether both were submitted by one call that may be a graph launch: its name is that or unknown."""
    launch, process = nodes.correlation_id, nodes.process
    same: NDArray[np.bool_] = launch[node] == launch[before]
    if not same.any():
        return same
    same &= launch[node] > 0
    same &= process[node] == process[before]
    if program.calls is not None:
        # Other calls with several pieces of work, such as copies in parts, run them in order.
        call = program.submissions.call[node]
        same &= (call < 0) | program.calls.is_graph_launch[program.calls.table.function[call]]
    return same


def launch_groups(nodes: WorkNodes, links: LaneLinks) -> NDArray[np.int32] | None:
    """A number per node that nodes of one launch in one lane share; None where there is no graph launch."""
    inner = links.kind == EdgeKind.GRAPH_LAUNCH
    if not inner.any():
        return None
    alone = -1 - np.arange(len(nodes))
    key = join_keys(
        (nodes.lane, nodes.process, np.where(nodes.correlation_id > 0, nodes.correlation_id, alone))
    )
    _, group = number_keys(key)
    return group


def spread_over_branches(edges: EdgeTable, nodes: WorkNodes, program: HostProgram) -> EdgeTable:
    """``edges`` with one per branch where they enter or leave a launch whose nodes overlap.

    They name the node that began first, or ended last; branches beside it depend on as much.
    """
    order = program.order.node
    if not len(edges) or order.size < 2:
        return edges
    joined = _same_launch(nodes, program, order[1:], order[:-1]) & (
        nodes.lane[order[1:]] == nodes.lane[order[:-1]]
    )
    if not joined.any():
        return edges
    first = np.flatnonzero(np.concatenate([[True], ~joined]))
    launch = np.empty(order.size, dtype=np.int64)
    launch[order] = np.cumsum(np.concatenate([[True], ~joined])) - 1
    bounds = np.append(first, order.size)
    for column, at_begin in (("source", False), ("target", True)):
        end = getattr(edges, column)
        # Edges of host synchronisations name these behind the work.
        asked = np.where(end < order.size, launch[np.minimum(end, order.size - 1)], NO_LINK)
        several = np.flatnonzero((asked >= 0) & (np.diff(bounds)[asked] > 1))
        branches = {
            number: _branches(nodes, order[bounds[number] : bounds[number + 1]], at_begin=at_begin)
            for number in set(asked[several].tolist())
        }
        edges = _replaced(edges, column, several, [branches[number] for number in asked[several].tolist()])
    return edges


def _branches(nodes: WorkNodes, launched: Int64Column, *, at_begin: bool) -> Int64Column:
    """Nodes of a launch, given in the order of their begin, that no other one of it precedes, or follows."""
    begin, end = nodes.begin_ns[launched], nodes.end_ns[launched]
    by_end = np.argsort(end, kind="stable")
    ended = np.searchsorted(end[by_end], begin, side="right")
    if at_begin:
        chosen = ended == (end == begin)  # nothing but itself
    else:
        # A node follows the last that had ended when it began (critical_path.chains): others have none.
        later = np.flatnonzero(ended > 0)
        last = by_end[ended[later] - 1]
        chosen = np.ones(launched.size, dtype=np.bool_)
        chosen[last[last != later]] = False
    found: Int64Column = launched[chosen]
    if found.size > _MOST_BRANCHES:
        longest = np.argsort(nodes.begin_ns[found] - nodes.end_ns[found], kind="stable")
        found = found[longest[:_MOST_BRANCHES]]
    return found


def _replaced(edges: EdgeTable, column: str, which: Int64Column, by: list[Int64Column]) -> EdgeTable:
    """``edges`` in which the ends ``column`` of some are replaced, each by several nodes."""
    if not which.size:
        return edges
    counts = np.ones(len(edges), dtype=np.int64)
    counts[which] = [nodes.size for nodes in by]
    spread = edges.pick(np.repeat(np.arange(len(edges)), counts))
    ends = getattr(spread, column).copy()
    named = np.zeros(len(edges), dtype=np.bool_)
    named[which] = True
    ends[np.repeat(named, counts)] = np.concatenate(by)
    return attrs.evolve(spread, **{column: ends})
