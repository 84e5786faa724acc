"""Replay a ledger: the chain, the contract of every event, and every verdict from its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from pydantic import ValidationError

from rpl_core.errors import BadDataError
from rpl_core.values import frozen
from rpl_optimize.contracts.ledger import JudgedData, SessionStartedData
from rpl_optimize.ledger.decisions import Decisions, SharedError, alike
from rpl_optimize.ledger.events import CONTRACTS, LedgerEvent
from rpl_optimize.ledger.figures import figure_problems
from rpl_optimize.ledger.line import FIRST_PREVIOUS, TIME_FORMAT
from rpl_optimize.ledger.plans import Plans
from rpl_optimize.ledger.read import BrokenLedgerError, read_ledger
from rpl_optimize.ledger.recorded_evidence import RecordedEvidence
from rpl_optimize.measurement.objections import replayed_look
from rpl_optimize.measurement.times import look_part
from rpl_optimize.measurement.verdict import judge

if TYPE_CHECKING:
    from rpl_core.contracts.common import Part
    from rpl_optimize.contracts.optimize import EvidencePart, JudgementPart, MeasurementPart, PolicyPart
    from rpl_optimize.ledger.line import LedgerEntry


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
