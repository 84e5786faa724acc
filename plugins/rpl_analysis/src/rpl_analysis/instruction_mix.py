"""What code objects tell about a recorded kernel.

Its code is found by symbol where that was recorded, else by the whole displayed name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_analysis.facts import INSTRUCTION_MIX
from rpl_codeobject.kernel_code import KERNEL_CODE, PackedMix, code_of
from rpl_core.interfaces.analyzer import AnalysisContext, AnalysisOutcome, Analyzer
from rpl_core.model.diagnostic import Diagnostic
from rpl_core.values import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rpl_codeobject.kernel_code import KernelCode
    from rpl_core.model.recording import Recording


@frozen
class KernelMix:
    """The packed share by data type of a recorded kernel, and the file it was read from."""

    packed: Mapping[str, PackedMix]
    source: str


@frozen
class NoMix:
    """Code objects were at hand, but tell nothing about this kernel, for ``reason``."""

    reason: str


def mix_of(
    name: str, symbols: Collection[str], architectures: Collection[str], codes: Sequence[KernelCode]
) -> KernelMix | NoMix:
    """The mix of the kernel displayed as ``name``; an empty ``architectures`` accepts code of any.

    Several code objects may hold it, as long as they agree.
    """
    named = code_of(name, symbols, codes)
    if not named:
        return NoMix("no code object at hand has this kernel")
    fitting = [code for code in named if not architectures or code.architecture in architectures]
    if not fitting:
        others = ", ".join(sorted({code.architecture for code in named}))
        return NoMix(f"the code objects at hand have this kernel for {others} only")
    if any(code.calls_functions for code in fitting):
        return NoMix("its code calls functions that were not inlined, whose arithmetic is not in sight")
    if any(code.packed != fitting[0].packed for code in fitting):
        files = ", ".join(sorted({code.source for code in fitting}))
        return NoMix(f"code objects at hand differ in this kernel ({files})")
    return KernelMix(fitting[0].packed, fitting[0].source)


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
