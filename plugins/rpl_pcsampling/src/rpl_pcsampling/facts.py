"""What PC samples give to others: facts by key, and ``sections.pc_sampling`` of ``profile.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_core.interfaces.document import DocumentSection
from rpl_core.interfaces.fact import Fact, KernelFigure
from rpl_pcsampling.samples import STALL_REASONS

if TYPE_CHECKING:
    from rpl_core.interfaces.document import DocumentContext
    from rpl_pcsampling.contract import PcSampling, SampledKernel

#: Kernel name -> its samples, the most sampled first; of samples without a kernel under the empty name.
PC_SAMPLES: Fact[Mapping[str, tuple[SampledKernel, ...]]] = Fact("pc_samples", Mapping)
#: Part of the samples of a kernel in which the wave issued its instruction.
SAMPLED_ISSUE = KernelFigure("sampled_issue_fraction")
#: Stall reason -> part of the samples in which the wave did not issue for it: ``sampled_waitcnt_fraction``...
SAMPLED_STALLS: Mapping[str, KernelFigure] = {
    reason: KernelFigure(f"sampled_{reason}_fraction") for reason in STALL_REASONS[1:]
}


FIELD = "pc_sampling"


class SamplesInProfile(DocumentSection):
    name = "pc-sampling"
    summary = "PC samples by kernel, source line and instruction, with intervals and stall reasons"
    document, field = "profile", FIELD

    def model(self) -> type[PcSampling]:
        from rpl_pcsampling.contract import PcSampling

        return PcSampling

    def draft(self, context: DocumentContext) -> PcSampling | None:
        kernels = [one for blocks in (context.facts.get(PC_SAMPLES) or {}).values() for one in blocks]
        if not kernels:
            return None
        from rpl_pcsampling.analysis.counting import CONFIDENCE, METHOD

        kernels.sort(key=lambda one: (-one.samples, one.kernel or ""))
        return self.model()(confidence=CONFIDENCE, interval=METHOD, kernels=tuple(kernels))
