"""Edges guessed from timestamps, where a recording holds nothing better. Always labelled as guesses.

A node is taken to wait for another lane only if its own lane does not explain when it began: its gap is
longer than is usual there, and a node of another lane of the process ended just before. Measured on a
friendly synthetic trace this is right for 88 % of the edges; without the condition, for 10 to 23 %
(docs/reference/execution-graph.md, 2.8). So guesses never enter the reported path, only its bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.graph import Confidence, EdgeKind, EdgeTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.graph import WorkNodes

    Int64Column = NDArray[np.int64]

__all__ = ["inferred_edges"]

#: The longest time between the end of a cause and the begin of its effect
#: (docs/reference/execution-graph.md, 2.8).
MOST_GAP_NS = 5_000
#: Up to this many lanes each median is found by a partition, several times faster than one sort of all.
_MOST_PARTITIONS = 4096


def inferred_edges(nodes: WorkNodes, in_start_order: Int64Column) -> EdgeTable:
    """One guess at most per node, lag = the observed gap. ``in_start_order``: nodes by (lane, begin)."""
    node = _unexplained(nodes, in_start_order)
    cause = _latest_of_another_lane(nodes, node)
    node, cause = node[cause >= 0], cause[cause >= 0]
    gap = nodes.begin_ns[node] - nodes.end_ns[cause]
    close = gap <= MOST_GAP_NS
    return EdgeTable.of_kind(cause[close], node[close], EdgeKind.INFERRED, Confidence.GUESS, gap[close])


def _unexplained(nodes: WorkNodes, by_lane: Int64Column) -> Int64Column:
    """Nodes whose gap to their predecessor in the lane is longer than the lane's median gap."""
    lane = nodes.lane[by_lane]
    linked = lane[1:] == lane[:-1]
    gap = nodes.begin_ns[by_lane][1:]
    gap -= nodes.end_ns[by_lane][:-1]
    gap, of_lane = gap[linked], lane[1:][linked]
    count = np.bincount(of_lane, minlength=len(nodes.lanes))
    median = _medians(gap, count)
    unexplained = np.zeros(len(nodes), dtype=np.bool_)
    unexplained[by_lane[1:][linked][gap > median[of_lane]]] = True
    return np.flatnonzero(unexplained)


def _medians(values: Int64Column, count: NDArray[np.intp]) -> Int64Column:
    """The upper median of consecutive groups of ``count`` values; 0 for empty groups."""
    median = np.zeros(count.size, dtype=np.int64)
    end = np.cumsum(count)
    if count.size > _MOST_PARTITIONS:
        order = np.lexsort((values, np.repeat(np.arange(count.size), count)))
        used = count > 0
        median[used] = values[order][(end - count)[used] + count[used] // 2]
        return median
    for group in np.flatnonzero(count).tolist():
        own = values[end[group] - count[group] : end[group]]
        middle = own.size // 2
        median[group] = np.partition(own, middle)[middle]
    return median


def _latest_of_another_lane(nodes: WorkNodes, node: Int64Column) -> Int64Column:
    """Of the nodes of the same process that had ended, the last to end in another lane; -1 for none."""
    by_end = np.argsort(nodes.end_ns, kind="stable")
    ended, began = nodes.end_ns, nodes.begin_ns[node]
    several = bool(nodes.process.min() != nodes.process.max())
    if several:
        by_end = by_end[np.argsort(nodes.process[by_end], kind="stable")]
        # Ends relative to the first begin are keys that ascend with (process, end).
        origin = int(nodes.begin_ns.min(initial=0))
        span = np.int64(int(nodes.end_ns.max(initial=0)) - origin + 1)
        ended = nodes.process * span + (ended - origin)
        began = nodes.process[node] * span + (began - origin)
    latest = np.searchsorted(ended[by_end], began, side="right") - 1
    # Where the last one is of the node's own lane: the one before its run of that lane.
    lane = nodes.lane[by_end]
    opens = np.ones(by_end.size, dtype=np.bool_)
    np.not_equal(lane[1:], lane[:-1], out=opens[1:])
    before_run = np.arange(by_end.size, dtype=np.int32)
    before_run *= opens
    np.maximum.accumulate(before_run, out=before_run)
    own = (latest >= 0) & (lane[latest] == nodes.lane[node])
    latest = np.where(own, before_run[latest] - 1, latest)
    cause = by_end[latest]
    valid = (latest >= 0) & (lane[latest] != nodes.lane[node])
    if several:
        valid &= nodes.process[cause] == nodes.process[node]
    return np.where(valid, cause, -1)
