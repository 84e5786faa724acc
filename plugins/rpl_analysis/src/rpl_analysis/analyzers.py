"""The analyses that come with the core."""

from __future__ import annotations

from rpl_analysis.bottleneck.analyzer import BottleneckAnalyzer
from rpl_analysis.counters.analyzer import CountersAnalyzer
from rpl_analysis.execution_graph.analyzer import ExecutionGraphAnalyzer
from rpl_analysis.instruction_mix.analyzer import InstructionMixAnalyzer
from rpl_analysis.occupancy.analyzer import OccupancyAnalyzer
from rpl_analysis.occupancy.compiled import CodeOccupancyAnalyzer
from rpl_analysis.roofline.analyzer import RooflineAnalyzer
from rpl_analysis.runtime.analyzer import RuntimeAnalyzer
from rpl_core.interfaces.analyzer import Analyzer


def builtin_analyzers() -> tuple[Analyzer, ...]:
    return (
        RuntimeAnalyzer(),
        OccupancyAnalyzer(),
        CodeOccupancyAnalyzer(),
        CountersAnalyzer(),
        InstructionMixAnalyzer(),
        RooflineAnalyzer(),
        ExecutionGraphAnalyzer(),
        BottleneckAnalyzer(),
    )
