"""``analysis.json``, declared once: a bottleneck label per kernel with its evidence, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from attrs import field

from rpl_analysis.contracts import Limited, document_of, record
from rpl_analysis.interfaces import Comparison
from rpl_core.model.metric import Exactness

Fraction = Annotated[float, Limited(ge=0, le=1)]

#: One of the frozen identifiers, or one of a plugin ("myplugin:label").
LabelName = Annotated[
    str,
    Limited(
        pattern="^(memory_bandwidth_bound|latency_bound|under_occupied|divergence_limited"
        "|compute_throughput_limited|unclassified|[a-z0-9][a-z0-9_-]*:[a-z0-9_]+)$"
    ),
]


@record
class ConfirmationPart:
    """A quantity that tells whether a step is right, as far as it is known, and the counters that give it."""

    quantity: str
    value: float | None
    unit: str | None
    exactness: Exactness | None
    counters: tuple[str, ...]
    upper: float | None = None  # of an interval


@record
class NextStepPart:
    """What to do next. ``{command}`` in ``command`` stands for the user's own."""

    advice: str
    text: str
    confirm: tuple[ConfirmationPart, ...]
    command: str | None
    source: str


@record
class PriorityPart:
    """What to look at first: ``gain_ns`` is what the run saves if ``subject`` takes half its time.

    Where the order of streams is unknown it is the lower end, and ``gain_at_most_ns`` the upper one. An entry
    without ``share`` comes first: it names the recording that closes such ranges, and its upper end is the
    width of the widest.
    """

    subject: str
    kind: Literal["kernel", "application"]
    label: LabelName | None
    gain_ns: int
    share: float | None  # gain_ns of the makespan
    steps: tuple[NextStepPart, ...]
    gain_at_most_ns: int | None = None
    share_at_most: float | None = None  # gain_at_most_ns of the makespan


class Confidence(str, Enum):
    """From the evidence present.

    HIGH: every condition that decided is exact, and no stronger rule of another label was left open. MEDIUM:
    some deciding figure is a bound or an estimate, or a stronger rule narrowly fails by one, or it could not
    be tested but the rule that it corroborates was. LOW: a stronger rule of another label could not be
    tested for lack of data. NONE: unclassified.
    """

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NONE = "none"


@record
class ConditionEvidence:
    """One condition of a rule against the value found. ``source`` cites the threshold, or is "chosen".

    ``upper`` is the other end of an interval; ``formula`` says how the value came about, ``note`` what a
    reader must know to use it.
    """

    quantity: str
    comparison: Comparison
    threshold: float
    source: str
    value: float | None
    holds: bool | None  # null when the value is unknown
    exactness: Exactness | None = None
    upper: float | None = None
    formula: str | None = None
    note: str | None = None


@record
class RuleEvidence:
    """A rule with all of its conditions."""

    rule: str
    label: LabelName
    explanation: str
    conditions: tuple[ConditionEvidence, ...]


@record(kw_only=True)
class KernelAnalysis:
    """What limits one kernel. ``unknown`` lists quantities that no recording provided, with the reason."""

    kernel: str
    time_ms: float | None
    operational_intensity: float | None
    roofline_position: float | None  # achieved / attainable at this intensity, 0..1
    critical_path_score: Fraction | None
    bottleneck: LabelName
    confidence: Confidence
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


@record(kw_only=True)
class KernelLabels:
    """``extensions`` holds facts of third-party analyzers by name."""

    kernels: tuple[KernelAnalysis, ...] = ()
    next_steps: tuple[PriorityPart, ...] = ()  # ranked by gain
    extensions: Mapping[str, Any] = field(factory=dict)


if TYPE_CHECKING:
    from rpl_core.contracts.common import Document

    class AnalysisDocument(KernelLabels, Document):
        """``analysis.json`` as it is read back."""


def __getattr__(name: str) -> Any:
    if name == "AnalysisDocument":
        return document_of(KernelLabels, name)
    raise AttributeError(name)
