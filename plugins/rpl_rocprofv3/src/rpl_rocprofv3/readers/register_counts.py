"""Register counts that can't be true are unknown.

On gfx90a, gfx94x and gfx950 vector registers are allocated in granules of 8 per work-item, so arch + accum
is a multiple of 8. SDK releases around ROCm 7.0 report half of the truth on gfx950 (rocpd.md, section 1.2);
one impossible count there discredits all counts of the recording.
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
_UNIFIED = frozenset({"gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"})
_MISREPORTED = "gfx950"


def believable_registers(
    kernels: Sequence[Kernel], agents: Sequence[Agent], findings: Findings
) -> tuple[Kernel, ...]:
    """The kernels without vector register counts that contradict the architecture."""
    architectures = {agent.architecture for agent in agents if agent.kind == "GPU"}
    if len(architectures) != 1 or not architectures <= _UNIFIED:
        return tuple(kernels)
    impossible = [_is_impossible(kernel) for kernel in kernels]
    if _MISREPORTED in architectures and any(impossible):
        impossible = [kernel.arch_vgpr is not None for kernel in kernels]
    findings.add(
        "kernel.impossible_registers",
        sum(impossible),
        "kernels have a VGPR count that the GPU can't allocate; it counts as unknown",
        cause="the profiler release miscounts registers on this architecture",
        remedy="read the count from the code object, or record with a newer ROCm",
    )
    return tuple(
        attrs.evolve(kernel, arch_vgpr=None, accum_vgpr=None) if bad else kernel
        for kernel, bad in zip(kernels, impossible, strict=True)
    )


def _is_impossible(kernel: Kernel) -> bool:
    if kernel.arch_vgpr is None:
        return False
    return (kernel.arch_vgpr + (kernel.accum_vgpr or 0)) % _GRANULE != 0
