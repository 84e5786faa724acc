"""Edges of a trace by the names of their nodes, so that tests can say what they expect."""

from __future__ import annotations

import networkx as nx
import pytest

from rpl_analysis.execution_graph.dependencies.all_edges import Dependencies, find_dependencies
from rpl_analysis.execution_graph.graph import Confidence, EdgeKind, WorkNodes, work_nodes
from rpl_core.model.trace import Trace
from rpl_testkit.programs import RecordedProgram


class FoundEdges:
    """The dependencies of a trace in which every kernel and copy has a name of its own."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.nodes: WorkNodes = work_nodes(trace, include_copies=True)
        self.found: Dependencies = find_dependencies(trace, self.nodes)

    def name(self, row: int) -> str:
        if row >= len(self.nodes):
            return f"sync {self.found.syncs.call[row - len(self.nodes)]}"
        return self.nodes.symbol_names[self.nodes.symbol[row]]

    def all(self) -> list[tuple[str, str, str, str]]:
        """(source, target, kind, confidence) of every edge between lanes."""
        edges = self.found.edges
        rows = zip(edges.source.tolist(), edges.target.tolist(), edges.kind, edges.confidence, strict=True)
        return [
            (self.name(u), self.name(v), EdgeKind(k).name.lower(), Confidence(c).name.lower())
            for u, v, k, c in rows
        ]

    def of_kind(self, kind: str) -> set[tuple[str, str]]:
        """(source, target) of the edges of one kind."""
        return {(u, v) for u, v, found, _ in self.all() if found == kind}

    def between_lanes(self) -> set[tuple[str, str]]:
        """Edges between lanes as found, host synchronisations replaced by source -> target pairs."""
        edges = {(u, v) for u, v, kind, _ in self.all() if kind != "host_order"}
        into = [(u, v) for u, v in edges if v.startswith("sync ")]
        joined = {(u, w) for u, v in into for sync, w in edges if sync == v}
        return joined | {(u, v) for u, v in edges if not (u + v).count("sync ")}

    def between_work(self) -> set[tuple[str, str]]:
        """Transitive reduction of all dependencies, lanes included, host synchronisations contracted."""
        graph = nx.DiGraph()
        by_lane: dict[int, str] = {}
        for row in range(len(self.nodes)):
            lane = int(self.nodes.lane[row])
            if lane in by_lane:
                graph.add_edge(by_lane[lane], self.name(row))
            by_lane[lane] = self.name(row)
        graph.add_edges_from((u, v) for u, v, _, _ in self.all())
        closure = nx.transitive_closure_dag(graph)
        closure.remove_nodes_from([name for name in graph if name.startswith("sync ")])
        return set(nx.transitive_reduction(closure).edges)


@pytest.fixture
def edges_of():
    """``edges_of(trace)`` or ``edges_of(program)``."""

    def find(recorded: Trace | RecordedProgram) -> FoundEdges:
        return FoundEdges(recorded.trace() if isinstance(recorded, RecordedProgram) else recorded)

    return find


@pytest.fixture
def program() -> RecordedProgram:
    return RecordedProgram()
