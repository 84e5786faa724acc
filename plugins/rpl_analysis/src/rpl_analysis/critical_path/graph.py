"""From columns to a graph that can be solved: checks, canonical order, chains, edges, contraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.critical_path.chains import (
    PositionEdges,
    canonical_order,
    drop_implied,
    lay_out_chain,
    settle,
)
from rpl_analysis.critical_path.contraction import contract
from rpl_analysis.critical_path.model import CHAIN_REPAIR, CrossEdges, DispatchGraph
from rpl_core.errors import BadDataError
from rpl_core.text import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.chains import ChainLayout
    from rpl_analysis.critical_path.contraction import Contraction

    IntArray = NDArray[np.int64]

__all__ = ["DEFAULT_TOLERANCE_NS", "build_graph"]

#: Clock conversion skew between engines of one host that is taken for "at the same time".
DEFAULT_TOLERANCE_NS = 1000
#: Sums of two lengths must stay inside int64.
_LONGEST_SPAN_NS = 2**61


def build_graph(
    chain: NDArray[np.integer],
    begin_ns: IntArray,
    end_ns: IntArray,
    edges: CrossEdges | None = None,
    *,
    identity: NDArray[np.integer] | None = None,
    tolerance_ns: int = DEFAULT_TOLERANCE_NS,
) -> DispatchGraph:
    """Graph over ``n`` rows: ``chain``, ``begin_ns``, ``end_ns`` have shape (n,), edges name rows.

    ``identity`` settles ties between rows of one chain with equal times (default: the row number). Raises
    BadDataError for columns of different length, rows that end before they begin, edges that leave the
    graph, negative lags, or times further apart than 2**61 ns.
    """
    edges = CrossEdges.none() if edges is None else edges
    _check_columns(chain, begin_ns, end_ns, identity)
    _check_edges(edges, chain.size)
    if not chain.size:
        order, opens = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
        first_ns = last_ns = 0
    else:
        order = canonical_order(chain, begin_ns, end_ns, identity)
        opens = _opens(chain[order])
        first_ns, last_ns = int(begin_ns.min()), int(end_ns.max())
    in_row_order = bool((order[1:] > order[:-1]).all())
    begin, end = (_relative(column, order, first_ns, in_row_order) for column in (begin_ns, end_ns))
    recorded_total_ns = int(end.sum() - begin.sum())
    layout = lay_out_chain(opens, begin, end, tolerance_ns)
    settled = settle(layout, begin, _position_edges(edges, order, layout), tolerance_ns)
    segment_start = np.flatnonzero(~layout.linked)
    kept = drop_implied(settled.edges, segment_start)
    implied = settled.edges.size - kept.size
    contraction, cyclic = _contract(segment_start, kept, settled.begin_ns, settled.end_ns)
    if cyclic.size:
        kept = kept.pick(np.setdiff1d(np.arange(kept.size), cyclic))
        contraction, _ = _contract(segment_start, kept, settled.begin_ns, settled.end_ns)
    return DispatchGraph(
        order=order,
        in_row_order=in_row_order,
        begin_ns=settled.begin_ns,
        end_ns=settled.end_ns,
        segment_start=segment_start,
        edges=kept,
        contraction=contraction,
        makespan_ns=last_ns - first_ns,
        clipped_ns=recorded_total_ns - int(settled.end_ns.sum() - settled.begin_ns.sum()),
        overlapping_nodes=layout.overlapping_nodes,
        inconsistent_edges=settled.inconsistent_edges + int(cyclic.size),
        implied_edges=implied,
    )


def _check_columns(
    chain: NDArray[np.integer], begin_ns: IntArray, end_ns: IntArray, identity: NDArray[np.integer] | None
) -> None:
    lengths = {column.size for column in (chain, begin_ns, end_ns, identity) if column is not None}
    if len(lengths) != 1:
        raise BadDataError(f"node columns differ in length: {sorted(lengths)}")
    if not chain.size:
        return
    backward = end_ns < begin_ns
    if backward.any():
        raise BadDataError(
            counted(int(backward.sum()), "node ends before it begins", "nodes end before they begin")
            + f", the first is row {int(backward.argmax())}"
        )
    if int(end_ns.max()) - int(begin_ns.min()) > _LONGEST_SPAN_NS:
        raise BadDataError(
            f"times span more than {_LONGEST_SPAN_NS} ns", cause="timestamps of different clocks"
        )


def _check_edges(edges: CrossEdges, size: int) -> None:
    columns = [edges.source, edges.target] + ([] if edges.lag_ns is None else [edges.lag_ns])
    lengths = {column.size for column in columns}
    if len(lengths) != 1:
        raise BadDataError(f"edge columns differ in length: {sorted(lengths)}")
    if edges.source.size == 0:
        return
    lowest = min(int(edges.source.min()), int(edges.target.min()))
    highest = max(int(edges.source.max()), int(edges.target.max()))
    if lowest < 0 or highest >= size:
        raise BadDataError(f"edges name rows {lowest} to {highest} of a graph with {size} rows")
    if edges.lag_ns is not None and int(edges.lag_ns.min()) < 0:
        raise BadDataError(f"an edge has a lag of {int(edges.lag_ns.min())} ns: it can't be negative")


def _relative(column: IntArray, order: IntArray, first_ns: int, in_row_order: bool) -> IntArray:
    if in_row_order:
        return column - first_ns
    relative = column[order]
    relative -= first_ns
    return relative


def _opens(chain: NDArray[np.integer]) -> NDArray[np.bool_]:
    opens = np.ones(chain.size, dtype=np.bool_)
    np.not_equal(chain[1:], chain[:-1], out=opens[1:])
    return opens


def _position_edges(edges: CrossEdges, order: IntArray, layout: ChainLayout) -> PositionEdges:
    """The caller's edges between positions, followed by the repair edges of the chains."""
    count, repairs = edges.source.size, layout.repair_source.size
    lag_ns = np.zeros(count, dtype=np.int64) if edges.lag_ns is None else edges.lag_ns.astype(np.int64)
    position = np.zeros(0, dtype=np.int64)
    if count:
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
    return PositionEdges(
        source=np.concatenate([position[edges.source], layout.repair_source]),
        target=np.concatenate([position[edges.target], layout.repair_target]),
        lag_ns=np.concatenate([lag_ns, np.zeros(repairs, dtype=np.int64)]),
        origin=np.concatenate([np.arange(count), np.full(repairs, CHAIN_REPAIR)]),
    )


def _contract(
    segment_start: IntArray, edges: PositionEdges, begin_ns: IntArray, end_ns: IntArray
) -> tuple[Contraction, IntArray]:
    times = lambda position: (begin_ns[position], end_ns[position])  # noqa: E731
    return contract(begin_ns.size, segment_start, edges.source, edges.target, times)
