"""Solve the graph of one trace: chains by stream, longest path, slack and weight per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_core.analysis.critical_path.graph import build_graph
from rpl_core.analysis.critical_path.intervals import sum_busy_time
from rpl_core.analysis.critical_path.path import trace_path
from rpl_core.analysis.critical_path.solve import solve
from rpl_core.analysis.critical_path.symbols import SymbolSums, sum_symbols
from rpl_core.analysis.critical_path.weights import weigh
from rpl_core.analysis.critical_path.whatif import Scenario, what_if
from rpl_core.analysis.execution_graph.model import ClockDomain, ExecutionGraph, GraphEdges, GraphSymbol
from rpl_core.analysis.execution_graph.nodes import WorkNodes, work_nodes
from rpl_core.analysis.execution_graph.segments import path_segments
from rpl_core.analysis.runtime.grouping import DurationGroups, group_durations

if TYPE_CHECKING:
    from rpl_core.analysis.critical_path.model import CriticalPath, DispatchGraph, NodeWeights, Solution
    from rpl_core.model.trace import Trace

#: Symbols whose ceiling is found by solving again; the rest of the list can gain less (chosen).
RESOLVED_SYMBOLS = 15


@attrs.frozen(eq=False)
class _SolvedDomain:
    """The graph of one clock domain, solved in the exec-only weighting."""

    node: str
    work: WorkNodes
    graph: DispatchGraph
    weights: NodeWeights
    solution: Solution
    path: CriticalPath
    sums: SymbolSums


def execution_graph(trace: Trace, run: int, *, include_copies: bool) -> ExecutionGraph:
    """The graph of ``trace``, which is timing run number ``run``.

    Machines are solved apart, since their clocks do not compare; path, segments and symbols are those of
    the machine with the longest path.
    """
    work = work_nodes(trace, include_copies=include_copies)
    if not len(work):
        return ExecutionGraph(reason="no dispatch with usable times was recorded")
    domains = [_solve(node, part) for node, part in _by_machine(trace, work)]
    longest = max(domains, key=lambda d: d.path.critical_path_ns)
    symbols = _symbols(longest)
    dominant = next((symbol for symbol in symbols if symbol.kind == "kernel"), None)
    segments, left_out = path_segments(trace, longest.work, longest.path)
    return ExecutionGraph(
        reason=None,
        origin=trace.origin,
        run=run,
        sync_info="none",
        nodes=len(work),
        edges=_edges(domains, work),
        inconsistent_edges=sum(d.graph.inconsistent_edges for d in domains),
        chain_overlaps=sum(d.graph.overlapping_nodes for d in domains),
        critical_path_ns=longest.path.critical_path_ns,
        makespan_ns=longest.graph.makespan_ns,
        dominant_symbol=dominant.name if dominant else None,
        fraction=dominant.criticality_weight if dominant else None,
        speedup_ceiling=_static_ceiling(longest, dominant),
        several_paths=bool(longest.sums.critical_ns.sum() > longest.sums.on_path_ns.sum()),
        domains=tuple(_domain(d) for d in domains),
        segments=segments,
        segments_left_out=left_out,
        symbols=symbols,
    )


def _by_machine(trace: Trace, work: WorkNodes) -> list[tuple[str, WorkNodes]]:
    machines = sorted({process.node for process in trace.processes})
    if len(machines) < 2:
        return [(machines[0] if machines else "", work)]
    number = {machine: i for i, machine in enumerate(machines)}
    of_process = np.array([number[process.node] for process in trace.processes], dtype=np.int32)
    of_row = of_process[work.process]
    parts = [(machine, work.pick(of_row == i)) for i, machine in enumerate(machines)]
    return [(machine, part) for machine, part in parts if len(part)]


def _solve(node: str, work: WorkNodes) -> _SolvedDomain:
    graph = build_graph(work.chain(), work.begin_ns, work.end_ns)
    weights = weigh(graph, "exec_only")
    solution = solve(graph, weights)
    path = trace_path(graph, weights)
    return _SolvedDomain(
        node, work, graph, weights, solution, path, sum_symbols(graph, solution, path, work.symbol)
    )


def _symbols(domain: _SolvedDomain) -> tuple[GraphSymbol, ...]:
    """All symbols of the graph: by weight, then total time, then name."""
    sums, work = domain.sums, domain.work
    length = max(domain.path.critical_path_ns, 1)
    slack = group_durations(work.symbol, domain.solution.slack_ns, len(work.symbol_names))
    order = sorted(
        range(sums.symbol.size),
        key=lambda i: (
            -int(sums.on_path_ns[i]),
            -int(sums.execution_ns[i]),
            work.symbol_names[sums.symbol[i]],
        ),
    )
    ceilings = _ceilings(domain, [int(sums.symbol[i]) for i in order[:RESOLVED_SYMBOLS]])
    return tuple(_symbol(domain, i, length, slack, ceilings) for i in order)


def _symbol(
    domain: _SolvedDomain,
    index: int,
    length: int,
    slack: DurationGroups,
    ceilings: dict[int, float | None],
) -> GraphSymbol:
    sums, work = domain.sums, domain.work
    number = int(sums.symbol[index])
    of_symbol = slack.group(number)
    return GraphSymbol(
        name=work.symbol_names[number],
        kind="kernel" if number < work.kernel_symbols else "copy",
        nodes=int(sums.nodes[index]),
        total_ns=int(sums.execution_ns[index]),
        on_path_ns=int(sums.on_path_ns[index]),
        criticality_weight=int(sums.on_path_ns[index]) / length,
        min_slack_ns=int(sums.min_slack_ns[index]),
        median_slack_ns=int(of_symbol[(of_symbol.size - 1) // 2]),
        critical_nodes=int(np.searchsorted(of_symbol, 0, side="right")),
        speedup_ceiling=ceilings.get(number),
    )


def _ceilings(domain: _SolvedDomain, symbols: list[int]) -> dict[int, float | None]:
    """What making each symbol free would bring, by solving again."""
    scenarios = [Scenario(symbol, float("inf")) for symbol in symbols]
    answers = what_if(domain.graph, domain.weights, domain.work.symbol, scenarios)
    return {answer.scenario.symbol: answer.application_speedup for answer in answers}


def _static_ceiling(domain: _SolvedDomain, dominant: GraphSymbol | None) -> float | None:
    """1 / (1 - f) of the dominant kernel; ``None`` when it is the whole path."""
    if dominant is None:
        return None
    rest = domain.path.critical_path_ns - dominant.on_path_ns
    return domain.path.critical_path_ns / rest if rest else None


def _edges(domains: list[_SolvedDomain], work: WorkNodes) -> tuple[GraphEdges, ...]:
    chains = sum(int(np.unique(d.work.chain()).size) for d in domains)
    kind, confidence = ("queue", "probable") if work.by_queue else ("stream", "certain")
    return (GraphEdges(kind, confidence, len(work) - chains),)


def _domain(domain: _SolvedDomain) -> ClockDomain:
    busy = sum_busy_time(domain.work.begin_ns, domain.work.end_ns)
    return ClockDomain(
        node=domain.node,
        makespan_ns=domain.graph.makespan_ns,
        critical_path_ns=domain.path.critical_path_ns,
        busy_ns=busy.busy_ns,
        idle_ns=busy.idle_ns,
        parallelism=busy.parallelism(domain.path.critical_path_ns) or 0.0,
    )
