"""Whether a candidate was measured by a rule that its session may use: error shared, gain large enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from rpl_optimize.contracts.ledger import JudgedData, SessionStartedData, TargetChosenData
from rpl_optimize.measurement.rule import rule_for

if TYPE_CHECKING:
    from rpl_core.contracts.common import Part
    from rpl_optimize.contracts.optimize import MeasurementPart

_ROUNDING = 1e-12


@attrs.define(eq=False)
class SharedError:
    """Hears every event in order. Sessions that did not record their options are not judged by them."""

    _candidates: int = 1
    _min_improvement: float = 0.0
    _targets: dict[str, TargetChosenData] = attrs.field(factory=dict)

    def hear(self, data: Part) -> Iterator[str]:
        if isinstance(data, SessionStartedData):
            most, least = data.options.get("max_iters"), data.options.get("min_improvement")
            self._candidates = most if isinstance(most, int) else 1
            self._min_improvement = least if isinstance(least, float) else 0.0
        elif isinstance(data, TargetChosenData) and data.kernel is not None:
            self._targets[data.kernel] = data
        elif isinstance(data, JudgedData):
            parts = (data.evidence.measurement, data.evidence.remeasurement)
            if any(part is not None and not self._allows(part) for part in parts):
                yield f"candidate {data.candidate} was measured by a laxer rule than its session's"

    def _allows(self, part: MeasurementPart) -> bool:
        if part.problem is not None:
            return True
        target = self._targets.get(part.kernel)
        share, cv = (None, None) if target is None else (target.ceiling_gain, target.base_cv)
        least = rule_for(self._min_improvement, share, self._candidates, cv)
        if least is None:
            return False
        return (
            part.rule.alpha <= least.alpha + _ROUNDING
            and part.rule.least_gain >= least.least_gain - _ROUNDING
            and part.rule.futile_gain >= least.futile_gain - _ROUNDING
        )
