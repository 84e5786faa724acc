"""The facts that PC samples give, by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_core.interfaces.fact import Fact, KernelFigure
from rpl_pcsampling.samples import STALL_REASONS

if TYPE_CHECKING:
    from rpl_pcsampling.contract import SampledKernel

__all__ = ["PC_SAMPLES", "SAMPLED_ISSUE", "SAMPLED_STALLS"]

#: Kernel name -> its samples, the most sampled first; of samples without a kernel under the empty name.
PC_SAMPLES: Fact[Mapping[str, tuple[SampledKernel, ...]]] = Fact("pc_samples", Mapping)
#: Part of the samples of a kernel in which the wave issued its instruction.
SAMPLED_ISSUE = KernelFigure("sampled_issue_fraction")
#: Stall reason -> part of the samples in which the wave did not issue for it: ``sampled_waitcnt_fraction``...
SAMPLED_STALLS: Mapping[str, KernelFigure] = {
    reason: KernelFigure(f"sampled_{reason}_fraction") for reason in STALL_REASONS[1:]
}
