"""The occupancy analyzer: theoretical occupancy of every kernel from its recorded resources.

Where kernels of an architecture may have waves of several sizes, each kernel has its own: its code object
tells it, or the number of waves that were counted. Where neither does, an occupancy that is the same for all
sizes is the answer, and else the figures of all of them are the reason for having none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import attrs

from rpl_analysis.facts import KERNEL_QUANTITIES, KERNEL_TIMES, OCCUPANCY
from rpl_analysis.options import OCCUPANCY_MODE
from rpl_codeobject.kernel_code import KERNEL_CODE, Kernel, code_of
from rpl_codeobject.occupancy import (
    AllocatedRegisters,
    LaunchShape,
    Mode,
    NoOccupancy,
    Occupancy,
    UsedRegisters,
    theoretical_occupancy,
    used_registers,
)
from rpl_core.errors import RplError
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.device import Architecture
from rpl_core.values import frozen

if TYPE_CHECKING:
    from rpl_analysis.runtime.timing import KernelTime


class OccupancyAnalyzer(Analyzer):
    """Fact ``OCCUPANCY``: kernel name -> ``Occupancy``, or ``NoOccupancy`` with the reason."""

    name = "occupancy"
    summary = "theoretical occupancy with its limiter"
    requires = frozenset({KERNEL_TIMES})
    wants = frozenset({KERNEL_CODE, KERNEL_QUANTITIES})
    provides = frozenset({OCCUPANCY})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        times: Mapping[str, KernelTime] = context.facts[KERNEL_TIMES]
        name = architecture_name(context)
        # Nobody may know the architecture, which is then one without limits.
        architecture = None if name is None else architecture_of(context) or Architecture(name=name)
        wave_size = _wave_size(context)
        mode: Mode = "llvm" if context.options[OCCUPANCY_MODE] == "llvm" else "hardware"
        compiled = _compiled(context, times, architecture)
        waves = _counted_waves(context, times)
        occupancies = {
            name: _occupancy(
                _Kernel(time, compiled.get(name), waves.get(name)), architecture, wave_size, mode
            )
            for name, time in times.items()
        }
        return AnalysisOutcome({OCCUPANCY: occupancies})


@frozen
class _Kernel:
    """A recorded kernel, its metadata where its code is at hand, and its waves per launch if counted."""

    time: KernelTime
    compiled: Kernel | None
    waves: float | None


def _wave_size(context: AnalysisContext) -> int | None:
    if context.device is not None:
        return context.device.wave_size
    recorded = {agent.wave_size for agent in context.recording.gpu_agents}
    return recorded.pop() if len(recorded) == 1 else None


def _compiled(
    context: AnalysisContext, times: Mapping[str, KernelTime], architecture: Architecture | None
) -> Mapping[str, Kernel]:
    """Metadata of kernels whose code is at hand, if all code of a kernel states the same."""
    codes = context.facts.get(KERNEL_CODE) or ()
    if not codes or architecture is None:
        return {}
    compiled = {}
    for name in times:
        symbols = {
            kernel.symbol
            for trace in context.recording.traces
            for kernel in trace.kernels
            if kernel.name == name and kernel.symbol is not None
        }
        of_kernel = [code for code in code_of(name, symbols, codes) if code.architecture == architecture.name]
        stated = [code.metadata for code in of_kernel if code.metadata is not None]
        if stated and all(_resources(other) == _resources(stated[0]) for other in stated[1:]):
            compiled[name] = stated[0]
    return compiled


def _resources(kernel: Kernel) -> tuple[int | None, ...]:
    mode = kernel.workgroup_processor_mode
    return (kernel.vgprs, kernel.agprs, kernel.sgprs, kernel.wavefront_size, mode)


def _counted_waves(context: AnalysisContext, times: Mapping[str, KernelTime]) -> Mapping[str, float]:
    """Waves per launch of kernels that were launched in one shape only."""
    quantities = context.facts.get(KERNEL_QUANTITIES) or {}
    waves_of = {}
    for name, time in times.items():
        waves = quantities[name].per_launch("waves") if name in quantities else None
        if waves is not None and waves.value is not None and time.shape_count == 1:
            waves_of[name] = waves.value
    return waves_of


def _occupancy(
    kernel: _Kernel, architecture: Architecture | None, wave_size: int | None, mode: Mode
) -> Occupancy | NoOccupancy:
    if architecture is None:
        return NoOccupancy("the device is not recorded; name it with --device")
    if wave_size is None:
        return NoOccupancy("the wave size is not recorded; name the device with --device")
    if kernel.time.workgroup is None:
        return NoOccupancy("the launch geometry is not recorded")
    sizes = _wave_sizes(kernel, architecture, wave_size)
    try:
        answers = {size: _of_size(kernel, architecture, size, mode) for size in sizes}
    except RplError as error:  # impossible counts in the recording
        return NoOccupancy(error.fact)
    return answers[sizes[0]] if len(sizes) == 1 else _whatever_the_size(answers)


def _wave_sizes(kernel: _Kernel, architecture: Architecture, wave_size: int) -> Sequence[int]:
    """Sizes that the waves of this kernel may have, ``wave_size`` where the architecture offers no choice."""
    limits = architecture.occupancy
    offered = [] if limits is None else [file.wave_size for file in limits.register_files]
    if len(offered) < 2:
        return [wave_size]
    if kernel.compiled is not None:
        return [kernel.compiled.wavefront_size]
    return [size for size in offered if kernel.waves == _launched(kernel.time, size)] or offered


def _launched(time: KernelTime, wave_size: int) -> float | None:
    """Waves of one launch, if they have that size."""
    if time.grid is None or time.workgroup is None:
        return None
    groups = prod(-(-g // max(w, 1)) for g, w in zip(time.grid, time.workgroup, strict=True))
    return float(groups * -(-prod(time.workgroup) // wave_size))


def _of_size(
    kernel: _Kernel, architecture: Architecture, wave_size: int, mode: Mode
) -> Occupancy | NoOccupancy:
    assert kernel.time.workgroup is not None, "or refused before"
    compiled = kernel.compiled
    launch = LaunchShape(
        workgroup_size=prod(kernel.time.workgroup),
        lds_bytes=kernel.time.resources.lds_bytes,
        wave_size=wave_size,
        cumode=compiled is not None and compiled.workgroup_processor_mode == 0,
    )
    return theoretical_occupancy(architecture, _registers(kernel, architecture), launch, mode=mode)


def _registers(kernel: _Kernel, architecture: Architecture) -> AllocatedRegisters | UsedRegisters:
    """As recorded; as compiled where a record is unknown, or known not to tell."""
    resources = kernel.time.resources
    mistrusted = architecture.record_quirks.vgprs_may_be_halved and not resources.accum_vgpr
    if kernel.compiled is not None and (resources.arch_vgpr is None or mistrusted):
        return used_registers(kernel.compiled, architecture)
    return AllocatedRegisters(
        arch_vgprs=resources.arch_vgpr, accum_vgprs=resources.accum_vgpr, sgprs=resources.sgpr
    )


def _whatever_the_size(answers: Mapping[int, Occupancy | NoOccupancy]) -> Occupancy | NoOccupancy:
    """The one answer for all wave sizes, or the reason for having none."""
    known = {size: answer for size, answer in answers.items() if isinstance(answer, Occupancy)}
    if len(known) < len(answers):
        return next(answer for answer in answers.values() if isinstance(answer, NoOccupancy))
    first = next(iter(known.values()))
    if all(answer.fraction == first.fraction for answer in known.values()):
        return attrs.evolve(first, wave_size=None)
    low, high = (pick(answer.fraction for answer in known.values()) for pick in (min, max))
    figures = ", ".join(f"{answer.fraction:.0%} with waves of {size} lanes" for size, answer in known.items())
    return NoOccupancy(
        f"between {low:.0%} and {high:.0%}, because the wave size of this kernel is not recorded: {figures};"
        " its code object tells (--code-object)",
        between=(low, high),
    )


# The facts of the architecture that a recording was made on, from the device or from any plugin.


def architecture_name(context: AnalysisContext) -> str | None:
    """That of the device, or the only one recorded; ``None`` if there are none or several."""
    if context.device is not None:
        return context.device.architecture
    recorded = {agent.architecture for agent in context.recording.gpu_agents}
    return recorded.pop() if len(recorded) == 1 else None


def architecture_of(context: AnalysisContext) -> Architecture | None:
    """What the device says of its architecture, else what an installed plugin knows by its name."""
    if context.device is not None and context.device.architecture_facts is not None:
        return context.device.architecture_facts
    name = architecture_name(context)
    return None if name is None else context.architecture(name)
