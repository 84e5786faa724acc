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
    domain = solved.domain
    rows = path.rows
    begin = solved.graph.to_rows(solved.graph.begin_ns)[rows]
    execution = solved.graph.to_rows(solved.weights.execution_ns)[rows]
    submitted = domain.submitted_ns[rows]
    origin = int(domain.begin_ns.min())
    host = np.where(submitted >= 0, submitted - origin - (begin - path.wait_ns), 0)
    host = np.clip(host, 0, path.wait_ns)
    rest = path.wait_ns - host
    is_sync = domain.symbol[rows] == NO_SYMBOL
    waits = is_sync | np.isin(_entered_by(solved, path), QUEUED_WAITS)
    is_copy = domain.symbol[rows] >= domain.work.kernel_symbols
    return PathBreakdown(
        kernel_ns=int(execution[~is_copy & ~is_sync].sum()),
        copy_ns=int(execution[is_copy].sum()),
        launch_gap_ns=int(rest[~waits].sum()),
        host_gap_ns=int(host.sum()),
        sync_wait_ns=int(rest[waits].sum()),
    )


def _entered_by(solved: SolvedDomain, path: CriticalPath) -> NDArray[np.int64]:
    """Edge kind through which the path came to each of its rows; STREAM inside runs."""
    kinds = np.full(path.rows.size, EdgeKind.STREAM, dtype=np.int64)
    by_edge = path.entered_by >= 0
    kinds[path.run_start[by_edge]] = solved.edges.kind[path.entered_by[by_edge]]
    return kinds
