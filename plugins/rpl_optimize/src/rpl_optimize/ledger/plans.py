"""Whatever was measured must have been planned before: rule, order and number of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from rpl_optimize.contracts.ledger import (
    BuiltData,
    ContinuedData,
    MeasuredData,
    PlacementData,
    PlannedData,
)
from rpl_optimize.ledger.events import LedgerEvent
from rpl_optimize.ledger.recorded_evidence import RecordedEvidence

if TYPE_CHECKING:
    from rpl_core.contracts.common import Part
    from rpl_optimize.contracts.ledger import PlannedStage
    from rpl_optimize.contracts.optimize import MeasurementPart
    from rpl_optimize.ledger.line import LedgerEntry

#: A plan by its candidate, its stage and the padding of the code.
_Key = tuple[int, str, int | None]


_STAGES: Mapping[LedgerEvent, PlannedStage] = {
    LedgerEvent.TIMED_ALONE: "kernel_alone",
    LedgerEvent.MEASURED: "measurement",
    LedgerEvent.REMEASURED: "remeasurement",
}


def seed_after(sha256: str) -> int:
    """The seed of the plan behind the line with this hash."""
    return int(sha256[:8], 16)


@attrs.define(eq=False)
class Plans:
    """Takes every event in order, after ``recorded`` took it, and says what is wrong with each.

    A build makes a candidate's plans void, unless what was begun of the same program is gone on with.
    """

    _recorded: RecordedEvidence
    _pairs: dict[_Key, int] = attrs.field(factory=dict)
    _plans: dict[_Key, PlannedData] = attrs.field(factory=dict)

    def take(self, entry: LedgerEntry, data: Part) -> Iterator[str]:
        if isinstance(data, BuiltData):
            self._plans = {key: plan for key, plan in self._plans.items() if key[0] != data.candidate}
        elif isinstance(data, PlannedData):
            if data.seed != seed_after(entry.previous_sha256):
                yield f"the order of candidate {data.candidate} does not follow from the line before"
            key = (data.candidate, data.stage, data.padding_bytes)
            self._plans[key] = data
            self._pairs.pop(key, None)
        elif isinstance(data, ContinuedData):
            yield from self._take_continued(data)
        elif isinstance(data, MeasuredData):
            yield from self._check((data.candidate, _STAGES[entry.event], None), data.measurement)
        elif isinstance(data, PlacementData):
            for shift in data.placement.shifts:
                place = (data.candidate, "placement", shift.padding_bytes)
                yield from self._check(place, shift.measurement)

    def _take_continued(self, data: ContinuedData) -> Iterator[str]:
        begun = self._recorded.begun(data.candidate)
        plans = {} if begun is None else begun.plans
        self._plans.update({(data.candidate, *key): plan for key, plan in plans.items()})
        if data.under_way is None:
            return
        key = (data.candidate, data.under_way, data.padding_bytes)
        plan = self._plans.get(key)
        if plan is None or plan.directory != data.directory:
            yield f"the {data.under_way} of candidate {data.candidate} goes on, and was not begun before"
        if data.pairs < self._pairs.get(key, 0):
            yield f"the {data.under_way} of candidate {data.candidate} lost pairs while it was interrupted"
        self._pairs[key] = data.pairs

    def _check(self, key: _Key, part: MeasurementPart) -> Iterator[str]:
        plan = self._plans.get(key)
        # Sessions of older versions planned nothing, and what was not run needs no plan.
        unplanned = part.seed is None and not part.rule.screening and key[1] != "placement"
        if plan is None:
            if not unplanned:
                yield f"the {key[1]} of candidate {key[0]} was not planned before"
        elif (part.seed, part.rule) != (plan.seed, plan.rule):
            yield f"the {key[1]} of candidate {key[0]} is not the one that was planned"
        elif part.problem is None and len(part.log_ratios) < self._pairs.get(key, 0):
            yield f"the {key[1]} of candidate {key[0]} lost pairs while it was interrupted"
