"""Edges between nodes added up to edges between symbols: the kernel-level graph of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.analysis.critical_path.symbols import sum_by
from rpl_core.analysis.execution_graph.edge_table import EdgeKind
from rpl_core.analysis.execution_graph.graph_launches import NO_LINK
from rpl_core.analysis.execution_graph.model import SymbolEdge
from rpl_core.analysis.execution_graph.numbering import number_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.analysis.execution_graph.domain import SolvedDomain
    from rpl_core.analysis.execution_graph.edge_table import EdgeTable
    from rpl_core.analysis.execution_graph.graph_launches import LaneLinks

    Int64Column = NDArray[np.int64]

__all__ = ["sum_symbol_edges"]

#: dag.json keeps the most frequent ones (chosen).
MOST_SYMBOL_EDGES = 1000
_KINDS = len(EdgeKind)


def sum_symbol_edges(solved: SolvedDomain, links: LaneLinks) -> tuple[tuple[SymbolEdge, ...], int]:
    """The most frequent edges, and how many were left out. ``gap_ns`` sums begin minus end, at least 0."""
    parts = (_along_lanes(solved, links), _across(solved), _through_host(solved))
    source, target, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    domain = solved.domain
    symbols = len(domain.work.symbol_names)
    pair = domain.symbol[source].astype(np.int64) * symbols + domain.symbol[target]
    keys, index = number_keys(pair * _KINDS + kind)
    gaps = np.maximum(domain.begin_ns[target] - domain.end_ns[source], 0)
    count, gap = np.bincount(index, minlength=keys.size), sum_by(index, gaps, keys.size)
    # Kernel names ascend with their numbers, so that equal counts come in the order of names.
    chosen = np.argsort(-count, kind="stable")[:MOST_SYMBOL_EDGES]
    names = domain.work.symbol_names
    edges = tuple(
        SymbolEdge(
            source=names[keys[i] // _KINDS // symbols],
            target=names[keys[i] // _KINDS % symbols],
            kind=EdgeKind(keys[i] % _KINDS).name.lower(),
            count=int(count[i]),
            gap_ns=int(gap[i]),
        )
        for i in chosen.tolist()
    )
    return edges, int(keys.size) - len(edges)


def _along_lanes(solved: SolvedDomain, links: LaneLinks) -> tuple[Int64Column, Int64Column, Int64Column]:
    domain = solved.domain
    lane = domain.work.lane
    by_lane = np.argsort(lane.astype(np.uint16) if len(domain.work.lanes) < 2**16 else lane, kind="stable")
    kind = links.kind[domain.work_rows[by_lane]]
    linked = np.flatnonzero(kind[1:] != NO_LINK) + 1
    return by_lane[linked - 1], by_lane[linked], kind[linked].astype(np.int64)


def _kept(solved: SolvedDomain) -> EdgeTable:
    return solved.edges.pick(solved.graph.edges.origin[solved.graph.edges.origin >= 0])


def _across(solved: SolvedDomain) -> tuple[Int64Column, Int64Column, Int64Column]:
    edges, work = _kept(solved), len(solved.domain.work)
    direct = (edges.source < work) & (edges.target < work)
    return edges.source[direct], edges.target[direct], edges.kind[direct].astype(np.int64)


def _through_host(solved: SolvedDomain) -> tuple[Int64Column, Int64Column, Int64Column]:
    """A host synchronisation stands for the node it waited for that ended last."""
    domain, edges = solved.domain, _kept(solved)
    work = len(domain.work)
    into = (edges.source < work) & (edges.target >= work)
    source, sync = edges.source[into], edges.target[into] - work
    awaited = np.full(domain.size - work, -1, dtype=np.int64)
    by_end = np.argsort(domain.end_ns[source], kind="stable")
    awaited[sync[by_end]] = source[by_end]
    out = (edges.source >= work) & (edges.target < work)
    source, target = awaited[edges.source[out] - work], edges.target[out]
    known = source >= 0
    return source[known], target[known], edges.kind[out][known].astype(np.int64)
