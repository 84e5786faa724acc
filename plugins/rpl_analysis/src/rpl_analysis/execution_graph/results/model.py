"""Results of the execution graph. All times in ns; speed-ups are factors, infinity for "costs nothing"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.execution_graph.dependences.all_edges import SyncInfo, Unresolved
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.execution_graph.results.full_columns import GraphColumns
    from rpl_core.model.origin import Origin

__all__ = [
    "ClockDomain",
    "DeviceLoad",
    "DominanceStep",
    "DominantWork",
    "ExecutionGraph",
    "Forecast",
    "Gain",
    "GraphEdges",
    "GraphSegment",
    "GraphSymbol",
    "IdleTime",
    "NearPath",
    "PathBounds",
    "PathBreakdown",
    "PathShare",
    "ProcessPath",
    "SpeedupForecast",
    "SymbolEdge",
]


@frozen
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
    path_ceiling: float | None
    application_ceiling: float | None
    slack_ns: int | None


@frozen
class GraphSegment:
    """Consecutive members of one lane on the critical path."""

    process: int
    agent: int | None
    stream: int | None
    queue: int | None
    first_dispatch: int | None
    last_dispatch: int | None
    nodes: int
    busy_ns: int
    entered_by: str | None


@frozen
class GraphEdges:
    kind: str
    confidence: str
    count: int


@frozen
class IdleTime:
    """Time in which nothing ran, by what the next node waited for.

    See docs/reference/execution-graph.md, 3.5.
    """

    host_ns: int
    sync_ns: int
    launch_ns: int
    unattributed_ns: int


@frozen
class ClockDomain:
    """One machine: its clock is comparable with itself only.

    ``kernel_ns + copy_ns + idle_ns == makespan_ns``; ``copy_ns`` is copies while no kernel ran.
    """

    node: str
    makespan_ns: int
    critical_path_ns: int
    busy_ns: int
    kernel_ns: int
    copy_ns: int
    idle_ns: int
    parallelism: float
    total_ns: int
    overlap_ns: int
    overlap_potential_ns: int
    concurrency: float | None
    idle: IdleTime


@frozen
class DeviceLoad:
    """One GPU between its first and its last node; the times as in ``ClockDomain``."""

    node: str
    agent: int | None
    nodes: int
    total_ns: int
    busy_ns: int
    kernel_ns: int
    copy_ns: int
    idle_ns: int
    concurrency: float | None
    idle: IdleTime


@frozen
class ProcessPath:
    node: str
    process: int
    nodes: int
    critical_path_ns: int
    makespan_ns: int


@frozen
class PathBreakdown:
    """The as-executed path: what the makespan was spent on. The parts add up to it exactly."""

    kernel_ns: int
    copy_ns: int
    launch_gap_ns: int
    host_gap_ns: int
    sync_wait_ns: int


@frozen
class PathBounds:
    """The exec-only path with certain edges alone, and with guesses added; ``None`` if not solved.

    ``any_order_ns``: no path can be longer, whatever waited for what; ``None`` where the order is known.
    """

    certain_only_ns: int
    all_edges_ns: int
    any_order_ns: int | None = None


@frozen
class SpeedupForecast:
    """``speedup`` infinity: the kernel costs nothing. The application is the as-executed graph."""

    speedup: float
    critical_path_ns: int
    application_ns: int
    application_gain_ns: int
    application_speedup: float | None


@frozen
class Forecast:
    """What a faster kernel brings end to end; forecasts are ranked by their gain."""

    name: str
    kind: str
    speedups: tuple[SpeedupForecast, ...]


@frozen
class DominantWork:
    """The kernel or copy direction with the most time on the path.

    ``application_ceiling``: speed-up of the application if it cost nothing, ``None`` if nothing were left.
    ``application_ceiling_at_most``: the same under any order of the streams; ``None`` where it is known.
    """

    name: str
    kind: str
    fraction: float
    speedup_ceiling: float | None
    application_ceiling: float | None
    application_ceiling_at_most: float | None


@frozen
class Gain:
    """What one thing costs the application: ``gain_ns`` less without it. ``kind``: idle, kernel or copy."""

    kind: str
    name: str | None
    gain_ns: int
    application_speedup: float | None


@frozen
class DominanceStep:
    """The dominant kernel or copy once the first dominant one runs ``speedup`` times as fast."""

    speedup: float
    dominant_symbol: str | None
    fraction: float | None


@frozen
class PathShare:
    name: str
    on_path_ns: int


@frozen
class NearPath:
    """The longest path through a symbol that is not on the critical path."""

    through: str
    length_ns: int
    slack_ns: int
    shares: tuple[PathShare, ...]


@frozen
class SymbolEdge:
    """Edges between nodes of two symbols, added up."""

    source: str
    target: str
    kind: str
    count: int
    gap_ns: int


@frozen
class ExecutionGraph:
    """The graph of one timing run. ``reason`` is set instead of everything else when there is none."""

    reason: str | None
    origin: Origin | None = None
    run: int | None = None
    sync_info: SyncInfo | None = None
    nodes: int = 0
    host_syncs: int = 0
    edges: tuple[GraphEdges, ...] = ()
    inconsistent_edges: int = 0
    implied_edges: int = 0
    chain_overlaps: int = 0
    submission_disagreements: int = 0
    unresolved: Unresolved = attrs.field(factory=Unresolved)
    critical_path_ns: int | None = None
    makespan_ns: int | None = None
    dominant_symbol: str | None = None
    fraction: float | None = None
    speedup_ceiling: float | None = None
    application_ceiling: float | None = None
    dominant_work: DominantWork | None = None
    gains: tuple[Gain, ...] = ()
    lanes: int = 0
    order_known: bool = True
    several_paths: bool = False
    bounds: PathBounds | None = None
    path_edges: tuple[GraphEdges, ...] = ()
    path_confidence: float | None = None
    breakdown: PathBreakdown | None = None
    gaps_attributed: bool = False
    domains: tuple[ClockDomain, ...] = ()
    devices: tuple[DeviceLoad, ...] = ()
    devices_left_out: int = 0
    processes: tuple[ProcessPath, ...] = ()
    processes_left_out: int = 0
    segments: tuple[GraphSegment, ...] = ()
    segments_left_out: int = 0
    symbols: tuple[GraphSymbol, ...] = ()
    forecasts: tuple[Forecast, ...] = ()
    dominance: tuple[DominanceStep, ...] = ()
    dominance_shift_at: float | None = None
    near_paths: tuple[NearPath, ...] = ()
    symbol_edges: tuple[SymbolEdge, ...] = ()
    symbol_edges_left_out: int = 0
    columns: GraphColumns | None = None
