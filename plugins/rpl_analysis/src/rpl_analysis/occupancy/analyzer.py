"""The occupancy analyzer: theoretical occupancy of every kernel from its recorded resources."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from rpl_analysis.occupancy.launch import AllocatedRegisters, LaunchShape
from rpl_analysis.occupancy.limits import architecture_limits
from rpl_analysis.occupancy.model import theoretical_occupancy
from rpl_analysis.occupancy.result import NoOccupancy
from rpl_core.errors import RplError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer

if TYPE_CHECKING:
    from rpl_analysis.occupancy.result import Mode, Occupancy
    from rpl_analysis.runtime.model import KernelTime


class OccupancyAnalyzer(Analyzer):
    """Fact ``"occupancy"``: kernel name -> ``Occupancy``, or ``NoOccupancy`` with the reason."""

    name = "occupancy"
    summary = "theoretical occupancy with its limiter"
    requires = frozenset({"kernel_times"})
    provides = frozenset({"occupancy"})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        times: Mapping[str, KernelTime] = context.facts["kernel_times"]
        architecture = _architecture(context)
        wave_size = _wave_size(context)
        mode: Mode = "llvm" if context.options.occupancy_mode == "llvm" else "hardware"
        found = {name: _occupancy(time, architecture, wave_size, mode) for name, time in times.items()}
        return AnalysisOutcome({"occupancy": found})


def _architecture(context: AnalysisContext) -> str | None:
    if context.device is not None:
        return context.device.architecture
    recorded = {agent.architecture for agent in context.recording.gpu_agents}
    return recorded.pop() if len(recorded) == 1 else None


def _wave_size(context: AnalysisContext) -> int | None:
    if context.device is not None:
        return context.device.wave_size
    recorded = {agent.wave_size for agent in context.recording.gpu_agents}
    return recorded.pop() if len(recorded) == 1 else None


def _occupancy(
    time: KernelTime, architecture: str | None, wave_size: int | None, mode: Mode
) -> Occupancy | NoOccupancy:
    if architecture is None:
        return NoOccupancy("the device is not recorded; name it with --device")
    if wave_size is None:
        return NoOccupancy("the wave size is not recorded; name the device with --device")
    if time.workgroup is None:
        return NoOccupancy("the launch geometry is not recorded")
    resources = time.resources
    try:
        registers = AllocatedRegisters(
            arch_vgprs=resources.arch_vgpr, accum_vgprs=resources.accum_vgpr, sgprs=resources.sgpr
        )
        launch = LaunchShape(
            workgroup_size=prod(time.workgroup), lds_bytes=resources.lds_bytes, wave_size=wave_size
        )
        return theoretical_occupancy(architecture_limits(architecture), registers, launch, mode=mode)
    except RplError as error:  # an unknown architecture, or impossible counts in the recording
        return NoOccupancy(error.fact)
