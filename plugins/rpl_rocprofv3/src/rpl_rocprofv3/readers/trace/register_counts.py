"""Register counts of gfx950 that can't be true are unknown.

Vector registers are allocated there in granules of 8 per work-item, so arch + accum is a multiple of 8.
SDK releases around ROCm 7.0 report half of the truth (rocpd.md, section 1.2); one impossible count
discredits all counts of the recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_core.model.trace import Agent, Kernel
    from rpl_rocprofv3.readers.findings import Findings

__all__ = ["believable_registers"]

_GRANULE = 8
_MISREPORTED = "gfx950"


def believable_registers(
    kernels: Sequence[Kernel], agents: Sequence[Agent], findings: Findings
) -> tuple[Kernel, ...]:
    """The kernels, without vector register counts if those contradict the architecture."""
    architectures = {agent.architecture for agent in agents if agent.kind == "GPU"}
    if architectures != {_MISREPORTED} or not any(_is_impossible(kernel) for kernel in kernels):
        return tuple(kernels)
    findings.add(
        "kernel.impossible_registers",
        len(kernels),
        "kernels have VGPR counts of which some can't be allocated; all of them count as unknown",
        cause="the profiler release miscounts registers on gfx950",
        remedy="read the counts from the code objects, or record with a newer ROCm",
    )
    return tuple(attrs.evolve(kernel, arch_vgpr=None, accum_vgpr=None) for kernel in kernels)


def _is_impossible(kernel: Kernel) -> bool:
    if kernel.arch_vgpr is None:
        return False
    return (kernel.arch_vgpr + (kernel.accum_vgpr or 0)) % _GRANULE != 0
