"""Next steps as values."""

from __future__ import annotations

from collections.abc import Mapping

from rpl_analysis.contracts.analysis import NextStepPart, PriorityPart
from rpl_core.values import frozen


@frozen
class NextSteps:
    """``remedies`` are the commands that record what rules could not be tested without, by kernel."""

    priorities: tuple[PriorityPart, ...]
    kernels: Mapping[str, tuple[NextStepPart, ...]]
    remedies: Mapping[str, str]
