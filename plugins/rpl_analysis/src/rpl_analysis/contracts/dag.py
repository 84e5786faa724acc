"""``dag.json``: the execution graph of one run, condensed; it never grows with the dispatch count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.contracts.graph import (
    BreakdownPart,
    ClockDomainPart,
    DevicePart,
    DominancePart,
    DominantWorkPart,
    EdgeCount,
    ForecastPart,
    GainPart,
    GraphResult,
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
from rpl_core.contracts.common import Document

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

if TYPE_CHECKING:
    _Fields = GraphResult
else:
    _Fields = contract_of(GraphResult)


class DagDocument(_Fields, Document):
    """Exec-only path: the longest sum of dispatch and copy intervals along dependencies."""
