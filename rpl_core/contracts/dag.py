"""``dag.json``: the execution graph of one run, condensed; it never grows with the dispatch count."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rpl_core.contracts.common import Document, OriginName, Part

Fraction = Annotated[float, Field(ge=0, le=1)]


class PathSegment(Part):
    """Consecutive nodes of the critical path in one chain; ids are dispatch ids of their process."""

    process: int  # OS pid
    agent: int | None
    stream: int | None  # stream id, or null where queues stand in for streams
    queue: int | None = None
    first_dispatch: int | None  # null for a segment of copies only
    last_dispatch: int | None
    nodes: int
    busy_ns: int


class SymbolCriticality(Part):
    """A kernel or copy direction; ``criticality_weight`` is its share of the critical path."""

    name: str
    kind: Literal["kernel", "copy"]
    nodes: int
    total_ns: int
    on_path_ns: int
    criticality_weight: Fraction
    min_slack_ns: int
    median_slack_ns: int
    critical_nodes: int
    speedup_ceiling: float | None = None  # re-solved with this kernel at zero time; null if unbounded


class EdgeCount(Part):
    kind: str
    confidence: Literal["certain", "probable", "guess"]
    count: int


class ClockDomainPart(Part):
    """One node (machine) of the run; time stamps of different nodes never meet."""

    node: str
    makespan_ns: int
    critical_path_ns: int
    busy_ns: int  # union of all dispatches and copies
    idle_ns: int
    parallelism: float


class DagDocument(Document):
    """Exec-only path: the longest sum of dispatch and copy intervals along dependences."""

    status: Literal["available", "unavailable"]
    reason: str | None = None
    origin: OriginName | None = None
    run: int | None = None  # which timing run was taken (the one with the median runtime)
    sync_info: Literal["none", "api_calls", "measured_events"] | None = None
    nodes: int = 0
    edges: tuple[EdgeCount, ...] = ()
    inconsistent_edges: int = 0
    chain_overlaps: int = 0
    critical_path_ns: int | None = None
    makespan_ns: int | None = None
    dominant_symbol: str | None = None
    fraction: Fraction | None = None
    speedup_ceiling: float | None = None  # 1 / (1 - fraction), null at fraction 1
    critical_path_count: Literal["one", "several"] | None = None
    clock_domains: tuple[ClockDomainPart, ...] = ()
    segments: tuple[PathSegment, ...] = ()
    segments_left_out: int = 0
    symbols: tuple[SymbolCriticality, ...] = ()
