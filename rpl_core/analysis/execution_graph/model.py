"""Results of the execution graph. All times in ns; exec-only weighting (dispatch and copy intervals)."""

from __future__ import annotations

import attrs

from rpl_core.model.origin import Origin


@attrs.frozen
class GraphSymbol:
    """A kernel (or copy direction) on the graph, see ``contracts.dag.SymbolCriticality``."""

    name: str
    kind: str  # "kernel" or "copy"
    nodes: int
    total_ns: int
    on_path_ns: int
    criticality_weight: float
    min_slack_ns: int
    median_slack_ns: int
    critical_nodes: int
    speedup_ceiling: float | None


@attrs.frozen
class GraphSegment:
    """Consecutive members of one chain on the critical path."""

    process: int
    agent: int | None
    stream: int | None
    queue: int | None
    first_dispatch: int | None
    last_dispatch: int | None
    nodes: int
    busy_ns: int


@attrs.frozen
class GraphEdges:
    kind: str
    confidence: str
    count: int


@attrs.frozen
class ClockDomain:
    """One machine: its clock is comparable with itself only."""

    node: str
    makespan_ns: int
    critical_path_ns: int
    busy_ns: int
    idle_ns: int
    parallelism: float


@attrs.frozen
class ExecutionGraph:
    """The graph of one timing run. ``reason`` is set instead of everything else when there is none."""

    reason: str | None
    origin: Origin | None = None
    run: int | None = None
    sync_info: str | None = None
    nodes: int = 0
    edges: tuple[GraphEdges, ...] = ()
    inconsistent_edges: int = 0
    chain_overlaps: int = 0
    critical_path_ns: int | None = None
    makespan_ns: int | None = None
    dominant_symbol: str | None = None
    fraction: float | None = None
    speedup_ceiling: float | None = None
    several_paths: bool = False
    domains: tuple[ClockDomain, ...] = ()
    segments: tuple[GraphSegment, ...] = ()
    segments_left_out: int = 0
    symbols: tuple[GraphSymbol, ...] = ()
