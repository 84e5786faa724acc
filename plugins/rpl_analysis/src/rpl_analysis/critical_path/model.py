"""Values of the critical-path engine: the edges a caller gives, the graph, weights and the results.

Rows are the caller's node numbers; positions are places in canonical chain order (see ``chains``). Results
speak of rows. All times and lengths are int64 nanoseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.chains import PositionEdges
    from rpl_analysis.critical_path.contraction import Contraction

    IntArray = NDArray[np.int64]

__all__ = [
    "CHAIN_REPAIR",
    "PATH_BEGIN",
    "CriticalPath",
    "CrossEdges",
    "DispatchGraph",
    "NodeWeights",
    "Slack",
    "Solution",
    "Weighting",
]

#: ``exec_only``: node intervals alone. ``as_executed``: with the waits that were observed; its path is as
#: long as the makespan.
Weighting = Literal["exec_only", "as_executed"]

#: ``CriticalPath.entered_by`` of the run that the path begins with.
PATH_BEGIN = -1
#: ``entered_by`` of a run that was entered inside its chain, around overlapping nodes.
CHAIN_REPAIR = -2


@frozen(eq=False, kw_only=True)
class CrossEdges:
    """End-to-start dependencies between rows: ``source[i]`` ends before ``target[i]`` begins.

    ``lag_ns`` (default 0) is the part of the time between them that the dependency itself explains, for
    example host time between a sync return and the next launch; only ``as_executed`` counts it.
    """

    source: NDArray[np.integer]
    target: NDArray[np.integer]
    lag_ns: NDArray[np.integer] | None = None

    @classmethod
    def none(cls) -> CrossEdges:
        """No edges: chains only."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(source=nothing, target=nothing)


@frozen(eq=False, kw_only=True)
class DispatchGraph:
    """A dependency graph ready to solve, and what had to be done to the input for that.

    ``order[p]`` is the row at position p, ``in_row_order`` if that is p everywhere. ``begin_ns``/``end_ns``
    per position, clipped and relative to the first begin. ``clipped_ns`` sums what clock tolerance cut off
    nodes; ``overlapping_nodes`` overlapped their chain by more and hang on an earlier node;
    ``inconsistent_edges`` were dropped because the source ended after the target began (or they closed a
    cycle); ``implied_edges`` add nothing and are left out.
    """

    order: IntArray
    in_row_order: bool
    begin_ns: IntArray
    end_ns: IntArray
    segment_start: IntArray
    edges: PositionEdges
    contraction: Contraction
    makespan_ns: int
    clipped_ns: int
    overlapping_nodes: int
    inconsistent_edges: int
    implied_edges: int

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.order.size)

    def to_rows(self, per_position: IntArray) -> IntArray:
        """Values per position brought into row order; no copy where that is their order already."""
        if self.in_row_order:
            return per_position
        per_row = np.empty_like(per_position)
        per_row[self.order] = per_position
        return per_row


@frozen(eq=False, kw_only=True)
class NodeWeights:
    """What a path collects, per position: ``execution_ns`` is the part that a speed-up of the node shrinks.

    ``total_ns`` adds the wait that stays; ``edge_lag_ns`` is collected per edge of the graph. ``recorded``
    is false once a symbol was scaled.
    """

    weighting: Weighting
    execution_ns: IntArray
    total_ns: IntArray
    edge_lag_ns: IntArray
    recorded: bool


@frozen(eq=False, kw_only=True)
class Solution:
    """Longest paths of one weighting, per row.

    ``head_ns``: longest path that ends with the node, ``tail_ns``: that begins with it, both with the node.
    ``slack_ns``: how much the node alone can grow before ``critical_path_ns`` does; 0 is critical.
    """

    weights: NodeWeights
    critical_path_ns: int
    head_ns: IntArray
    tail_ns: IntArray
    slack_ns: IntArray


@frozen(eq=False, kw_only=True)
class Slack:
    """Of a solution what most users need: slack per row, and the longest path that ends in each group."""

    weights: NodeWeights
    slack_ns: IntArray
    longest_ns: IntArray


@frozen(eq=False, kw_only=True)
class CriticalPath:
    """One longest path in time order; of several equal ones the one through the smallest (begin, chain, id).

    Per node: ``rows`` and ``wait_ns`` (kept wait and edge lag before the node). Per run of consecutive
    chain members: ``run_start`` (index into ``rows``) and ``entered_by`` (the caller's edge number, or
    PATH_BEGIN or CHAIN_REPAIR). ``execution_ns + waiting_ns == critical_path_ns``, exactly.
    """

    weighting: Weighting
    critical_path_ns: int
    rows: IntArray
    wait_ns: IntArray
    run_start: IntArray
    entered_by: IntArray
    execution_ns: int
    waiting_ns: int
