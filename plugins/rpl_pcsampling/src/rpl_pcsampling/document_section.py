"""``sections.pc_sampling`` of ``profile.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.document import DocumentSection
from rpl_pcsampling.samples import PC_SAMPLES

if TYPE_CHECKING:
    from rpl_core.interfaces.document import DocumentContext
    from rpl_pcsampling.contract import PcSampling

FIELD = "pc_sampling"


class SamplesInProfile(DocumentSection):
    name = "pc-sampling"
    summary = "PC samples by kernel, source line and instruction, with intervals and stall reasons"
    document, field = "profile", FIELD

    def model(self) -> type[PcSampling]:
        from rpl_pcsampling.contract import PcSampling

        return PcSampling

    def draft(self, context: DocumentContext) -> PcSampling | None:
        kernels = [block for blocks in (context.facts.get(PC_SAMPLES) or {}).values() for block in blocks]
        if not kernels:
            return None
        from rpl_pcsampling.analysis.counting import CONFIDENCE, METHOD

        kernels.sort(key=lambda one: (-one.samples, one.kernel or ""))
        return self.model()(confidence=CONFIDENCE, interval=METHOD, kernels=tuple(kernels))
