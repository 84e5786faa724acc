"""How sure the critical path is: edges by kind and confidence, and its length under other rules.

``certain_only`` keeps what the API guarantees: certain edges, and of a graph launch no more than its longest
node. ``all_edges`` adds the guesses (docs/reference/execution-graph.md, 3.6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np

from rpl_analysis.contracts.dag import EdgeCount, PathBoundsPart
from rpl_analysis.critical_path.graph import build_graph
from rpl_analysis.critical_path.model import CrossEdges
from rpl_analysis.critical_path.solve import advance, critical_path_ns
from rpl_analysis.critical_path.weights import weigh
from rpl_analysis.execution_graph.dependencies.graph_launches import NO_LINK, launch_groups
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import CriticalPath
    from rpl_analysis.execution_graph.dependencies.graph_launches import LaneLinks
    from rpl_analysis.execution_graph.graph import EdgeTable
    from rpl_analysis.execution_graph.results.domain import Domain, SolvedDomain

    Int64Column = NDArray[np.int64]

__all__ = ["OtherLengths", "certain_share", "count_edges", "other_lengths", "path_edges"]

_KINDS = len(EdgeKind)


def count_edges(solved: Iterable[SolvedDomain], links: LaneLinks) -> tuple[EdgeCount, ...]:
    """Edges of the graphs by kind and confidence: links of lanes, and edges that add to them."""
    linked = links.kind != NO_LINK
    counts = _counts(links.kind[linked], links.confidence[linked])
    for domain in solved:
        kept = domain.graph.edges.origin[domain.graph.edges.origin >= 0]
        counts += _counts(domain.edges.kind[kept], domain.edges.confidence[kept])
    return _listed(counts)


def path_edges(solved: SolvedDomain, links: LaneLinks) -> tuple[EdgeCount, ...]:
    """The edges that the exec-only path runs along, by kind and confidence."""
    kind, confidence = edges_on_path(solved, solved.path, links)
    return _listed(_counts(kind, confidence))


def edges_on_path(
    solved: SolvedDomain, path: CriticalPath, links: LaneLinks
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Kind and confidence of the edge into every node of the path but its first."""
    work, rows = len(solved.domain.work), path.rows
    is_work = rows < work
    kind = np.full(rows.size, EdgeKind.HOST_ORDER, dtype=np.int8)
    confidence = np.full(rows.size, Confidence.CERTAIN, dtype=np.int8)
    trace_row = solved.domain.work_rows[rows[is_work]]
    kind[is_work], confidence[is_work] = links.kind[trace_row], links.confidence[trace_row]
    # A branch begins beside others of its launch and may follow what its lane held before that.
    inner = np.flatnonzero((kind[1:] == EdgeKind.GRAPH_LAUNCH) & is_work[1:] & is_work[:-1]) + 1
    launch = solved.domain.work.correlation_id
    behind = inner[launch[rows[inner]] != launch[rows[inner - 1]]]
    by_queue = solved.domain.work.by_queue
    kind[behind] = EdgeKind.QUEUE if by_queue else EdgeKind.STREAM
    confidence[behind] = Confidence.PROBABLE if by_queue else Confidence.CERTAIN
    crossed = path.entered_by >= 0
    edge = path.entered_by[crossed]
    kind[path.run_start[crossed]] = solved.edges.kind[edge]
    confidence[path.run_start[crossed]] = solved.edges.confidence[edge]
    return kind[1:], confidence[1:]


def certain_share(edges: tuple[EdgeCount, ...]) -> float | None:
    """Share of the path's edges that are certain; None for a path of one node."""
    total = sum(edge.count for edge in edges)
    certain = sum(edge.count for edge in edges if edge.confidence == "certain")
    return certain / total if total else None


def _counts(kind: NDArray[np.integer], confidence: NDArray[np.integer]) -> Int64Column:
    cell = kind.astype(np.int64) * len(Confidence) + confidence
    return np.bincount(cell, minlength=_KINDS * len(Confidence))


def _listed(counts: Int64Column) -> tuple[EdgeCount, ...]:
    return tuple(
        EdgeCount(kind.name.lower(), cast("Any", confidence.name.lower()), int(count))
        for kind in EdgeKind
        for confidence in Confidence
        if (count := counts[kind * len(Confidence) + confidence])
    )


@frozen
class OtherLengths:
    """Lengths under the two other rules; None where the rule changes nothing."""

    certain_only_ns: int | None
    all_edges_ns: int | None

    def bounds(self, critical_path_ns: int) -> PathBoundsPart:
        """Around the reported length. Clock tolerance may clip nodes differently by some ns."""
        certain, everything = self.certain_only_ns, self.all_edges_ns
        return PathBoundsPart(
            certain_only_ns=critical_path_ns if certain is None else min(certain, critical_path_ns),
            all_edges_ns=critical_path_ns if everything is None else max(everything, critical_path_ns),
        )


def other_lengths(domain: Domain, links: LaneLinks) -> OtherLengths:
    """Solve the domain with certain edges alone and with all edges, where that differs."""
    everything = None
    if (domain.edges.confidence == Confidence.GUESS).any():
        everything = _length(domain.lane, domain.begin_ns, domain.end_ns, domain.edges)
    certain = domain.edges.pick(domain.edges.confidence == Confidence.CERTAIN)
    columns = _certain_columns(domain, links, certain)
    if columns is None and not (domain.edges.confidence == Confidence.PROBABLE).any():
        return OtherLengths(None, everything)
    shortest = _length(*(columns or (domain.lane, domain.begin_ns, domain.end_ns, certain)))
    return OtherLengths(shortest, everything)


def _certain_columns(
    domain: Domain, links: LaneLinks, certain: EdgeTable
) -> tuple[Int64Column, Int64Column, Int64Column, EdgeTable] | None:
    """Lanes, times and edges in which uncertain lane order is gone; None where all of it is certain."""
    work = domain.work
    own = attrs.evolve(
        links, kind=links.kind[domain.work_rows], confidence=links.confidence[domain.work_rows]
    )
    if work.by_queue:
        # No order between any two nodes of a queue: every node is a lane.
        lane = domain.lane.astype(np.int64)
        lane[: len(work)] = np.arange(len(work)) + int(domain.lane.max(initial=0)) + 1
        return lane, domain.begin_ns, domain.end_ns, certain
    group = launch_groups(work, own)
    if group is None:
        return None
    return _contracted(domain, group, certain)


def _contracted(
    domain: Domain, group: NDArray[np.int32], certain: EdgeTable
) -> tuple[Int64Column, Int64Column, Int64Column, EdgeTable]:
    """Each group as one node, as long as its longest member."""
    count, work = int(group.max()) + 1, len(domain.work)
    first = np.full(count, np.iinfo(np.int64).max)
    longest = np.zeros(count, dtype=np.int64)
    np.minimum.at(first, group, domain.begin_ns[:work])
    np.maximum.at(longest, group, domain.end_ns[:work] - domain.begin_ns[:work])
    lane = np.zeros(count, dtype=np.int64)
    lane[group] = domain.lane[:work]
    number = np.concatenate([group, np.arange(domain.size - work) + count])
    return (
        np.concatenate([lane, domain.lane[work:]]),
        np.concatenate([first, domain.begin_ns[work:]]),
        np.concatenate([first + longest, domain.end_ns[work:]]),
        attrs.evolve(certain, source=number[certain.source], target=number[certain.target]),
    )


def _length(lane: NDArray[np.integer], begin_ns: Int64Column, end_ns: Int64Column, edges: EdgeTable) -> int:
    cross = CrossEdges(source=edges.source, target=edges.target, lag_ns=edges.lag_ns)
    graph = build_graph(lane, begin_ns, end_ns, cross)
    weights, contraction = weigh(graph, "exec_only"), graph.contraction
    del graph, cross  # with millions of nodes every column counts
    return critical_path_ns(contraction, advance(contraction, weights.total_ns, weights.edge_lag_ns))
