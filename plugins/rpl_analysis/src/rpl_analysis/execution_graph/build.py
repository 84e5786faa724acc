"""From a trace to its execution graph: find dependencies, solve every machine, sum up the longest one.

``measure_path`` is for those who compare many runs and need lengths alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.contracts.dag import DominantWorkPart
from rpl_analysis.critical_path.path import trace_path
from rpl_analysis.critical_path.weights import weigh
from rpl_analysis.critical_path.whatif import segment_sums
from rpl_analysis.execution_graph.dependencies.all_edges import find_dependencies
from rpl_analysis.execution_graph.dependencies.graph_launches import link_lanes
from rpl_analysis.execution_graph.graph import work_nodes
from rpl_analysis.execution_graph.results.confidence import (
    certain_share,
    count_edges,
    other_lengths,
    path_edges,
)
from rpl_analysis.execution_graph.results.domain import graph_of, machine_domains, path_length, solve_domain
from rpl_analysis.execution_graph.results.forecasts import (
    at_no_cost,
    find_dominance_shift,
    forecast_symbols,
    rank_forecasts,
    rank_gains,
)
from rpl_analysis.execution_graph.results.full_columns import graph_columns
from rpl_analysis.execution_graph.results.loads import (
    MOST_PARTS,
    MachineLoad,
    host_timeline,
    machine_load,
    process_paths,
)
from rpl_analysis.execution_graph.results.model import ExecutionGraph, WorkOnPath
from rpl_analysis.execution_graph.results.paths import find_near_paths, path_segments
from rpl_analysis.execution_graph.results.symbols import (
    find_symbol_slack,
    rank_symbols,
    sum_symbol_edges,
    symbol_criticality,
)
from rpl_analysis.execution_graph.results.time_spent import break_down
from rpl_analysis.execution_graph.results.unknown_order import LaneOrder, longest_chain_ns, order_is_known
from rpl_core.model.trace import distinct_values
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rpl_analysis.contracts.dag import (
        ClockDomainPart,
        ForecastPart,
        PathBoundsPart,
        SymbolCriticality,
    )
    from rpl_analysis.critical_path.model import NodeWeights
    from rpl_analysis.execution_graph.dependencies.all_edges import SyncInfo
    from rpl_analysis.execution_graph.dependencies.graph_launches import LaneLinks
    from rpl_analysis.execution_graph.graph import WorkNodes
    from rpl_analysis.execution_graph.host_program.program import HostProgram
    from rpl_analysis.execution_graph.results.domain import Domain, SolvedDomain
    from rpl_core.model.trace import Trace

__all__ = ["RESOLVED_SYMBOLS", "PathLengths", "execution_graph", "measure_path", "process_lengths"]

#: Symbols for which the graph is solved again; the rest of the list can gain less (chosen).
RESOLVED_SYMBOLS = 15
#: With more edges between lanes than this, fewer symbols are: every scenario walks along all edges.
_EDGES_FOR_ALL = 2**18
_FEWEST_RESOLVED = 3


def execution_graph(
    trace: Trace, run: int, *, include_copies: bool, with_columns: bool = False
) -> ExecutionGraph:
    """The graph of ``trace``, which is timing run number ``run``; with every node and edge if asked.

    Machines are solved apart, since their clocks do not compare; path, segments, symbols and forecasts are
    those of the machine with the longest path.
    """
    nodes = work_nodes(trace, include_copies=include_copies)
    if not len(nodes):
        return ExecutionGraph(status="unavailable", reason="no dispatch with usable times was recorded")
    if not bool((nodes.end_ns > nodes.begin_ns).any()):
        reason = "every dispatch has a duration of zero: the timestamps are damaged"
        return ExecutionGraph(status="unavailable", reason=reason)
    dependencies = find_dependencies(trace, nodes)
    links = link_lanes(nodes, dependencies.program)
    domains = machine_domains(trace, nodes, dependencies)
    hosts = [host_timeline(trace, domain, dependencies) for domain in domains]
    graph = ExecutionGraph(
        status="available",
        origin=trace.origin,
        run=run,
        sync_info=dependencies.sync_info,
        nodes=len(nodes),
        host_syncs=len(dependencies.syncs),
        submission_disagreements=dependencies.submission_disagreements,
        unresolved=dependencies.unresolved,
        gaps_attributed=dependencies.program.calls is not None,
        host_threads=_host_threads(dependencies.program),
    )
    if not with_columns:
        # With millions of nodes every column counts: what found the edges is not needed to solve them.
        del dependencies
    # First, while no solution takes memory.
    others = [other_lengths(domain, links) for domain in domains]
    solved = [solve_domain(domain) for domain in domains]
    if with_columns:
        graph = attrs.evolve(graph, columns=graph_columns(trace, nodes, dependencies, solved))
    longest = max(range(len(solved)), key=lambda i: solved[i].path.critical_path_ns)
    bounds = others[longest].bounds(solved[longest].path.critical_path_ns)
    graph = attrs.evolve(graph, **_order(graph, solved[longest].domain, bounds))
    loads = [machine_load(trace, domain, host) for domain, host in zip(solved, hosts, strict=True)]
    order = LaneOrder(known=graph.order_known, certain=others[longest].certain_only_ns is None)
    graph = attrs.evolve(graph, on_path=_on_path(trace, solved[longest], copies=include_copies))
    return _summed_up(trace, graph, solved, solved[longest], links, loads, order)


def _host_threads(program: HostProgram) -> int | None:
    """Threads that submitted the work of a process, the most of any: several may submit in another order."""
    known = program.submissions.call >= 0
    if program.calls is None or not bool(known.any()):
        return None
    process = program.nodes.process[known].astype(np.int64)
    pairs = distinct_values(process * program.calls.threads + program.submissions.thread[known])
    return int(np.bincount(pairs // program.calls.threads).max())


def _on_path(trace: Trace, solved: SolvedDomain, *, copies: bool) -> WorkOnPath:
    work, count = solved.domain.work, 0 if trace.copies is None or not copies else len(trace.copies)
    found = WorkOnPath(np.zeros(len(trace.dispatches), np.bool_), np.zeros(count, np.bool_))
    rows = solved.path.rows[solved.path.rows < len(work)]  # behind them come synchronisations
    copied = work.is_copy[rows]
    found.dispatches[work.row[rows[~copied]]] = True
    found.copies[work.row[rows[copied]]] = True
    return found


def _order(graph: ExecutionGraph, domain: Domain, bounds: PathBoundsPart) -> dict[str, Any]:
    """Whether the order of the lanes is known, and what bounds the path if it is not."""
    known = graph.sync_info is not None and order_is_known(domain, graph.sync_info, graph.unresolved)
    if not known:
        longest = max(bounds.all_edges_ns, longest_chain_ns(domain))
        bounds = attrs.evolve(bounds, any_order_ns=longest)
    return {
        "lanes": int(np.count_nonzero(np.bincount(domain.work.lane))),
        "order_known": known,
        "bounds": bounds,
    }


def _summed_up(
    trace: Trace,
    graph: ExecutionGraph,
    solved: list[SolvedDomain],
    longest: SolvedDomain,
    links: LaneLinks,
    loads: list[MachineLoad],
    order: LaneOrder,
) -> ExecutionGraph:
    devices = [device for load in loads for device in load.devices]
    processes = [path for domain in solved for path in process_paths(trace, domain)]
    executed = weigh(longest.graph, "as_executed")
    return attrs.evolve(
        graph,
        edges=count_edges(solved, links),
        inconsistent_edges=sum(domain.graph.inconsistent_edges for domain in solved),
        implied_edges=sum(domain.graph.implied_edges for domain in solved),
        chain_overlaps=sum(domain.graph.overlapping_nodes for domain in solved),
        clock_domains=tuple(load.domain for load in loads),
        devices=tuple(sorted(devices, key=lambda load: -load.total_ns)[:MOST_PARTS]),
        devices_left_out=max(0, len(devices) - MOST_PARTS),
        processes=tuple(sorted(processes, key=lambda path: -path.critical_path_ns)[:MOST_PARTS]),
        processes_left_out=max(0, len(processes) - MOST_PARTS),
        **_path(trace, longest, links, executed),
        **_symbols(longest, executed, loads[solved.index(longest)].domain, order),
    )


def _path(trace: Trace, solved: SolvedDomain, links: LaneLinks, executed: NodeWeights) -> dict[str, Any]:
    """The fields that describe the critical path and what surrounds it."""
    edges_of_path = path_edges(solved, links)
    several = solved.sums.critical_ns.sum() > solved.sums.on_path_ns.sum()
    segments, segments_left_out = path_segments(trace, solved)
    symbol_edges, symbol_edges_left_out = sum_symbol_edges(solved, links)
    return {
        "critical_path_ns": solved.path.critical_path_ns,
        "makespan_ns": solved.graph.makespan_ns,
        "critical_path_count": "several" if several else "one",
        "path_edges": edges_of_path,
        "path_confidence": certain_share(edges_of_path),
        "breakdown": break_down(solved, trace_path(solved.graph, executed)),
        "segments": segments,
        "segments_left_out": segments_left_out,
        "near_paths": find_near_paths(solved),
        "symbol_edges": symbol_edges,
        "symbol_edges_left_out": symbol_edges_left_out,
    }


def _resolved_symbols(solved: SolvedDomain) -> int:
    edges = max(1, solved.graph.edges.size)
    return max(_FEWEST_RESOLVED, min(RESOLVED_SYMBOLS, RESOLVED_SYMBOLS * _EDGES_FOR_ALL // edges))


def _symbols(
    solved: SolvedDomain, executed: NodeWeights, load: ClockDomainPart, lane_order: LaneOrder
) -> dict[str, Any]:
    """The fields that describe symbols, and what making them faster would bring."""
    order = rank_symbols(solved)
    kernels = [i for i in order if solved.sums.symbol[i] < solved.domain.work.kernel_symbols]
    first = order[: _resolved_symbols(solved)]
    if not lane_order.known:
        # The path along what is known says little: what takes the most time may gain the most.
        by_time = sorted(order, key=lambda i: -int(solved.sums.execution_ns[i]))
        first = [order[0], *by_time[: _resolved_symbols(solved)]]
    asked = dict.fromkeys((*first, *kernels[:1]))
    numbers = [int(solved.sums.symbol[i]) for i in asked]
    sums = segment_sums(solved.graph, solved.weights.execution_ns, solved.domain.symbol)
    forecasts = forecast_symbols(solved, executed, numbers, sums, lane_order)
    symbols = symbol_criticality(solved, order, forecasts, find_symbol_slack(solved, numbers, sums))
    shift = find_dominance_shift(solved, numbers[0], sums)
    ranked = rank_forecasts(list(forecasts.values()), {symbol.name: symbol.total_ns for symbol in symbols})
    return {
        "symbols": symbols,
        "forecasts": ranked,
        "gains": rank_gains(ranked, load.idle_ns, load.makespan_ns),
        "dominance": shift.steps,
        "dominance_shift_at": shift.at,
        "dominant_work": _dominant_work(symbols[0], _at_most(forecasts[numbers[0]], load.makespan_ns)),
        **_dominant_kernel(symbols, forecasts, solved),
    }


def _dominant_kernel(
    symbols: tuple[SymbolCriticality, ...], forecasts: Mapping[int, ForecastPart], solved: SolvedDomain
) -> dict[str, Any]:
    dominant = next((symbol for symbol in symbols if symbol.kind == "kernel"), None)
    if dominant is None:
        return {}
    (forecast,) = (f for f in forecasts.values() if (f.name, f.kind) == (dominant.name, dominant.kind))
    return {
        "dominant_symbol": dominant.name,
        "fraction": dominant.criticality_weight,
        "speedup_ceiling": dominant.speedup_ceiling,
        "application_ceiling": dominant.application_ceiling,
        "application_ceiling_at_most": _at_most(forecast, solved.graph.makespan_ns),
    }


def _at_most(forecast: ForecastPart, makespan_ns: int) -> float | None:
    """Speed-up of the application without this under any order of streams; None: known, or no end."""
    free = at_no_cost(forecast)
    if free.application_gain_at_most_ns is None:
        return None
    left = makespan_ns - free.application_gain_at_most_ns
    return makespan_ns / left if left > 0 else None


def _dominant_work(symbol: SymbolCriticality, at_most: float | None) -> DominantWorkPart:
    return DominantWorkPart(
        name=symbol.name,
        kind=symbol.kind,
        fraction=symbol.criticality_weight,
        speedup_ceiling=symbol.speedup_ceiling,
        application_ceiling=symbol.application_ceiling,
        application_ceiling_at_most=at_most,
    )


@frozen
class PathLengths:
    """The longest exec-only path and the longest makespan of any machine; ``None`` without work."""

    critical_path_ns: int | None
    makespan_ns: int | None
    sync_info: SyncInfo | None


def process_lengths(trace: Trace, nodes: WorkNodes) -> dict[int, int]:
    """The longest exec-only path of each process with work, by its index: ``processes`` of ``dag.json``."""
    lengths: dict[int, int] = {}
    for domain in machine_domains(trace, nodes, find_dependencies(trace, nodes)):
        own = distinct_values(domain.work.process).tolist()
        graph = graph_of(domain, domain.trusted_edges())
        if len(own) == 1:
            lengths[own[0]] = path_length(graph, weigh(graph, "exec_only"))
        else:
            paths = solve_domain(domain).process_path_ns
            lengths |= {number: int(paths[number]) for number in own}
    return lengths


def measure_path(trace: Trace, *, include_copies: bool) -> PathLengths:
    """The same lengths as those of ``execution_graph``."""
    nodes = work_nodes(trace, include_copies=include_copies)
    if not len(nodes):
        return PathLengths(None, None, None)
    dependencies = find_dependencies(trace, nodes)
    domains = machine_domains(trace, nodes, dependencies)
    graphs = [graph_of(domain, domain.trusted_edges()) for domain in domains]
    return PathLengths(
        critical_path_ns=max(path_length(graph, weigh(graph, "exec_only")) for graph in graphs),
        makespan_ns=max(graph.makespan_ns for graph in graphs),
        sync_info=dependencies.sync_info,
    )
