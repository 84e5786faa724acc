"""What was decided must follow from the verdicts and be done to the sources that were judged.

And every candidate must have been measured by a rule that its session may use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from rpl_optimize.contracts.ledger import (
    AcceptedData,
    BaselineProfiledData,
    FinishedData,
    JudgedData,
    PlannedData,
    ProposedData,
    RolledBackData,
    SessionStartedData,
    TargetChosenData,
    WrittenData,
)
from rpl_optimize.measurement.gains import gains_of
from rpl_optimize.measurement.rule import rule_for
from rpl_optimize.measurement.verdict import session_verdict

if TYPE_CHECKING:
    from rpl_core.contracts.common import Part
    from rpl_optimize.contracts.optimize import MeasurementPart, VerdictName


#: Relative: other builds of numpy may round the last digits differently.
_SAME_FIGURE = 1e-9
_ROUNDING = 1e-12


@attrs.define(eq=False)
class Decisions:
    """Takes every event in order and says what is wrong with each."""

    _source_sha256: str | None = None  # the version to beat
    _most: int | None = None  # --max-iters
    _proposed: dict[int, ProposedData] = attrs.field(factory=dict)
    _judged: dict[int, JudgedData] = attrs.field(factory=dict)
    _decided: dict[int, VerdictName] = attrs.field(factory=dict)
    _accepted: dict[int, str] = attrs.field(factory=dict)

    def take(self, data: Part) -> Iterator[str]:
        if isinstance(data, SessionStartedData):
            most = data.options.get("max_iters")
            self._source_sha256 = data.source_sha256
            self._most = most if isinstance(most, int) else None
        elif isinstance(data, BaselineProfiledData):
            if data.source_sha256 != self._source_sha256:
                yield f"baseline {data.number} is not the version to beat"
        elif isinstance(data, ProposedData):
            yield from self._take_proposed(data)
        elif isinstance(data, JudgedData):
            self._judged[data.candidate] = data
        elif isinstance(data, AcceptedData):
            yield from self._take_accepted(data)
        elif isinstance(data, RolledBackData):
            yield from self._take_rolled_back(data)
        elif isinstance(data, WrittenData):
            if self._accepted.get(data.candidate) != data.sha256:
                yield f"what was written is not the accepted source of candidate {data.candidate}"
        elif isinstance(data, FinishedData) and data.verdict is not None:
            verdict = session_verdict(self._decided.values())
            if data.verdict != verdict:
                yield f"the session ends {data.verdict}, {verdict} by its candidates"

    def _take_proposed(self, data: ProposedData) -> Iterator[str]:
        self._proposed[data.candidate] = data
        self._judged.pop(data.candidate, None)
        if data.candidate in self._decided:
            yield f"candidate {data.candidate} was decided before"
        if self._most is not None and data.candidate > self._most:
            yield f"candidate {data.candidate} is more than the {self._most} that share the error"
        if data.baseline_sha256 not in (None, self._source_sha256):
            yield f"candidate {data.candidate} does not change the version to beat"

    def _take_accepted(self, data: AcceptedData) -> Iterator[str]:
        number, judged = data.candidate, self._judged.get(data.candidate)
        if judged is None or judged.judgement.verdict != "accepted" or number in self._decided:
            yield f"candidate {number} is accepted without such a verdict before"
        proposed = self._proposed.get(number)
        if proposed is not None and proposed.source_sha256 != data.source_sha256:
            yield f"the accepted source is not the one proposed as candidate {number}"
        if judged is not None and not _same_gains(data, judged):
            yield f"the gains of candidate {number} are not those of its fresh measurement"
        self._decided[number], self._accepted[number] = "accepted", data.source_sha256
        self._source_sha256 = data.source_sha256

    def _take_rolled_back(self, data: RolledBackData) -> Iterator[str]:
        judged = self._judged.get(data.candidate)
        verdict = None if judged is None else judged.judgement.verdict
        # The user may decline what the evidence accepts.
        declined = (verdict, data.verdict) == ("accepted", "rejected")
        if (data.verdict != verdict and not declined) or data.candidate in self._decided:
            yield f"candidate {data.candidate} is rolled back without such a verdict before"
        self._decided[data.candidate] = data.verdict


def _same_gains(data: AcceptedData, judged: JudgedData) -> bool:
    """Predicted gains can't be worked out again without the baseline's recording."""
    fresh = judged.evidence.remeasurement
    if fresh is None:
        return data.kernel_gain is None and data.measured_gain is None
    try:
        again = gains_of(fresh)
    except OverflowError:  # ratios that no two times have
        return False
    pairs = (
        (data.kernel_gain, again.kernel),
        (data.kernel_gain_interval, again.kernel_interval),
        (data.measured_gain, again.application),
    )
    return all(recorded is None or alike(recorded, worked_out) for recorded, worked_out in pairs)


def alike(left: Any, right: Any) -> bool:
    """Equal, numbers up to rounding; mappings and tuples by their members."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=_SAME_FIGURE, abs_tol=_SAME_FIGURE)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(alike, left, right))
    return bool(left == right)


@attrs.define(eq=False)
class SharedError:
    """Whether the error is shared among all candidates and the least gain is large enough.

    Takes every event in order. Sessions that did not record their options are not judged by them."""

    _candidates: int = 1
    _limited: bool = False  # the session recorded how many
    _min_improvement: float = 0.0
    _targets: dict[str, TargetChosenData] = attrs.field(factory=dict)
    #: What was known when a candidate's measurement was planned: a resumed session profiles again, and goes
    #: on by the rule that it began with.
    _planned_for: dict[tuple[int, bool], dict[str, TargetChosenData]] = attrs.field(factory=dict)
    _begun: int = 0

    def take(self, data: Part) -> Iterator[str]:
        if isinstance(data, SessionStartedData):
            most, least = data.options.get("max_iters"), data.options.get("min_improvement")
            self._candidates = most if isinstance(most, int) else 1
            self._limited = isinstance(most, int)
            self._min_improvement = least if isinstance(least, float) else 0.0
        elif isinstance(data, TargetChosenData) and data.kernel is not None:
            self._targets[data.kernel] = data
        elif isinstance(data, PlannedData) and data.stage in ("measurement", "kernel_alone"):
            alone = data.stage == "kernel_alone"
            self._planned_for[data.candidate, alone] = dict(self._targets)
            self._begun += not alone
            if not alone and self._limited and self._begun > self._candidates:
                yield f"{self._begun} measurements were begun, and {self._candidates} share the error"
        elif isinstance(data, JudgedData):
            evidence, placed = data.evidence, data.evidence.placement
            shifts = () if placed is None else tuple(shift.measurement for shift in placed.shifts)
            parts = (evidence.measurement, evidence.remeasurement, *shifts)
            allowed = (
                *(self._allows(part, data.candidate) for part in parts if part is not None),
                evidence.kernel_alone is None
                or self._allows(evidence.kernel_alone, data.candidate, alone=True),
            )
            if not all(allowed):
                yield f"candidate {data.candidate} was measured by a laxer rule than its session's"

    def _allows(self, part: MeasurementPart, candidate: int, *, alone: bool = False) -> bool:
        if part.problem is not None:
            return True
        target = self._planned_for.get((candidate, alone), self._targets).get(part.kernel)
        share, cv = (None, None) if target is None else (target.ceiling_gain, target.base_cv)
        least = rule_for(self._min_improvement, share, self._candidates, cv)
        if least is None:
            return False
        return (
            part.rule.alpha <= least.alpha + _ROUNDING
            and part.rule.least_gain >= least.least_gain - _ROUNDING
            and part.rule.futile_gain >= least.futile_gain - _ROUNDING
        )
