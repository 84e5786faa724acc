"""Critical path of a trace: dependency graph, longest path, slack, what-if; pure functions over columns.

Who depends on whom across streams is the caller's knowledge and comes in as edges. Steps: ``build_graph``,
``weigh`` (execution only, or as executed), then ``solve``, ``trace_path``, ``sum_symbols``, ``what_if``,
``dominance_after``. ``merge_intervals`` and ``sum_busy_time`` need no graph.
"""

from __future__ import annotations

from rpl_analysis.critical_path.graph import DEFAULT_TOLERANCE_NS, build_graph
from rpl_analysis.critical_path.intervals import BusyTime, Intervals, merge_intervals, sum_busy_time
from rpl_analysis.critical_path.model import (
    CHAIN_REPAIR,
    PATH_BEGIN,
    CriticalPath,
    CrossEdges,
    DispatchGraph,
    NodeWeights,
    Solution,
    Weighting,
)
from rpl_analysis.critical_path.path import Dominance, dominance_after, dominant_symbol, trace_path
from rpl_analysis.critical_path.solve import solve
from rpl_analysis.critical_path.symbols import SymbolSums, sum_symbols
from rpl_analysis.critical_path.weights import scale_symbol, weigh
from rpl_analysis.critical_path.whatif import Scenario, WhatIf, what_if, what_if_by

__all__ = [
    "CHAIN_REPAIR",
    "DEFAULT_TOLERANCE_NS",
    "PATH_BEGIN",
    "BusyTime",
    "CriticalPath",
    "CrossEdges",
    "DispatchGraph",
    "Dominance",
    "Intervals",
    "NodeWeights",
    "Scenario",
    "Solution",
    "SymbolSums",
    "Weighting",
    "WhatIf",
    "build_graph",
    "dominance_after",
    "dominant_symbol",
    "merge_intervals",
    "scale_symbol",
    "solve",
    "sum_busy_time",
    "sum_symbols",
    "trace_path",
    "weigh",
    "what_if",
    "what_if_by",
]
