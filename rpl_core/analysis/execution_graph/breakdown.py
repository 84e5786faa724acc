"""What the makespan was spent on: the as-executed path split into work and three kinds of waiting.

A wait before a node is the host's until the node's API call began; what is left is the wait for a
synchronisation if one released the node, else the launch (critical_path.md, 1.6). Without API calls the
host's part is unknown and counts as launch gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rpl_core.analysis.critical_path.path import trace_path
from rpl_core.analysis.critical_path.weights import weigh
from rpl_core.analysis.execution_graph.domain import NO_SYMBOL
from rpl_core.analysis.execution_graph.edge_table import EdgeKind
from rpl_core.analysis.execution_graph.model import PathBreakdown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_core.analysis.critical_path.model import CriticalPath
    from rpl_core.analysis.execution_graph.domain import SolvedDomain

    Int64Column = NDArray[np.int64]

__all__ = ["QUEUED_WAITS", "as_executed_path", "break_down"]

#: Kinds of edges that hold back work which the host has submitted already.
QUEUED_WAITS = (EdgeKind.EVENT, EdgeKind.MEASURED_EVENT, EdgeKind.NULL_STREAM)


def as_executed_path(solved: SolvedDomain) -> CriticalPath:
    """The path with recorded waits, as long as the makespan."""
    return trace_path(solved.graph, weigh(solved.graph, "as_executed"))


def break_down(solved: SolvedDomain, path: CriticalPath) -> PathBreakdown:
    """The parts of ``path``, which is as executed; they add up to the makespan."""
    domain, rows = solved.domain, path.rows
    execution = solved.graph.to_rows(solved.weights.execution_ns)[rows]
    is_sync = domain.symbol[rows] == NO_SYMBOL
    is_copy = domain.symbol[rows] >= domain.work.kernel_symbols
    kernel_ns, copy_ns = int(execution[~is_copy & ~is_sync].sum()), int(execution[is_copy].sum())
    del execution
    host = _host_part(solved, path)
    waits = is_sync | np.isin(_entered_by(solved, path), QUEUED_WAITS)
    host_ns, held_ns = int(host.sum()), int(path.wait_ns[waits].sum() - host[waits].sum())
    return PathBreakdown(
        kernel_ns=kernel_ns,
        copy_ns=copy_ns,
        launch_gap_ns=path.waiting_ns - host_ns - held_ns,
        host_gap_ns=host_ns,
        sync_wait_ns=held_ns,
    )


def _host_part(solved: SolvedDomain, path: CriticalPath) -> Int64Column:
    """The part of each wait before the API call of the node that waits."""
    begin = solved.graph.to_rows(solved.graph.begin_ns)[path.rows]
    submitted = solved.domain.submitted_ns[path.rows]
    known = submitted >= 0
    # From the begin of the wait to that of the call; times of the graph count from its first begin.
    host = submitted - int(solved.domain.begin_ns.min())
    host -= begin
    host += path.wait_ns
    np.clip(host, 0, path.wait_ns, out=host)
    host[~known] = 0
    return host


def _entered_by(solved: SolvedDomain, path: CriticalPath) -> NDArray[np.int8]:
    """Edge kind through which the path came to each of its rows; STREAM inside runs."""
    kinds = np.full(path.rows.size, EdgeKind.STREAM, dtype=np.int8)
    by_edge = path.entered_by >= 0
    kinds[path.run_start[by_edge]] = solved.edges.kind[path.entered_by[by_edge]]
    return kinds
