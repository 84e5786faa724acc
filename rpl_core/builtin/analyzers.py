"""The analyses that come with the core."""

from __future__ import annotations

from rpl_core.analysis.bottleneck.analyzer import BottleneckAnalyzer
from rpl_core.analysis.counters.analyzer import CountersAnalyzer
from rpl_core.analysis.execution_graph.analyzer import ExecutionGraphAnalyzer
from rpl_core.analysis.instruction_mix.analyzer import InstructionMixAnalyzer
from rpl_core.analysis.occupancy.analyzer import OccupancyAnalyzer
from rpl_core.analysis.roofline.analyzer import RooflineAnalyzer
from rpl_core.analysis.runtime.analyzer import RuntimeAnalyzer
from rpl_core.interfaces.analyzer import Analyzer


def builtin_analyzers() -> tuple[Analyzer, ...]:
    return (
        RuntimeAnalyzer(),
        OccupancyAnalyzer(),
        CountersAnalyzer(),
        InstructionMixAnalyzer(),
        RooflineAnalyzer(),
        ExecutionGraphAnalyzer(),
        BottleneckAnalyzer(),
    )
