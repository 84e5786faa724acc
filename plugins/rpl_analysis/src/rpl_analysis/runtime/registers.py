"""Vector register counts that no GPU of the architecture could allocate are unknown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.model.diagnostic import Diagnostic
from rpl_core.text import counted

if TYPE_CHECKING:
    from rpl_core.model.device import Architecture
    from rpl_core.model.recording import Recording
    from rpl_core.model.trace import Kernel, Trace

__all__ = ["with_believable_registers"]


def with_believable_registers(
    recording: Recording, architecture: Callable[[str], Architecture | None]
) -> tuple[Recording, tuple[Diagnostic, ...]]:
    """``recording`` without vector register counts in traces where some contradict the architecture.

    Some profiler releases record fewer vector registers than a GPU allocates (``RecordQuirks``). A count that
    is no allocation proves it, and then discredits all counts of its trace, whatever reader they came from.
    """
    checked = [_checked(trace, architecture) for trace in recording.traces]
    told = tuple(problem for _, problem in checked if problem is not None)
    return (attrs.evolve(recording, traces=tuple(t for t, _ in checked)) if told else recording), told


def _checked(
    trace: Trace, architecture: Callable[[str], Architecture | None]
) -> tuple[Trace, Diagnostic | None]:
    names = {agent.architecture for agent in trace.agents if agent.kind == "GPU"}
    name = names.pop() if len(names) == 1 else None
    facts = architecture(name) if name is not None else None
    if facts is None or not facts.record_quirks.vgprs_may_be_halved:
        return trace, None
    granule = facts.record_quirks.vgpr_granule
    if granule is None or not any(_is_impossible(kernel, granule) for kernel in trace.kernels):
        return trace, None
    kernels = tuple(attrs.evolve(kernel, arch_vgpr=None, accum_vgpr=None) for kernel in trace.kernels)
    return attrs.evolve(trace, kernels=kernels), _told(trace, facts)


def _is_impossible(kernel: Kernel, granule: int) -> bool:
    if kernel.arch_vgpr is None:
        return False
    return (kernel.arch_vgpr + (kernel.accum_vgpr or 0)) % granule != 0


def _told(trace: Trace, facts: Architecture) -> Diagnostic:
    count = len(trace.kernels)
    return Diagnostic(
        "kernel.impossible_registers",
        f"{counted(count, 'kernel has', 'kernels have')} VGPR counts of which some can't be "
        "allocated; all of them count as unknown",
        cause=f"the profiler release miscounts registers on {facts.name}",
        remedy="read the counts from the code objects, or record with a newer profiler",
        where=Path(trace.source.paths[-1]).name if trace.source.paths else None,
        count=count,
    )
