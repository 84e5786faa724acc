"""CPU time and memory of the critical-path engine, and its ratio to networkx on the same graph in one run.

Synthetic columns (seeded), no files: reading a recording is not measured here. Each case runs in a process
of its own, so that its peak memory is its own. networkx gets the same chains and edges and computes the
length of the longest path only; the engine also gives slack for every node. CPU seconds, best of the rounds.

    python benchmarks/critical_path_engine.py            # 1 M and 5 M nodes, networkx at 100 k
    python benchmarks/critical_path_engine.py --check    # exit 1 if a target is missed
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from rpl_analysis.critical_path import (
    CrossEdges,
    Scenario,
    build_graph,
    solve,
    sum_symbols,
    trace_path,
    weigh,
    what_if,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WHAT_IFS = [Scenario(symbol, speedup) for symbol in range(5) for speedup in (1.5, 2.0, float("inf"))]


@attrs.frozen(kw_only=True)
class Case:
    """Nodes, streams and waits of one measurement; targets in CPU seconds and MB, None for no target."""

    nodes: int
    streams: int
    waits: int
    rounds: int
    most_graph_s: float | None = None
    most_solver_mb: float | None = None
    against_networkx: float | None = None


@attrs.frozen(kw_only=True)
class Figures:
    """CPU seconds per stage, memory above the input columns, and the ratio to networkx where measured."""

    graph_s: float
    as_executed_s: float
    symbols_s: float
    what_if_s: float
    solver_mb: float
    networkx_s: float | None


# Targets: docs/reference/execution-graph.md, 5 (the prototype's graph stage took 0.22, 0.25 and 2.1 CPU-s;
# at least 30 times networkx), 600 MB for 5 M nodes.
CASES = (
    Case(nodes=100_000, streams=8, waits=12_500, rounds=5, against_networkx=30),
    Case(nodes=1_000_000, streams=1, waits=0, rounds=3, most_graph_s=0.22),
    Case(nodes=1_000_000, streams=8, waits=125_000, rounds=3, most_graph_s=0.25),
    Case(nodes=5_000_000, streams=8, waits=625_000, rounds=1, most_graph_s=2.1, most_solver_mb=600),
)


def make_columns(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, CrossEdges, np.ndarray]:
    """Streams of kernels with launch gaps, and waits on nodes of other streams that had just ended."""
    rng = np.random.default_rng(7)
    per_stream = case.nodes // case.streams
    duration = rng.integers(1_000, 50_000, (case.streams, per_stream))
    gap = rng.integers(0, 3_000, (case.streams, per_stream))
    end = np.cumsum(duration + gap, axis=1)
    begin = (end - duration).ravel()
    by_begin = np.argsort(begin, kind="stable")
    chain = np.repeat(np.arange(case.streams, dtype=np.int32), per_stream)[by_begin]
    begin, end = begin[by_begin], end.ravel()[by_begin]
    by_end = np.argsort(end, kind="stable")
    target = np.sort(rng.choice(begin.size, case.waits, replace=False))
    place = np.searchsorted(end[by_end], begin[target], side="right") - 1 - rng.integers(0, 4, case.waits)
    edges = CrossEdges(source=by_end[place[place >= 0]], target=target[place >= 0])
    return chain, begin, end, edges, rng.integers(0, 80, begin.size).astype(np.int32)


def cpu_s(work: Callable[[], object], rounds: int) -> float:
    """Least CPU seconds of ``rounds`` calls."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def measure(case: Case) -> Figures:
    """All stages of one case."""
    chain, begin, end, edges, symbol = make_columns(case)
    # Warm-up on a few nodes: first calls of numpy routines are not the engine's cost.
    solve_nodes(chain[:1000], begin[:1000], end[:1000], CrossEdges.none())
    _reset_peak()
    before_mb = _memory_mb("VmRSS")
    graph_s = cpu_s(lambda: solve_nodes(chain, begin, end, edges), case.rounds)
    graph = build_graph(chain, begin, end, edges)
    as_executed_s = cpu_s(lambda: solve(graph, weigh(graph, "as_executed")), case.rounds)
    weights = weigh(graph, "exec_only")
    solution = solve(graph, weights)
    symbols_s = cpu_s(lambda: sum_symbols(graph, solution, trace_path(graph, weights), symbol), case.rounds)
    what_if_s = cpu_s(lambda: what_if(graph, weights, symbol, WHAT_IFS), case.rounds)
    solver_mb = _memory_mb("VmHWM") - before_mb
    networkx_s = None
    if case.against_networkx is not None:
        networkx_s = cpu_s(lambda: networkx_longest(chain, begin, end, edges), 1)
        assert networkx_longest(chain, begin, end, edges) == trace_path(graph, weights).critical_path_ns
    return Figures(
        graph_s=graph_s,
        as_executed_s=as_executed_s,
        symbols_s=symbols_s,
        what_if_s=what_if_s,
        solver_mb=solver_mb,
        networkx_s=networkx_s,
    )


def solve_nodes(chain: np.ndarray, begin: np.ndarray, end: np.ndarray, edges: CrossEdges) -> None:
    """The graph stage: build, longest path and slack."""
    graph = build_graph(chain, begin, end, edges)
    solve(graph, weigh(graph, "exec_only"))


def networkx_longest(chain: np.ndarray, begin: np.ndarray, end: np.ndarray, edges: CrossEdges) -> int:
    """Length of the longest path by networkx; a node's weight sits on the edges into it."""
    import networkx as nx

    duration = (end - begin).tolist()
    order = np.lexsort((begin, chain)).tolist()
    chain_of = chain.tolist()
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_weighted_edges_from((-1, row, duration[row]) for row in range(chain.size))
    graph.add_weighted_edges_from(
        (u, v, duration[v]) for u, v in itertools.pairwise(order) if chain_of[u] == chain_of[v]
    )
    graph.add_weighted_edges_from(
        (u, v, duration[v]) for u, v in zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    )
    return int(nx.dag_longest_path_length(graph))


def _memory_mb(field: str) -> float:
    """``VmRSS`` (now) or ``VmHWM`` (peak since the last reset) of this process, Linux only."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def _reset_peak() -> None:
    # proc(5): writing 5 sets the peak to what is resident now, so that making the columns does not count.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def missed(case: Case, figures: Figures) -> list[str]:
    """The targets that the figures do not reach, in words."""
    found = []
    if case.most_graph_s is not None and figures.graph_s > case.most_graph_s:
        found.append(f"graph stage {figures.graph_s:.2f} CPU-s > {case.most_graph_s}")
    if case.most_solver_mb is not None and figures.solver_mb > case.most_solver_mb:
        found.append(f"memory {figures.solver_mb:.0f} MB > {case.most_solver_mb:.0f}")
    if case.against_networkx is not None and figures.networkx_s is not None:
        ratio = figures.networkx_s / figures.graph_s
        if ratio < case.against_networkx:
            found.append(f"{ratio:.0f}x networkx < {case.against_networkx:.0f}x")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    check = parser.parse_args().check
    print("CPU seconds; MB is the peak above interpreter and input columns")
    print("  nodes streams   waits | build+CP+slack as executed path+symbols 15 what-ifs |  MB | networkx")
    failures: list[str] = []
    for case in CASES:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            figures = alone.apply(measure, (case,))
        versus = ""
        if figures.networkx_s is not None:
            versus = f"{figures.networkx_s:.2f} s = {figures.networkx_s / figures.graph_s:.0f}x"
        print(
            f"{case.nodes:7d} {case.streams:7d} {case.waits:7d} | {figures.graph_s:14.3f} "
            f"{figures.as_executed_s:11.3f} {figures.symbols_s:12.3f} {figures.what_if_s:11.3f} | "
            f"{figures.solver_mb:3.0f} | {versus}",
            flush=True,
        )
        failures += [f"{case.nodes} nodes, {case.streams} streams: {text}" for text in missed(case, figures)]
    for failure in failures:
        print(f"missed: {failure}")
    return 1 if check and failures else 0


if __name__ == "__main__":
    sys.exit(main())
