"""What the classifier says about a kernel."""

from __future__ import annotations

from rpl_analysis.contracts.analysis import Confidence
from rpl_analysis.interfaces import BottleneckLabel, Condition, Rule
from rpl_core.model.metric import Metric
from rpl_core.values import frozen


@frozen
class TestedCondition:
    """A condition with the figure it was tested against; ``holds`` is ``None`` when that is unknown."""

    condition: Condition
    metric: Metric
    holds: bool | None


@frozen
class TestedRule:
    rule: Rule
    conditions: tuple[TestedCondition, ...]

    @property
    def holds(self) -> bool | None:
        """False as soon as one condition fails, None while one is unknown, True when all hold."""
        results = [tested.holds for tested in self.conditions]
        if False in results:
            return False
        return None if None in results else True


@frozen
class Classification:
    """The label of one kernel. ``unknown`` says which quantities were not recorded, and why.

    ``headroom_reason`` says why ``headroom_fraction`` is unknown. ``label_by_active_lanes`` is the label
    without the work of idle lanes, where that is another one.
    """

    kernel: str
    label: BottleneckLabel | str
    confidence: Confidence
    reason: str
    evidence: tuple[TestedRule, ...]
    near_misses: tuple[TestedRule, ...]
    unknown: tuple[str, ...]
    headroom_fraction: float | None
    headroom_source: str | None
    headroom_reason: str | None = None
    label_by_active_lanes: BottleneckLabel | str | None = None
