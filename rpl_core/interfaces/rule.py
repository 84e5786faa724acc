"""Classifier rules as data: conditions on quantities, so that evidence and near-misses are generic."""

from __future__ import annotations

import re
from enum import Enum

import attrs

from rpl_core.values import frozen

#: What a label of a plugin looks like: its own name, a colon, the label.
_OF_PLUGIN = re.compile(r"[a-z0-9][a-z0-9_-]*:[a-z0-9_]+")


class BottleneckLabel(str, Enum):
    """The frozen label identifiers of ``analysis.json``. Plugins add labels such as ``"myplugin:label"``."""

    MEMORY_BANDWIDTH_BOUND = "memory_bandwidth_bound"
    LATENCY_BOUND = "latency_bound"
    UNDER_OCCUPIED = "under_occupied"
    DIVERGENCE_LIMITED = "divergence_limited"
    COMPUTE_THROUGHPUT_LIMITED = "compute_throughput_limited"
    UNCLASSIFIED = "unclassified"


def label_name(label: BottleneckLabel | str) -> str:
    """The identifier as documents hold it."""
    return label.value if isinstance(label, BottleneckLabel) else label


def _label(value: BottleneckLabel | str) -> BottleneckLabel | str:
    """One of the frozen labels as its member; others as they are."""
    try:
        return BottleneckLabel(value)
    except ValueError:
        return value


class Comparison(str, Enum):
    AT_LEAST = ">="
    BELOW = "<"


@frozen
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


@frozen
class Rule:
    """All ``conditions`` must hold. Rules apply in the order of (-priority, plugin, id); the first wins.

    ``corroborates`` names a rule of the same label that looks at the same limit by a figure that is more
    often known. Where that rule was decided, this one being untestable costs one step of confidence only.

    A rule that can't be tested for lack of a figure is named among the unknown and changes nothing else,
    unless it is ``required``: then weaker labels are less sure of themselves.
    """

    id: str
    label: BottleneckLabel | str = attrs.field(converter=_label)
    priority: int
    conditions: tuple[Condition, ...] = attrs.field()
    explanation: str
    corroborates: str | None = None
    required: bool = False

    @label.validator
    def _known_or_namespaced(self, _attribute: object, value: BottleneckLabel | str) -> None:
        if not isinstance(value, BottleneckLabel) and not (
            isinstance(value, str) and _OF_PLUGIN.fullmatch(value)
        ):
            raise ValueError(f"the label {value!r} is neither one of the frozen ones nor plugin:label")

    @conditions.validator
    def _has_conditions(self, _attribute: object, value: tuple[Condition, ...]) -> None:
        if not value:
            raise ValueError("a rule needs conditions, or it would always win")
