"""Theoretical occupancy of compiled kernels, from the registers and LDS that their metadata states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.occupancy.launch import LaunchShape, UsedRegisters
from rpl_analysis.occupancy.model import theoretical_occupancy
from rpl_analysis.occupancy.result import NoOccupancy
from rpl_codeobject.occupancy import CODE_KERNELS, CODE_OCCUPANCY, CodeOccupancy
from rpl_core.errors import RplError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.architecture import Architecture

if TYPE_CHECKING:
    from rpl_codeobject.occupancy import LaunchedKernel
    from rpl_codeobject.values import Kernel

__all__ = ["CodeOccupancyAnalyzer", "compiled_occupancy", "used_registers"]


class CodeOccupancyAnalyzer(Analyzer):
    """Answers whoever states launches of compiled kernels, whatever the recording is."""

    name = "code-occupancy"
    summary = "theoretical occupancy of compiled kernels"
    wants = frozenset({CODE_KERNELS})
    provides = frozenset({CODE_OCCUPANCY})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        launches = context.facts.get(CODE_KERNELS)
        if launches is None:
            return AnalysisOutcome({CODE_OCCUPANCY: None})
        answers = {one: compiled_occupancy(one, context.architecture(one.architecture)) for one in launches}
        return AnalysisOutcome({CODE_OCCUPANCY: answers})


def used_registers(kernel: Kernel, architecture: Architecture) -> UsedRegisters:
    """What the metadata of ``kernel`` counts; its VGPRs hold the AGPRs too where both share a file."""
    limits, agprs = architecture.occupancy, kernel.agprs or 0
    counts_agprs_too = limits is not None and limits.has_accum_vgprs
    arch_vgprs = kernel.vgprs - agprs if counts_agprs_too else kernel.vgprs
    return UsedRegisters(arch_vgprs=arch_vgprs, accum_vgprs=agprs, sgprs=kernel.sgprs)


def compiled_occupancy(launched: LaunchedKernel, architecture: Architecture | None) -> CodeOccupancy:
    """Waves per SIMD in hardware mode, or why there is no figure."""
    known = architecture or Architecture(name=launched.architecture)
    kernel = launched.kernel
    try:
        registers = used_registers(kernel, known)
        shape = LaunchShape(
            workgroup_size=launched.workgroup_size,
            lds_bytes=launched.lds_bytes,
            wave_size=kernel.wavefront_size,
        )
        answer = theoretical_occupancy(known, registers, shape)
    except RplError as error:  # counts that no device has
        return CodeOccupancy(None, reason=error.fact)
    if isinstance(answer, NoOccupancy):
        return CodeOccupancy(None, reason=answer.reason)
    return CodeOccupancy(answer.waves_per_simd, answer.limiter)
