"""The occupancy analyzer: theoretical occupancy of every kernel from its recorded resources."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from rpl_analysis.architecture import architecture_name, architecture_of
from rpl_analysis.facts import KERNEL_TIMES, OCCUPANCY
from rpl_analysis.occupancy.launch import AllocatedRegisters, LaunchShape
from rpl_analysis.occupancy.model import theoretical_occupancy
from rpl_analysis.occupancy.result import NoOccupancy
from rpl_analysis.options import OCCUPANCY_MODE
from rpl_core.errors import RplError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.architecture import Architecture

if TYPE_CHECKING:
    from rpl_analysis.occupancy.result import Mode, Occupancy
    from rpl_analysis.runtime.model import KernelTime


class OccupancyAnalyzer(Analyzer):
    """Fact ``OCCUPANCY``: kernel name -> ``Occupancy``, or ``NoOccupancy`` with the reason."""

    name = "occupancy"
    summary = "theoretical occupancy with its limiter"
    requires = frozenset({KERNEL_TIMES})
    provides = frozenset({OCCUPANCY})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        times: Mapping[str, KernelTime] = context.facts[KERNEL_TIMES]
        name = architecture_name(context)
        # Nobody may know the architecture, which is then one without limits.
        architecture = None if name is None else architecture_of(context) or Architecture(name=name)
        wave_size = _wave_size(context)
        mode: Mode = "llvm" if context.options[OCCUPANCY_MODE] == "llvm" else "hardware"
        occupancies = {name: _occupancy(time, architecture, wave_size, mode) for name, time in times.items()}
        return AnalysisOutcome({OCCUPANCY: occupancies})


def _wave_size(context: AnalysisContext) -> int | None:
    if context.device is not None:
        return context.device.wave_size
    recorded = {agent.wave_size for agent in context.recording.gpu_agents}
    return recorded.pop() if len(recorded) == 1 else None


def _occupancy(
    time: KernelTime, architecture: Architecture | None, wave_size: int | None, mode: Mode
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
        return theoretical_occupancy(architecture, registers, launch, mode=mode)
    except RplError as error:  # impossible counts in the recording
        return NoOccupancy(error.fact)
