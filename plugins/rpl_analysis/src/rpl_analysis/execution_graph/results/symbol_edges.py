"""Edges between nodes added up to edges between symbols: the kernel-level graph of a recording."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.contracts.graph import SymbolEdgePart
from rpl_analysis.critical_path.symbols import sum_by
from rpl_analysis.execution_graph.dependencies.graph_launches import NO_LINK
from rpl_analysis.execution_graph.graph.edges import EdgeKind
from rpl_analysis.execution_graph.graph.numbering import number_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rpl_analysis.execution_graph.dependencies.graph_launches import LaneLinks
    from rpl_analysis.execution_graph.graph.edges import EdgeTable
    from rpl_analysis.execution_graph.results.domain import SolvedDomain

    Int64Column = NDArray[np.int64]
    #: Source and target row of each edge, and its kind.
    Edges = tuple[Int64Column, Int64Column, NDArray[np.int8]]

__all__ = ["sum_symbol_edges"]

#: dag.json keeps the most frequent ones (chosen).
MOST_SYMBOL_EDGES = 1000
_KINDS = len(EdgeKind)
_BLOCK = 2**17


def sum_symbol_edges(solved: SolvedDomain, links: LaneLinks) -> tuple[tuple[SymbolEdgePart, ...], int]:
    """The most frequent edges, and how many were left out. ``gap_ns`` sums begin minus end, at least 0."""
    sums: dict[int, tuple[int, int]] = {}
    # In blocks: with millions of nodes the columns of all edges would be most of the memory.
    for source, target, kind in chain(
        _along_lanes(solved, links), _blocks(*_across(solved)), _blocks(*_through_host(solved))
    ):
        _add(sums, solved, source, target, kind)
    # Kernel names ascend with their numbers, so that equal counts come in the order of names.
    chosen = sorted(sums, key=lambda key: (-sums[key][0], key))[:MOST_SYMBOL_EDGES]
    names = solved.domain.work.symbol_names
    edges = tuple(
        SymbolEdgePart(
            source=names[key // _KINDS // len(names)],
            target=names[key // _KINDS % len(names)],
            kind=EdgeKind(key % _KINDS).name.lower(),
            count=sums[key][0],
            gap_ns=sums[key][1],
        )
        for key in chosen
    )
    return edges, len(sums) - len(edges)


def _add(
    sums: dict[int, tuple[int, int]],
    solved: SolvedDomain,
    source: Int64Column,
    target: Int64Column,
    kind: NDArray[np.int8],
) -> None:
    domain = solved.domain
    pair = domain.symbol[source].astype(np.int64) * len(domain.work.symbol_names) + domain.symbol[target]
    keys, index = number_keys(pair * _KINDS + kind)
    gaps = np.maximum(domain.begin_ns[target] - domain.end_ns[source], 0)
    counts = np.bincount(index, minlength=keys.size).tolist()
    for key, count, gap in zip(keys.tolist(), counts, sum_by(index, gaps, keys.size).tolist(), strict=True):
        before = sums.get(key, (0, 0))
        sums[key] = (before[0] + count, before[1] + gap)


def _along_lanes(solved: SolvedDomain, links: LaneLinks) -> Iterator[Edges]:
    work, rows = solved.domain.work, solved.domain.work_rows
    lanes = len(work.lanes)
    if lanes > 1:
        by_lane = np.argsort(work.lane.astype(np.uint16) if lanes < 2**16 else work.lane, kind="stable")
    else:
        by_lane = np.arange(len(work))
    for first in range(1, len(work), _BLOCK):
        target = by_lane[first : first + _BLOCK]
        source = by_lane[first - 1 : first - 1 + target.size]
        kind = links.kind[rows[target]]
        linked = kind != NO_LINK
        yield (source, target, kind) if linked.all() else (source[linked], target[linked], kind[linked])


def _blocks(source: Int64Column, target: Int64Column, kind: NDArray[np.int8]) -> Iterator[Edges]:
    for first in range(0, source.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        yield source[block], target[block], kind[block]


def _kept(solved: SolvedDomain) -> EdgeTable:
    return solved.edges.pick(solved.graph.edges.origin[solved.graph.edges.origin >= 0])


def _across(solved: SolvedDomain) -> Edges:
    edges, work = _kept(solved), len(solved.domain.work)
    direct = (edges.source < work) & (edges.target < work)
    return edges.source[direct], edges.target[direct], edges.kind[direct]


def _through_host(solved: SolvedDomain) -> Edges:
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
    return source[known], target[known], edges.kind[out][known]
