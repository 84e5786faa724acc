"""``analysis.json``: one bottleneck label per kernel with the evidence for it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rpl_analysis.contracts.steps import ConfirmationPart, LabelName, NextStepPart, PriorityPart
from rpl_core.contracts.common import Document, ExactnessName, Part

__all__ = [
    "AnalysisDocument",
    "ConditionEvidence",
    "ConfirmationPart",
    "KernelAnalysis",
    "NextStepPart",
    "PriorityPart",
    "RuleEvidence",
]

Fraction = Annotated[float, Field(ge=0, le=1)]


class ConditionEvidence(Part):
    """One condition of a rule against the value found. ``source`` cites the threshold, or is "chosen".

    ``upper`` is the other end of an interval; ``formula`` says how the value came about, ``note`` what a
    reader must know to use it.
    """

    quantity: str
    comparison: Literal[">=", "<"]
    threshold: float
    source: str
    value: float | None
    holds: bool | None  # null when the value is unknown
    exactness: ExactnessName | None = None
    upper: float | None = None
    formula: str | None = None
    note: str | None = None


class RuleEvidence(Part):
    """A rule with all of its conditions."""

    rule: str
    label: LabelName
    explanation: str
    conditions: tuple[ConditionEvidence, ...]


class KernelAnalysis(Part):
    """What limits one kernel. ``unknown`` lists quantities that no recording provided, with the reason."""

    kernel: str
    time_ms: float | None
    operational_intensity: float | None
    roofline_position: float | None  # achieved / attainable at this intensity, 0..1
    critical_path_score: Fraction | None
    bottleneck: LabelName
    confidence: Literal["high", "medium", "low", "none"]
    reason: str
    evidence: tuple[RuleEvidence, ...] = ()
    near_misses: tuple[RuleEvidence, ...] = ()
    unknown: tuple[str, ...] = ()
    headroom_fraction: Fraction | None = None
    headroom_source: str | None = None
    headroom_reason: str | None = None  # why the fraction is null
    next_steps: tuple[NextStepPart, ...] = ()
    remedy: str | None = None  # the command that records what ``unknown`` lacks
    label_by_active_lanes: LabelName | None = None  # without the work of idle lanes, if that is another


class AnalysisDocument(Document):
    """``extensions`` holds facts of third-party analyzers by name."""

    kernels: tuple[KernelAnalysis, ...] = ()
    next_steps: tuple[PriorityPart, ...] = ()  # ranked by gain
    extensions: dict[str, Any] = Field(default_factory=dict)
