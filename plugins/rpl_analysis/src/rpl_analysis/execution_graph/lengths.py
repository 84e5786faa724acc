"""Only the lengths of a trace's critical path: for those who compare many runs and need no forecasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.critical_path.solve import advance, critical_path_ns
from rpl_analysis.critical_path.weights import weigh
from rpl_analysis.execution_graph.dependences import find_dependences
from rpl_analysis.execution_graph.domain import graph_of, machine_domains
from rpl_analysis.execution_graph.nodes import work_nodes

if TYPE_CHECKING:
    from rpl_analysis.critical_path.model import DispatchGraph
    from rpl_analysis.execution_graph.dependences import SyncInfo
    from rpl_core.model.trace import Trace

__all__ = ["PathLengths", "measure_path", "path_length"]


@attrs.frozen
class PathLengths:
    """The longest exec-only path and the longest makespan of any machine; ``None`` without work."""

    critical_path_ns: int | None
    makespan_ns: int | None
    sync_info: SyncInfo | None


def measure_path(trace: Trace, *, include_copies: bool) -> PathLengths:
    """The same lengths as those of ``execution_graph``."""
    nodes = work_nodes(trace, include_copies=include_copies)
    if not len(nodes):
        return PathLengths(None, None, None)
    found = find_dependences(trace, nodes)
    graphs = [graph_of(domain, domain.trusted_edges()) for domain in machine_domains(trace, nodes, found)]
    return PathLengths(
        critical_path_ns=max(path_length(graph) for graph in graphs),
        makespan_ns=max(graph.makespan_ns for graph in graphs),
        sync_info=found.sync_info,
    )


def path_length(graph: DispatchGraph) -> int:
    """Length of the exec-only path, without slack or the path itself."""
    weights = weigh(graph, "exec_only")
    return critical_path_ns(
        graph.contraction, advance(graph.contraction, weights.total_ns, weights.edge_lag_ns)
    )
