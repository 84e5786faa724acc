"""``dag.json``: the execution graph of one run, condensed; it never grows with the dispatch count."""

from __future__ import annotations

from typing import Literal

from rpl_analysis.contracts.graph import (
    BreakdownPart,
    ClockDomainPart,
    DevicePart,
    DominancePart,
    DominantWorkPart,
    EdgeCount,
    ForecastPart,
    Fraction,
    GainPart,
    IdlePart,
    NearPathPart,
    PathBoundsPart,
    PathSegment,
    PathSharePart,
    ProcessPart,
    SpeedupForecastPart,
    SymbolCriticality,
    SymbolEdgePart,
    UnresolvedPart,
)
from rpl_analysis.contracts.record import contract_of
from rpl_core.contracts.common import Document, OriginName

__all__ = [
    "BreakdownPart",
    "ClockDomainPart",
    "DagDocument",
    "DevicePart",
    "DominancePart",
    "DominantWorkPart",
    "EdgeCount",
    "ForecastPart",
    "GainPart",
    "IdlePart",
    "NearPathPart",
    "PathBoundsPart",
    "PathSegment",
    "PathSharePart",
    "ProcessPart",
    "SpeedupForecastPart",
    "SymbolCriticality",
    "SymbolEdgePart",
    "UnresolvedPart",
]


class DagDocument(Document):
    """Exec-only path: the longest sum of dispatch and copy intervals along dependencies."""

    status: Literal["available", "unavailable"]
    reason: str | None = None
    origin: OriginName | None = None
    run: int | None = None  # which timing run was taken (the one with the median runtime)
    range: str | None = None  # --range: only what these ranges launched is in the document; null: all work
    sync_info: Literal["none", "api_names", "api_calls", "measured_events"] | None = None
    nodes: int = 0
    host_syncs: int = 0  # further nodes without duration: returns of synchronising calls
    edges: tuple[EdgeCount, ...] = ()
    inconsistent_edges: int = 0
    implied_edges: int = 0
    chain_overlaps: int = 0
    submission_disagreements: int = 0  # neighbours in a lane that began in another order than submitted
    unresolved: UnresolvedPart = contract_of(UnresolvedPart)()
    critical_path_ns: int | None = None
    makespan_ns: int | None = None
    dominant_symbol: str | None = None
    fraction: Fraction | None = None
    speedup_ceiling: float | None = None  # 1 / (1 - fraction), null at fraction 1
    application_ceiling: float | None = None  # of the application if dominant_symbol cost nothing
    dominant_work: DominantWorkPart | None = None
    gains: tuple[GainPart, ...] = ()  # idle time, kernels and copies in one list, largest first
    lanes: int = 0  # streams, or queues where they stand in, of the machine with the longest path
    order_known: bool = True  # false: waits between these lanes are not (all) in the recording
    critical_path_count: Literal["one", "several"] | None = None
    bounds: PathBoundsPart | None = None
    path_edges: tuple[EdgeCount, ...] = ()
    path_confidence: Fraction | None = None  # share of certain ones among path_edges
    breakdown: BreakdownPart | None = None
    gaps_attributed: bool = False  # false: no API calls, so launch_gap_ns holds the host's part too
    clock_domains: tuple[ClockDomainPart, ...] = ()
    devices: tuple[DevicePart, ...] = ()
    devices_left_out: int = 0
    processes: tuple[ProcessPart, ...] = ()
    processes_left_out: int = 0
    segments: tuple[PathSegment, ...] = ()
    segments_left_out: int = 0
    symbols: tuple[SymbolCriticality, ...] = ()
    forecasts: tuple[ForecastPart, ...] = ()  # ranked by gain at twice the speed
    dominance: tuple[DominancePart, ...] = ()
    dominance_shift_at: float | None = None  # speed-up from which on something else dominates, null: none
    near_paths: tuple[NearPathPart, ...] = ()
    symbol_edges: tuple[SymbolEdgePart, ...] = ()
    symbol_edges_left_out: int = 0
