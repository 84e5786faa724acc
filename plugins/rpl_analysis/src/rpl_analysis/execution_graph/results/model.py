"""The result of the execution graph; its parts stand in ``contracts.graph``. All times in ns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_analysis.contracts.graph import UnresolvedPart
from rpl_analysis.execution_graph.dependencies.all_edges import SyncInfo
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.contracts.graph import (
        BreakdownPart,
        ClockDomainPart,
        DevicePart,
        DominancePart,
        DominantWorkPart,
        EdgeCount,
        ForecastPart,
        GainPart,
        NearPathPart,
        PathBoundsPart,
        PathSegment,
        ProcessPart,
        SymbolCriticality,
        SymbolEdgePart,
    )
    from rpl_analysis.execution_graph.results.full_columns import GraphColumns
    from rpl_core.model.origin import Origin

__all__ = ["ExecutionGraph"]


@frozen
class ExecutionGraph:
    """The graph of one timing run. ``reason`` is set instead of everything else when there is none."""

    reason: str | None
    origin: Origin | None = None
    run: int | None = None
    sync_info: SyncInfo | None = None
    nodes: int = 0
    host_syncs: int = 0
    edges: tuple[EdgeCount, ...] = ()
    inconsistent_edges: int = 0
    implied_edges: int = 0
    chain_overlaps: int = 0
    submission_disagreements: int = 0
    unresolved: UnresolvedPart = attrs.field(factory=UnresolvedPart)
    critical_path_ns: int | None = None
    makespan_ns: int | None = None
    dominant_symbol: str | None = None
    fraction: float | None = None
    speedup_ceiling: float | None = None
    application_ceiling: float | None = None
    dominant_work: DominantWorkPart | None = None
    gains: tuple[GainPart, ...] = ()
    lanes: int = 0
    order_known: bool = True
    several_paths: bool = False
    bounds: PathBoundsPart | None = None
    path_edges: tuple[EdgeCount, ...] = ()
    path_confidence: float | None = None
    breakdown: BreakdownPart | None = None
    gaps_attributed: bool = False
    domains: tuple[ClockDomainPart, ...] = ()
    devices: tuple[DevicePart, ...] = ()
    devices_left_out: int = 0
    processes: tuple[ProcessPart, ...] = ()
    processes_left_out: int = 0
    segments: tuple[PathSegment, ...] = ()
    segments_left_out: int = 0
    symbols: tuple[SymbolCriticality, ...] = ()
    forecasts: tuple[ForecastPart, ...] = ()
    dominance: tuple[DominancePart, ...] = ()
    dominance_shift_at: float | None = None
    near_paths: tuple[NearPathPart, ...] = ()
    symbol_edges: tuple[SymbolEdgePart, ...] = ()
    symbol_edges_left_out: int = 0
    columns: GraphColumns | None = None
