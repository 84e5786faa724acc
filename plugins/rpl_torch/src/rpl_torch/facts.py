"""The fact that torch.profiler traces give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.interfaces.analyzer import Fact

if TYPE_CHECKING:
    from rpl_torch.contracts import TorchPart

__all__ = ["TORCH_REPORT"]

#: ``None`` for recordings of other profilers.
TORCH_REPORT: Fact[TorchPart] = Fact("torch")
