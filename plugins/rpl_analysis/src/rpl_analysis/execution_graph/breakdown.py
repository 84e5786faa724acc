"""What the makespan was spent on: the as-executed path split into work and three kinds of waiting.

A wait before a node is the host's until the node's API call began; what is left is the wait for a
synchronisation if one released the node, else the launch (critical_path.md, 1.6). Without API calls the
host's part is unknown and counts as launch gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_analysis.execution_graph.domain import NO_SYMBOL
from rpl_analysis.execution_graph.edge_table import EdgeKind
from rpl_analysis.execution_graph.model import PathBreakdown
from rpl_analysis.execution_graph.numbering import BLOCK, is_constant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import CriticalPath
    from rpl_analysis.execution_graph.domain import SolvedDomain

    Int64Column = NDArray[np.int64]

__all__ = ["QUEUED_WAITS", "break_down"]

#: Kinds of edges that hold back work which the host has submitted already.
QUEUED_WAITS = (EdgeKind.EVENT, EdgeKind.MEASURED_EVENT, EdgeKind.NULL_STREAM)


_UNKNOWN = np.int64(np.iinfo(np.int64).min)


def break_down(solved: SolvedDomain, path: CriticalPath) -> PathBreakdown:
    """The parts of ``path``, which is as executed; they add up to the makespan."""
    domain, rows = solved.domain, path.rows
    execution = solved.graph.to_rows(solved.weights.execution_ns)
    submitted = _submitted_ns(solved)
    # Host synchronisations, which belong to no symbol, take no time.
    kernel_ns = copy_ns = host_ns = held_ns = 0
    waits = _after_queued_wait(solved, path)
    for first in range(0, rows.size, BLOCK):
        block = slice(first, first + BLOCK)
        own, symbol = rows[block], domain.symbol[rows[block]]
        is_copy = symbol >= domain.work.kernel_symbols
        copy_ns += int(execution[own][is_copy].sum())
        kernel_ns += int(execution[own][~is_copy & (symbol != NO_SYMBOL)].sum())
        host = _host_part(submitted[own], path.wait_ns[block])
        held = waits[block] | (symbol == NO_SYMBOL)
        host_ns += int(host.sum())
        held_ns += int(path.wait_ns[block][held].sum() - host[held].sum())
    return PathBreakdown(
        kernel_ns=kernel_ns,
        copy_ns=copy_ns,
        launch_gap_ns=path.waiting_ns - host_ns - held_ns,
        host_gap_ns=host_ns,
        sync_wait_ns=held_ns,
    )


def _submitted_ns(solved: SolvedDomain) -> Int64Column:
    """Per row the time from its begin to that of its API call, which lies before it; int64 min if unknown."""
    domain, graph = solved.domain, solved.graph
    if is_constant(domain.submitted_ns) and domain.submitted_ns[0] < 0:
        return np.broadcast_to(_UNKNOWN, domain.submitted_ns.shape)
    # Times of the graph count from its first begin.
    submitted = domain.submitted_ns - int(domain.begin_ns.min())
    submitted -= graph.to_rows(graph.begin_ns)
    submitted[domain.submitted_ns < 0] = _UNKNOWN
    return submitted


def _host_part(submitted_ns: Int64Column, wait_ns: Int64Column) -> Int64Column:
    """The part of each wait before the API call of the node that waits."""
    known = submitted_ns != _UNKNOWN
    return np.where(known, np.clip(np.where(known, submitted_ns, 0) + wait_ns, 0, wait_ns), 0)


def _after_queued_wait(solved: SolvedDomain, path: CriticalPath) -> NDArray[np.bool_]:
    """Per node of the path whether it was entered by an edge that holds back submitted work."""
    entered = path.entered_by >= 0
    queued = np.zeros(path.rows.size, dtype=np.bool_)
    kinds = solved.edges.kind[path.entered_by[entered]]
    queued[path.run_start[entered]] = np.isin(kinds, QUEUED_WAITS)
    return queued
