"""Random schedules and two oracles: networkx for longest paths, plain Python for chains that overlap."""

from __future__ import annotations

import itertools
import random
from typing import Any

import attrs
import networkx as nx
import numpy as np
import pytest

from rpl_analysis.critical_path import CrossEdges, DispatchGraph, build_graph


@attrs.frozen
class Schedule:
    """Rows (chain, begin, end) and cross edges (source row, target row, lag)."""

    rows: list[tuple[int, int, int]]
    edges: list[tuple[int, int, int]]

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        table = np.array(self.rows, dtype=np.int64).reshape(-1, 3)
        return table[:, 0].astype(np.int32), table[:, 1].copy(), table[:, 2].copy()

    def cross_edges(self) -> CrossEdges:
        table = np.array(self.edges, dtype=np.int64).reshape(-1, 3)
        return CrossEdges(source=table[:, 0], target=table[:, 1], lag_ns=table[:, 2])

    def graph(self, **options: Any) -> DispatchGraph:
        return build_graph(*self.columns(), self.cross_edges(), **options)

    def dependencies(self) -> list[tuple[int, int, int]]:
        """Chain successions and cross edges of a schedule whose chains do not overlap."""
        by_chain = sorted(range(len(self.rows)), key=lambda row: (*self.rows[row], row))
        chain = [(u, v, 0) for u, v in itertools.pairwise(by_chain) if self.rows[u][0] == self.rows[v][0]]
        return chain + self.edges


def _consistent(rng: random.Random) -> Schedule:
    """Chains without overlap, zero durations and equal times included; edges that hold without tolerance."""
    chains, scale = rng.randint(1, 5), rng.choice([1, 3, 50, 5000])
    clock = [0] * chains
    rows = []
    for _ in range(rng.randint(1, 40)):
        chain = rng.randrange(chains)
        begin = clock[chain] + rng.choice([0, rng.randint(0, scale)])
        clock[chain] = begin + rng.choice([0, rng.randint(0, scale)])
        rows.append((chain, begin, clock[chain]))
    rng.shuffle(rows)
    schedule = Schedule(rows, [])
    graph = nx.DiGraph([(u, v) for u, v, _ in schedule.dependencies()])
    graph.add_nodes_from(range(len(rows)))
    for _ in range(rng.randint(0, 2 * len(rows))):
        u, v = rng.randrange(len(rows)), rng.randrange(len(rows))
        if u != v and rows[u][2] <= rows[v][1] and not nx.has_path(graph, v, u):
            graph.add_edge(u, v)
            schedule.edges.append((u, v, rng.choice([0, rng.randint(0, scale)])))
    return schedule


def _wild(rng: random.Random) -> Schedule:
    """Anything goes: overlapping chains, edges back in time, cycles, duplicates, self-loops."""
    count, scale = rng.randint(1, 30), rng.choice([2, 20, 3000])
    rows = []
    for _ in range(count):
        begin = rng.randint(0, scale)
        rows.append((rng.randrange(3), begin, begin + rng.choice([0, rng.randint(0, scale)])))
    edges = [(rng.randrange(count), rng.randrange(count), rng.randint(0, 9)) for _ in range(2 * count)]
    return Schedule(rows, edges)


def _longest(weights: list[int], edges: list[tuple[int, int, int]]) -> tuple[list[int], list[int], list[int]]:
    """Heads, tails and slack over a networkx graph, node by node."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(weights)))
    for u, v, lag in edges:
        known = graph.edges[u, v]["lag"] if graph.has_edge(u, v) else 0
        graph.add_edge(u, v, lag=max(lag, known))
    order = list(nx.topological_sort(graph))
    head, tail = [0] * len(weights), [0] * len(weights)
    for v in order:
        head[v] = weights[v] + max((head[u] + lag for u, _, lag in graph.in_edges(v, data="lag")), default=0)
    for v in reversed(order):
        tail[v] = weights[v] + max((tail[x] + lag for _, x, lag in graph.out_edges(v, data="lag")), default=0)
    longest = max(head, default=0)
    return head, tail, [longest - (h + t - w) for h, t, w in zip(head, tail, weights, strict=True)]


@pytest.fixture
def consistent_schedule():
    return _consistent


@pytest.fixture
def wild_schedule():
    return _wild


@pytest.fixture
def longest_paths():
    return _longest


@pytest.fixture
def schedule():
    """Builder: ``schedule([(chain, begin, end), ...], [(source, target, lag), ...])``."""

    def build(rows, edges=()) -> Schedule:
        return Schedule(list(rows), [(*edge, 0)[:3] for edge in edges])

    return build
