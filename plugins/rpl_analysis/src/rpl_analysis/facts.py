"""The facts that rpl-analysis gives, as typed keys. Mappings are by the kernel's displayed name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_core.interfaces.analyzer import Fact

if TYPE_CHECKING:
    from rpl_analysis.advice import NextSteps
    from rpl_analysis.bottleneck import Classification
    from rpl_analysis.contracts.profile import PhasesPart, RanksPart
    from rpl_analysis.contracts.roofline import RooflineResult
    from rpl_analysis.counters.quantities import KernelCounters, KernelQuantities
    from rpl_analysis.execution_graph.results.model import ExecutionGraph
    from rpl_analysis.instruction_mix import KernelMix, NoMix
    from rpl_analysis.runtime.timing import ApplicationTime, KernelTime
    from rpl_codeobject.occupancy import NoOccupancy, Occupancy

__all__ = [
    "APPLICATION_TIME",
    "BOTTLENECKS",
    "EXECUTION_GRAPH",
    "INSTRUCTION_MIX",
    "KERNEL_COUNTERS",
    "KERNEL_QUANTITIES",
    "KERNEL_TIMES",
    "NEXT_STEPS",
    "OCCUPANCY",
    "PHASES",
    "RANKS",
    "ROOFLINE",
]

#: Times and resources, in descending order of time.
KERNEL_TIMES: Fact[Mapping[str, KernelTime]] = Fact("kernel_times", Mapping)
APPLICATION_TIME: Fact[ApplicationTime] = Fact("application_time")
OCCUPANCY: Fact[Mapping[str, Occupancy | NoOccupancy]] = Fact("occupancy", Mapping)
#: ``None`` when no counter pass was recorded.
KERNEL_COUNTERS: Fact[Mapping[str, KernelCounters]] = Fact("kernel_counters", Mapping)
#: ``None`` also when the device is unknown.
KERNEL_QUANTITIES: Fact[Mapping[str, KernelQuantities]] = Fact("kernel_quantities", Mapping)
#: ``None`` without code at hand.
INSTRUCTION_MIX: Fact[Mapping[str, KernelMix | NoMix]] = Fact("instruction_mix", Mapping)
ROOFLINE: Fact[RooflineResult] = Fact("roofline")
EXECUTION_GRAPH: Fact[ExecutionGraph] = Fact("execution_graph")
#: ``None`` where nothing was timed.
RANKS: Fact[RanksPart] = Fact("ranks")
#: ``None`` where the application marked no range.
PHASES: Fact[PhasesPart] = Fact("phases")
BOTTLENECKS: Fact[Mapping[str, Classification]] = Fact("bottlenecks", Mapping)
NEXT_STEPS: Fact[NextSteps] = Fact("next_steps")
