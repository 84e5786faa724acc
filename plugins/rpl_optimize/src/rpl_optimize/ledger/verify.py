"""Replay a ledger: the chain, the contract of every event, and every verdict and figure from its evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import attrs
from pydantic import ValidationError

from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_measure.rank_tests import median, robust_cv
from rpl_measure.sequential import last_look
from rpl_measure.series import find_drift, find_modes
from rpl_optimize.contracts import (
    AcceptedData,
    BaselineProfiledData,
    EvidencePart,
    FinishedData,
    JudgedData,
    JudgementPart,
    MeasuredData,
    MeasurementPart,
    ModesPart,
    PlacementData,
    PlannedData,
    PolicyPart,
    ProposedData,
    RolledBackData,
    SessionStartedData,
    TargetChosenData,
    VerdictName,
    WrittenData,
)
from rpl_optimize.ledger.lines import (
    CONTRACTS,
    FIRST_PREVIOUS,
    TIME_FORMAT,
    BrokenLedgerError,
    LedgerEntry,
    LedgerEvent,
    read_ledger,
)
from rpl_optimize.ledger.session_files import Plans, RecordedEvidence
from rpl_optimize.measurement.gains import gains_of, rule_for
from rpl_optimize.measurement.measure import look_part, rule_of
from rpl_optimize.measurement.verdict import judge, replayed_look, session_verdict

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


# Figures of a ledger that follow from others of the same line: worked out again from the recorded times.


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


# Replay a ledger: the chain, the contract of every event, and every verdict from its evidence.


@frozen
class ReplayedVerdict:
    """A recorded verdict beside the one that its evidence gives. ``differences`` is empty when they agree."""

    line: int
    candidate: int
    recorded: JudgementPart
    replayed: JudgementPart
    differences: tuple[str, ...]


@frozen
class Verification:
    """What was replayed. ``problems`` are (line, sentence) about events that contradict each other.

    ``notes`` are the same about what is no contradiction.
    """

    lines: int
    verdicts: tuple[ReplayedVerdict, ...]
    problems: tuple[tuple[int, str], ...]
    finished: bool
    last_sha256: str
    notes: tuple[tuple[int, str], ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.problems and not any(verdict.differences for verdict in self.verdicts)


def verify_ledger(path: Path) -> Verification:
    """Replay the whole ledger. Raises ``BrokenLedgerError`` at the first line that can't be trusted."""
    replay = _Replay(path)
    for entry in read_ledger(path):
        replay.take(entry)
    if not replay.lines:
        raise BadDataError(f"{path} is empty: no session was recorded")
    return Verification(
        lines=replay.lines,
        verdicts=tuple(replay.verdicts),
        problems=tuple(replay.problems),
        finished=replay.last is LedgerEvent.FINISHED,
        last_sha256=replay.last_sha256,
        notes=tuple(replay.notes),
    )


@attrs.define(eq=False)
class _Replay:
    """What earlier lines said, as far as later ones must agree with it."""

    path: Path
    lines: int = 0
    last: LedgerEvent | None = None
    last_sha256: str = FIRST_PREVIOUS
    policy: PolicyPart | None = None
    verdicts: list[ReplayedVerdict] = attrs.field(factory=list)
    problems: list[tuple[int, str]] = attrs.field(factory=list)
    notes: list[tuple[int, str]] = attrs.field(factory=list)
    _clock: datetime | None = None
    _recorded: RecordedEvidence = attrs.field(factory=RecordedEvidence)
    _decisions: Decisions = attrs.field(factory=Decisions)
    _plans: Plans = attrs.field(default=attrs.Factory(lambda self: Plans(self._recorded), takes_self=True))
    _error: SharedError = attrs.field(factory=SharedError)

    def take(self, entry: LedgerEntry) -> None:
        data = _parsed(self.path, entry)
        self._take_time(entry)
        if (entry.sequence == 1) is not isinstance(data, SessionStartedData):
            self._object(entry, "a session begins with session_started, once")
        if isinstance(data, SessionStartedData):
            self.policy = data.policy
        elif isinstance(data, JudgedData):
            self._judged(entry, data)
        self._recorded.take(entry.event, data)
        found = (*self._plans.take(entry, data), *self._decisions.take(data), *self._error.take(data))
        for problem in (*found, *figure_problems(data)):
            self._object(entry, problem)
        self.lines, self.last, self.last_sha256 = entry.sequence, entry.event, entry.sha256

    def _take_time(self, entry: LedgerEntry) -> None:
        """Order is that of the sequence; a clock is set back now and then, but never by decades."""
        try:
            now = datetime.strptime(entry.time_utc, TIME_FORMAT).replace(tzinfo=timezone.utc)
        except ValueError:
            self._object(entry, f"{entry.time_utc[:40]!r} is no time")
            return
        latest = datetime.now(timezone.utc) + _CLOCK_TOLERANCE
        if not _FIRST_YEAR <= now.year <= latest.year:
            self._object(entry, f"it was not written in {now.year}")
        if self._clock is not None and now < self._clock:
            back_s = (self._clock - now).total_seconds()
            self.notes.append((entry.sequence, f"the clock was {back_s:g} s behind that of the line before"))
        self._clock = now

    def _object(self, entry: LedgerEntry, problem: str) -> None:
        self.problems.append((entry.sequence, problem))

    def _judged(self, entry: LedgerEntry, data: JudgedData) -> None:
        replayed = judge(data.evidence, data.policy)
        differences = (*_differences(data.judgement, replayed), *_look_differences(data.evidence))
        self.verdicts.append(
            ReplayedVerdict(entry.sequence, data.candidate, data.judgement, replayed, differences)
        )
        if data.policy != self.policy:
            self._object(entry, "it was judged by another policy than the session's")
        recorded = self._recorded.of(data.candidate)
        for field, (what, event) in _STAGES.items():
            if getattr(data.evidence, field) != getattr(recorded, field):
                problem = f"the {what} in the evidence of candidate {data.candidate} differ from {event}"
                self._object(entry, problem)


#: The year of the first version; the clock of who verifies may be behind.
_FIRST_YEAR = 2025
_CLOCK_TOLERANCE = timedelta(days=1)
#: Part of the evidence -> what it holds, and the event that recorded it.
_STAGES = {
    "source_guards": ("guards", "source_guarded"),
    "build": ("builds", "built"),
    "binary_guards": ("guards", "binary_guarded"),
    "checks": ("checks", "equivalence_checked"),
    "kernel_alone": ("times", "timed_alone"),
    "measurement": ("times", "measured"),
    "architecture_guards": ("guards", "measured"),
    "remeasurement": ("times", "remeasured"),
    "placement": ("times", "placed"),
    "modelled": ("figures", "modelled"),
}


_FIGURE = re.compile(r"\d+(?:\.\d+)?")


def _parsed(path: Path, entry: LedgerEntry) -> Part:
    try:
        return CONTRACTS[entry.event].model_validate(entry.data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "data"
        problem = f"the data of {entry.event.value} are not as they should be: {place}: {first['msg']}"
        raise BrokenLedgerError(path, entry.sequence, problem) from None


def _differences(recorded: JudgementPart, replayed: JudgementPart) -> Iterator[str]:
    """Reasons are prose, which a later version may word better; everything else must be the same.

    But a figure in a reason is one of the evidence.
    """
    invented = set(_FIGURE.findall(recorded.reason)) - set(_FIGURE.findall(replayed.reason))
    if invented:
        yield f"the reason tells of {', '.join(sorted(invented))}, which the evidence does not"
    for name in ("verdict", "stage", "verified"):
        before, now = getattr(recorded, name), getattr(replayed, name)
        if before != now:
            yield f"{name} {before} recorded, {now} by the evidence"


def _look_differences(evidence: EvidencePart) -> Iterator[str]:
    shifts = () if evidence.placement is None else evidence.placement.shifts
    parts = (
        ("kernel alone", evidence.kernel_alone),
        ("measurement", evidence.measurement),
        ("fresh measurement", evidence.remeasurement),
        *((f"measurement of code shifted by {shift.padding_bytes}", shift.measurement) for shift in shifts),
    )
    for name, part in parts:
        if part is not None and part.look is not None and not _same_look(part):
            yield f"the recorded look of the {name} is not that of its times"


def _same_look(part: MeasurementPart) -> bool:
    look = replayed_look(part)
    if look is None:
        return True  # judged as unusable, whatever its look says
    again = look_part(look).model_dump()
    return part.look is not None and alike(part.look.model_dump(), again)
