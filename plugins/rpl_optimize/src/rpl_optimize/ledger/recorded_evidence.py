"""What the stages of each candidate recorded when they ran, put together as evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_optimize.contracts.ledger import (
    BuiltData,
    CheckedData,
    GuardedData,
    MeasuredData,
    ModelledData,
    PlacementData,
    ProposedData,
)
from rpl_optimize.contracts.optimize import EvidencePart
from rpl_optimize.ledger.events import LedgerEvent

if TYPE_CHECKING:
    from rpl_core.contracts.common import Part


#: Measurements that come without guards of the hardware.
_ALONE_OR_AGAIN = {LedgerEvent.TIMED_ALONE: "kernel_alone", LedgerEvent.REMEASURED: "remeasurement"}


@attrs.define(eq=False)
class RecordedEvidence:
    """Takes every event in order. A proposal begins a candidate anew, and a build tries it anew."""

    _found: dict[int, EvidencePart] = attrs.field(factory=dict)

    def of(self, candidate: int) -> EvidencePart:
        """As far as its last attempt came."""
        return self._found.get(candidate, EvidencePart())

    def take(self, event: LedgerEvent, data: Part) -> None:
        if isinstance(data, ProposedData):
            self._found[data.candidate] = EvidencePart()
        elif isinstance(data, BuiltData):
            guards = self.of(data.candidate).source_guards
            self._found[data.candidate] = EvidencePart(source_guards=guards, build=data.build)
        elif isinstance(data, GuardedData):
            source = event is LedgerEvent.SOURCE_GUARDED
            self._add(data.candidate, **{"source_guards" if source else "binary_guards": data.guards})
        elif isinstance(data, CheckedData):
            self._add(data.candidate, checks=data.checks)
        elif isinstance(data, ModelledData):
            self._add(data.candidate, modelled=data.modelled)
        elif isinstance(data, PlacementData):
            self._add(data.candidate, placement=data.placement)
        elif isinstance(data, MeasuredData) and event in _ALONE_OR_AGAIN:
            self._add(data.candidate, **{_ALONE_OR_AGAIN[event]: data.measurement})
        elif isinstance(data, MeasuredData):
            guards = data.architecture_guards
            self._add(data.candidate, measurement=data.measurement, architecture_guards=guards)

    def _add(self, candidate: int, **parts: object) -> None:
        self._found[candidate] = self.of(candidate).model_copy(update=parts)
