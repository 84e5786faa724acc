"""The analyzer of instruction mixes: code at hand in, the packed share of every recorded kernel out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_analysis.facts import INSTRUCTION_MIX
from rpl_analysis.instruction_mix.mix import KernelMix, mix_of
from rpl_codeobject.kernel_code import KERNEL_CODE
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rpl_analysis.instruction_mix.mix import NoMix
    from rpl_codeobject.kernel_code import KernelCode
    from rpl_core.model.recording import Recording

__all__ = ["InstructionMixAnalyzer"]


class InstructionMixAnalyzer(Analyzer):
    """Fact ``INSTRUCTION_MIX``: kernel name -> ``KernelMix`` or ``NoMix``; ``None`` without code at hand.

    Needs the fact ``KERNEL_CODE`` of rpl-codeobject.
    """

    name = "instruction-mix"
    summary = "the packed share of each kernel's arithmetic, from code objects at hand"
    requires = frozenset({KERNEL_CODE})
    provides = frozenset({INSTRUCTION_MIX})

    def analyze(self, context: AnalysisContext) -> AnalysisOutcome:
        codes = context.facts[KERNEL_CODE]
        if not codes:
            return AnalysisOutcome({INSTRUCTION_MIX: None})
        architectures = _architectures(context)
        mixes = {
            name: mix_of(name, symbols, architectures, codes)
            for name, symbols in sorted(_symbols(context.recording).items())
        }
        return AnalysisOutcome({INSTRUCTION_MIX: mixes}, _findings(mixes, codes))


def _symbols(recording: Recording) -> Mapping[str, set[str]]:
    """Displayed name -> symbols; several kernels may share a name."""
    by_name: dict[str, set[str]] = {}
    for trace in recording.traces:
        for kernel in trace.kernels:
            symbols = by_name.setdefault(kernel.name, set())
            if kernel.symbol is not None:
                symbols.add(kernel.symbol)
    return by_name


def _architectures(context: AnalysisContext) -> set[str]:
    recorded = {agent.architecture for agent in context.recording.gpu_agents if agent.architecture}
    if not recorded and context.device is not None:
        recorded = {context.device.architecture}
    return {name.partition(":")[0] for name in recorded}


def _findings(mixes: Mapping[str, KernelMix | NoMix], codes: Sequence[KernelCode]) -> tuple[Diagnostic, ...]:
    if not mixes or any(isinstance(mix, KernelMix) for mix in mixes.values()):
        return ()
    files = ", ".join(sorted({code.source for code in codes}))
    first = next(mix for mix in mixes.values() if not isinstance(mix, KernelMix))
    return (
        Diagnostic(
            "code.no_match",
            f"the code objects at hand ({files}) tell nothing about the recorded kernels: {first.reason}",
            cause="they belong to another build or another GPU",
            remedy="name the file that was recorded with --code-object",
        ),
    )
