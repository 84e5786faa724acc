"""Which nodes stay individually visible however long the run is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_report.timeline.model import KeptNodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_report.timeline.lanes import LaneChoice
    from rpl_report.timeline.symbols import SymbolChoice
    from rpl_report.timeline.work import TimedWork

    Int64Column = NDArray[np.int64]

__all__ = ["LONGEST_OF_ALL", "LONGEST_ON_PATH", "LONGEST_PER_SYMBOL", "kept_nodes"]

#: Chosen for the size of the page: 36 bytes per node.
LONGEST_OF_ALL = 24_000
LONGEST_ON_PATH = 16_000
LONGEST_PER_SYMBOL = 8


def kept_nodes(work: TimedWork, lanes: LaneChoice, symbols: SymbolChoice, ends: Int64Column) -> KeptNodes:
    """All nodes of the shown lanes if they are few; otherwise the longest of all, of the critical path and of
    every symbol, and ``ends``: the rows where the critical path enters or leaves a lane.
    """
    nodes = work.nodes
    shown = lanes.place[nodes.lane] >= 0
    if int(shown.sum()) > LONGEST_OF_ALL + LONGEST_ON_PATH:
        shown &= _worth_keeping(work, shown, symbols, ends)
    rows = np.flatnonzero(shown)
    rows = rows[np.argsort(lanes.place[nodes.lane[rows]], kind="stable")]
    begin = work.begin_ns()[rows]
    return KeptNodes(
        lane=lanes.place[nodes.lane[rows]].astype(np.uint16),
        symbol=symbols.place[nodes.symbol[rows]].astype(np.uint16),
        begin_ns=begin,
        duration_ns=nodes.duration_ns()[rows],
        slack_ns=work.slack_ns[rows],
        on_path=work.on_path()[rows],
        identity=_identity(work, rows),
    )


def _worth_keeping(
    work: TimedWork, shown: NDArray[np.bool_], symbols: SymbolChoice, ends: Int64Column
) -> NDArray[np.bool_]:
    nodes = work.nodes
    duration = np.where(shown, nodes.duration_ns(), -1)
    keep = np.zeros(len(nodes), dtype=np.bool_)
    longest = np.argsort(-duration, kind="stable")
    keep[longest[:LONGEST_OF_ALL]] = True
    on_path = work.path_rows[np.argsort(-duration[work.path_rows], kind="stable")[:LONGEST_ON_PATH]]
    keep[on_path[duration[on_path] >= 0]] = True
    symbol = symbols.place[nodes.symbol[longest]]
    # Stable: within a symbol the rows stay in order of length.
    by_symbol = np.argsort(symbol.astype(np.uint16), kind="stable")
    symbol = symbol[by_symbol]
    first = np.searchsorted(symbol, symbol, side="left")
    rank = np.arange(symbol.size) - first
    keep[longest[by_symbol[rank < LONGEST_PER_SYMBOL]]] = True
    keep[ends] = True
    return keep


def _identity(work: TimedWork, rows: Int64Column) -> Int64Column:
    nodes = work.nodes
    is_copy, row = nodes.is_copy[rows], nodes.row[rows]
    identity = np.full(rows.size, -1, dtype=np.int64)
    identity[~is_copy] = work.trace.dispatches.dispatch_id[row[~is_copy]]
    return identity
