"""What the stages of each candidate recorded when they ran, and what had been planned before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

import attrs

from rpl_core.contracts.common import Part
from rpl_core.values import frozen
from rpl_optimize.contracts.ledger import (
    BaselineProfiledData,
    BuiltData,
    CheckedData,
    ContinuedData,
    GuardedData,
    MeasuredData,
    ModelledData,
    PlacementData,
    PlannedData,
    PlannedStage,
    ProposedData,
)
from rpl_optimize.contracts.optimize import EvidencePart, MeasurementPart
from rpl_optimize.ledger.lines import LedgerEntry, LedgerEvent

#: Measurements that come without guards of the hardware.
_ALONE_OR_AGAIN = {LedgerEvent.TIMED_ALONE: "kernel_alone", LedgerEvent.REMEASURED: "remeasurement"}


@frozen
class Begun:
    """What was measured of one program against one version to beat, however often both were built.

    ``parts`` are members of ``EvidencePart`` by their names; ``plans`` those by stage and padding.
    """

    code_sha256: str | None
    base_code_sha256: str | None
    parts: Mapping[str, object] = attrs.field(factory=dict)
    plans: Mapping[tuple[PlannedStage, int | None], PlannedData] = attrs.field(factory=dict)

    @property
    def finished(self) -> tuple[PlannedStage, ...]:
        return tuple(stage for stage in get_args(PlannedStage) if stage in self.parts)

    @property
    def under_way(self) -> tuple[PlannedData, ...]:
        """Planned, with a directory, and without a result; in order."""
        return tuple(p for p in self.plans.values() if p.stage not in self.parts and p.directory is not None)


@attrs.define(eq=False)
class RecordedEvidence:
    """Takes every event in order. A proposal begins a candidate anew, and a build tries it anew.

    What was measured before the build counts on where the ledger says so (``continued``) and both programs
    are the same as then.
    """

    _found: dict[int, EvidencePart] = attrs.field(factory=dict)
    _begun: dict[int, Begun] = attrs.field(factory=dict)
    _base_code: str | None = None

    def of(self, candidate: int) -> EvidencePart:
        """As far as its last attempt came."""
        return self._found.get(candidate, EvidencePart())

    def begun(self, candidate: int) -> Begun | None:
        """What a session that is resumed may go on with."""
        return self._begun.get(candidate)

    def take(self, event: LedgerEvent, data: Part) -> None:
        if isinstance(data, ProposedData):
            self._found[data.candidate] = EvidencePart()
            self._begun.pop(data.candidate, None)
        elif isinstance(data, BaselineProfiledData):
            self._base_code = None if data.build is None else data.build.code_sha256
        elif isinstance(data, BuiltData):
            guards = self.of(data.candidate).source_guards
            self._found[data.candidate] = EvidencePart(source_guards=guards, build=data.build)
            begun, code = self._begun.get(data.candidate), data.build.code_sha256
            programs = None if begun is None else (begun.code_sha256, begun.base_code_sha256)
            if programs != (code, self._base_code):
                self._begun[data.candidate] = Begun(code, self._base_code)
        elif isinstance(data, GuardedData):
            source = event is LedgerEvent.SOURCE_GUARDED
            self._add(data.candidate, **{"source_guards" if source else "binary_guards": data.guards})
        elif isinstance(data, CheckedData):
            self._add(data.candidate, checks=data.checks)
        elif isinstance(data, ModelledData):
            self._add(data.candidate, modelled=data.modelled)
        elif isinstance(data, PlannedData):
            self._take_plan(data)
        elif isinstance(data, ContinuedData):
            begun = self._begun.get(data.candidate)
            self._add(data.candidate, **({} if begun is None else begun.parts))
        else:
            self._take_measured(event, data)

    def _take_measured(self, event: LedgerEvent, data: Part) -> None:
        if isinstance(data, PlacementData):
            self._add_measured(data.candidate, placement=data.placement)
        elif isinstance(data, MeasuredData) and event in _ALONE_OR_AGAIN:
            self._add_measured(data.candidate, **{_ALONE_OR_AGAIN[event]: data.measurement})
        elif isinstance(data, MeasuredData):
            guards = data.architecture_guards
            self._add_measured(data.candidate, measurement=data.measurement, architecture_guards=guards)

    def _take_plan(self, data: PlannedData) -> None:
        begun = self._begun.get(data.candidate)
        if begun is None:
            return
        stays = {"kernel_alone"} if data.stage == "measurement" else {*get_args(PlannedStage)}
        if data.stage != "measurement":  # else all that rests on an earlier one is void
            stays |= {*begun.parts}
        parts = {name: part for name, part in begun.parts.items() if name in stays - {data.stage}}
        plans = {key: plan for key, plan in begun.plans.items() if key[0] in stays}
        plans[data.stage, data.padding_bytes] = data
        self._begun[data.candidate] = attrs.evolve(begun, parts=parts, plans=plans)

    def _add_measured(self, candidate: int, **parts: object) -> None:
        self._add(candidate, **parts)
        begun = self._begun.get(candidate)
        if begun is not None:
            self._begun[candidate] = attrs.evolve(begun, parts={**begun.parts, **parts})

    def _add(self, candidate: int, **parts: object) -> None:
        self._found[candidate] = self.of(candidate).model_copy(update=parts)


# Whatever was measured must have been planned before: rule, order and number of pairs.

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
