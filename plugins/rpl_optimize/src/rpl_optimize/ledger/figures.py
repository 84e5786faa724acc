"""Figures of a ledger that follow from others of the same line: worked out again from the recorded times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from rpl_measure.estimates import median, robust_cv
from rpl_measure.sequential import last_look
from rpl_measure.series import find_drift, find_modes
from rpl_optimize.contracts.ledger import MeasuredData, PlacementData
from rpl_optimize.contracts.optimize import ModesPart
from rpl_optimize.ledger.decisions import alike
from rpl_optimize.measurement.times import look_part, rule_of

if TYPE_CHECKING:
    from rpl_core.contracts.common import Part
    from rpl_optimize.contracts.optimize import MeasurementPart


def measurements_of(data: Part) -> tuple[MeasurementPart, ...]:
    """What the stage measured, in order."""
    if isinstance(data, MeasuredData):
        return (data.measurement,)
    return tuple(s.measurement for s in data.placement.shifts) if isinstance(data, PlacementData) else ()


def figure_problems(data: Part) -> Iterator[str]:
    """Figures of a measurement that its times do not give."""
    for part in measurements_of(data):
        if part.candidate_failed and part.problem is None:
            yield f"the candidate failed while {part.kernel[:80]!r} was measured, and nobody says how"
        for name in _different(part):
            yield f"{name} of {part.kernel[:80]!r} is not that of its times"


def _different(part: MeasurementPart) -> Iterator[str]:
    told = {name: getattr(part, name) for name in _FIGURES}
    try:
        again = _worked_out(part)
    except (ArithmeticError, ValueError):  # times that are none, or ratios that no two times have
        yield from (name for name, value in told.items() if value is not None)
        return
    yield from (name for name in _FIGURES if not _alike(told[name], again[name]))


_FIGURES = ("log_ratios", "base_cv", "base_median_ns", "new_median_ns", "drift", "modes", "look")


def _alike(told: object, again: object) -> bool:
    plain = [value.model_dump() if hasattr(value, "model_dump") else value for value in (told, again)]
    return alike(*plain)


def _worked_out(part: MeasurementPart) -> dict[str, object]:
    """The figures of ``measurement_part``; an older session kept log ratios without times."""
    base, new, ratios = part.base_ns, part.new_ns, part.log_ratios
    if not base and not new and ratios:
        known = {name: getattr(part, name) for name in ("base_cv", "drift", "modes", "log_ratios")}
        known |= {"base_median_ns": None, "new_median_ns": None}
    else:
        drift, modes = find_drift(base), find_modes(base)
        known = {
            "log_ratios": tuple(math.log(b / n) for b, n in zip(base, new, strict=True)),
            "base_cv": robust_cv(base),
            "base_median_ns": median(base) if base else None,
            "new_median_ns": median(new) if new else None,
            "drift": None if drift is None else drift.flagged,
            "modes": None if modes is None else ModesPart(**attrs.asdict(modes)),
        }
    look = None
    if part.problem is None or part.look is not None:
        look = last_look(ratios, part.guards, rule_of(part.rule))
    return {**known, "look": None if look is None else look_part(look)}
