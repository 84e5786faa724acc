"""The facts that thread traces give, by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rpl_core.interfaces.analyzer import Fact, KernelFigure

if TYPE_CHECKING:
    from rpl_att.contract import AttPart

__all__ = [
    "ATT",
    "DEPENDENCY_WAIT_FRACTION",
    "MFMA_UTILIZATION",
    "TRACE_HEADROOM",
    "VALU_UTILIZATION",
]

#: Kernel name -> block of its most traced dispatch, with the others inside. Kernels by name.
ATT: Fact[Mapping[str, AttPart]] = Fact("att", Mapping)
#: Part of the traced waves' life in which they waited for memory or were idle.
TRACE_HEADROOM = KernelFigure("trace_headroom")
# Under the names of quantities that counters give, too: a trace answers where there are no counters.
DEPENDENCY_WAIT_FRACTION = KernelFigure("dependency_wait_fraction")
VALU_UTILIZATION = KernelFigure("valu_utilization")
MFMA_UTILIZATION = KernelFigure("mfma_utilization")
