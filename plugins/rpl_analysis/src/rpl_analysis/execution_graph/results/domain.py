"""The part of a trace on one machine as a solved graph: machines have clocks of their own.

Rows of a domain are its work nodes in time order, then its host synchronisations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from rpl_analysis.critical_path.graph import build_graph
from rpl_analysis.critical_path.model import CrossEdges
from rpl_analysis.critical_path.path import trace_path
from rpl_analysis.critical_path.solve import advance, critical_path_ns, solve_slack
from rpl_analysis.critical_path.symbols import sum_symbols
from rpl_analysis.critical_path.weights import weigh
from rpl_analysis.execution_graph.graph import Confidence
from rpl_core.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rpl_analysis.critical_path.model import CriticalPath, DispatchGraph, NodeWeights
    from rpl_analysis.critical_path.symbols import SymbolSums
    from rpl_analysis.execution_graph.dependencies.all_edges import Dependencies
    from rpl_analysis.execution_graph.graph import EdgeTable, WorkNodes
    from rpl_core.model.trace import Trace

    Int64Column = NDArray[np.int64]

__all__ = ["Domain", "SolvedDomain", "graph_of", "machine_domains", "path_length", "solve_domain"]

#: Symbol number of host synchronisations, which belong to no symbol.
NO_SYMBOL = -1


@frozen(eq=False, kw_only=True)
class Domain:
    """Columns over the rows of one machine. ``submitted_ns`` is the begin of the API call, -1 unknown.

    ``edges`` name rows; those with the confidence GUESS are not part of the graph that is reported.
    """

    machine: str
    work: WorkNodes
    rows: Int64Column  # row of each row among the work nodes and host synchronisations of all machines
    lane: NDArray[np.int32]
    begin_ns: Int64Column
    end_ns: Int64Column
    symbol: NDArray[np.int32]
    submitted_ns: Int64Column
    edges: EdgeTable

    @property
    def size(self) -> int:
        """Work nodes and host synchronisations."""
        return int(self.begin_ns.size)

    @property
    def work_rows(self) -> Int64Column:
        """Rows of this machine's work among the work nodes of all machines."""
        return self.rows[: len(self.work)]

    def trusted_edges(self) -> EdgeTable:
        """All edges but guesses."""
        trusted = self.edges.confidence < Confidence.GUESS
        return self.edges if trusted.all() else self.edges.pick(trusted)


@frozen(eq=False, kw_only=True)
class SolvedDomain:
    """A domain's graph solved in the exec-only weighting.

    ``edges`` are those that the graph was given, ``slack_ns`` is per row, ``process_path_ns`` per process of
    the trace: the longest path inside it.
    """

    domain: Domain
    edges: EdgeTable
    graph: DispatchGraph
    weights: NodeWeights
    slack_ns: Int64Column
    process_path_ns: Int64Column
    path: CriticalPath
    sums: SymbolSums


def machine_domains(trace: Trace, nodes: WorkNodes, dependencies: Dependencies) -> list[Domain]:
    """The domains in the order of machine names; machines without work have none."""
    machines = sorted({process.node for process in trace.processes})
    syncs = dependencies.syncs
    no_symbol = np.full(len(syncs), NO_SYMBOL, dtype=np.int32)
    columns: dict[str, NDArray[Any]] = {
        "lane": _followed_by(nodes.lane, (syncs.thread + len(nodes.lanes)).astype(np.int32)),
        "begin_ns": _followed_by(nodes.begin_ns, syncs.time_ns),
        "end_ns": _followed_by(nodes.end_ns, syncs.time_ns),
        "symbol": _followed_by(nodes.symbol, no_symbol),
        "submitted_ns": _submitted_ns(dependencies),
    }
    if len(machines) < 2:
        rows = np.arange(len(nodes) + len(syncs))
        name = machines[0] if machines else ""
        return [Domain(machine=name, work=nodes, rows=rows, edges=dependencies.edges, **columns)]
    number = {machine: i for i, machine in enumerate(machines)}
    of_process = np.array([number[process.node] for process in trace.processes], dtype=np.int32)
    of_row = np.concatenate([of_process[nodes.process], of_process[syncs.process]])
    parts = ((machine, of_row == i) for i, machine in enumerate(machines))
    return [_part(machine, mask, nodes, dependencies.edges, columns) for machine, mask in parts if mask.any()]


def _followed_by(work: NDArray[Any], syncs: NDArray[Any]) -> NDArray[Any]:
    # Without synchronisations nothing is copied: with millions of nodes each column counts.
    return np.concatenate([work, syncs]) if syncs.size else work


def _submitted_ns(dependencies: Dependencies) -> Int64Column:
    calls, submissions = dependencies.program.calls, dependencies.program.submissions
    if calls is None:
        return np.broadcast_to(np.int64(-1), submissions.call.shape)
    call = _followed_by(submissions.call, dependencies.syncs.call)
    return np.where(call >= 0, calls.table.begin_ns[call], -1)


def _part(
    machine: str,
    mask: NDArray[np.bool_],
    nodes: WorkNodes,
    edges: EdgeTable,
    columns: dict[str, NDArray[Any]],
) -> Domain:
    local = np.cumsum(mask) - 1
    # Edges stay inside a process, so both ends lie on one machine.
    own = edges.pick(mask[edges.source])
    return Domain(
        machine=machine,
        work=nodes.pick(mask[: len(nodes)]),
        rows=np.flatnonzero(mask),
        edges=attrs.evolve(own, source=local[own.source], target=local[own.target]),
        **{name: column[mask] for name, column in columns.items()},
    )


def solve_domain(domain: Domain) -> SolvedDomain:
    """Solve the graph of all edges that are no guesses."""
    edges = domain.trusted_edges()
    graph = graph_of(domain, edges)
    weights = weigh(graph, "exec_only")
    group, groups = _processes(domain)
    solution = solve_slack(graph, weights, group, groups)
    path = trace_path(graph, weights)
    return SolvedDomain(
        domain=domain,
        edges=edges,
        graph=graph,
        weights=weights,
        slack_ns=solution.slack_ns,
        process_path_ns=solution.longest_ns,
        path=path,
        sums=sum_symbols(graph, solution, path, domain.symbol),
    )


def _processes(domain: Domain) -> tuple[NDArray[np.int32], int]:
    """The process of each row, -1 for host synchronisations, and how many there may be."""
    process = domain.work.process
    count = int(process.max(initial=0)) + 1
    if int(process.min(initial=0)) < 0:
        process = np.where(process < 0, np.int32(count - 1), process)
    if domain.size > process.size:
        process = np.concatenate([process, np.full(domain.size - process.size, -1, dtype=np.int32)])
    return process, count


def graph_of(domain: Domain, edges: EdgeTable) -> DispatchGraph:
    """The domain's lanes with these edges between them."""
    cross = CrossEdges(source=edges.source, target=edges.target, lag_ns=edges.lag_ns)
    return build_graph(domain.lane, domain.begin_ns, domain.end_ns, cross)


def path_length(graph: DispatchGraph, weights: NodeWeights) -> int:
    """Length of the longest path alone, without slack or the path itself."""
    contraction = graph.contraction
    return critical_path_ns(contraction, advance(contraction, weights.total_ns, weights.edge_lag_ns))
