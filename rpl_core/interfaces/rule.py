"""Classifier rules as data: conditions on quantities, so that evidence and near-misses are generic."""

from __future__ import annotations

from enum import Enum

import attrs


class BottleneckLabel(str, Enum):
    """The frozen label identifiers of ``analysis.json``."""

    MEMORY_BANDWIDTH_BOUND = "memory_bandwidth_bound"
    LATENCY_BOUND = "latency_bound"
    UNDER_OCCUPIED = "under_occupied"
    DIVERGENCE_LIMITED = "divergence_limited"
    COMPUTE_THROUGHPUT_LIMITED = "compute_throughput_limited"
    UNCLASSIFIED = "unclassified"


class Comparison(str, Enum):
    AT_LEAST = ">="
    BELOW = "<"


@attrs.frozen
class Condition:
    """``quantity comparison threshold``; ``source`` cites the threshold or is the word "chosen"."""

    quantity: str
    comparison: Comparison
    threshold: float
    source: str

    def holds(self, value: float) -> bool:
        if self.comparison is Comparison.AT_LEAST:
            return value >= self.threshold
        return value < self.threshold


@attrs.frozen
class Rule:
    """All ``conditions`` must hold. Rules apply in the order of (-priority, plugin, id); the first wins.

    ``corroborates`` names a rule of the same label that looks at the same limit by a figure that is more
    often known. Where that rule was decided, this one being untestable costs one step of confidence only.
    """

    id: str
    label: BottleneckLabel
    priority: int
    conditions: tuple[Condition, ...]
    explanation: str
    corroborates: str | None = None
