"""How far a session has come: what the loop needs to go on, also as read back from a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from rpl_core.contracts.common import Part
from rpl_core.errors import BadDataError
from rpl_core.files import make_directory
from rpl_core.text import encodable
from rpl_core.values import frozen
from rpl_optimize.contracts import (
    AcceptedData,
    BaselineProfiledData,
    CandidatePart,
    EvidencePart,
    FinishedData,
    GuardPart,
    JudgedData,
    JudgementPart,
    PlannedData,
    PolicyPart,
    ProposedData,
    RetunedName,
    RolledBackData,
    SessionStartedData,
    WrittenData,
)
from rpl_optimize.interfaces.proposer import Attempt
from rpl_optimize.interfaces.transformation import Edit, EditCandidate
from rpl_optimize.ledger.lines import CONTRACTS, LedgerEntry, LedgerEvent, read_ledger
from rpl_optimize.ledger.session_files import Begun, RecordedEvidence
from rpl_optimize.ledger.verify import verify_ledger
from rpl_optimize.loop.baseline import Target, gains_of_fresh, measured_facts
from rpl_optimize.loop.proposing import Proposed
from rpl_optimize.loop.session import OptimizeRequest, digest
from rpl_optimize.measurement.verdict import judge
from rpl_optimize.session_layout import LEDGER, ORIGINAL, candidate_name, fresh
from rpl_optimize.transform import read_source


@attrs.define
class LoopState:
    """``text`` is the source to beat; ``ours`` the hash of what was written to the user's place last.

    ``host`` is the source whose host code the version to beat has: the user's, until a change of constants
    that launches follow is accepted.

    ``begun`` counts measurements that could have accepted something, whether they ended or not: each takes
    its part of the error that ``--max-iters`` candidates share.
    ``tried`` counts candidates, ``misses`` those since the last acceptance. Attempts are remembered per
    source kernel.
    """

    text: bytes
    host: bytes = attrs.field(default=attrs.Factory(lambda self: self.text, takes_self=True))
    tried: int = 0
    misses: int = 0
    begun: int = 0
    ours: str | None = None
    dominant: str | None = None
    candidates: list[CandidatePart] = attrs.field(factory=list)
    attempts: dict[str, list[Attempt]] = attrs.field(factory=dict)
    shifts: list[str] = attrs.field(factory=list)

    def take(self, text: bytes, retuned: RetunedName | None) -> None:
        """An accepted source is the one to beat."""
        self.text = text
        if retuned == "launches":
            self.host = text

    def add(self, candidate: CandidatePart, *, accepted: bool) -> None:
        """Count a judged candidate and remember it for the proposer."""
        self.candidates.append(candidate)
        self.tried = max(self.tried, candidate.number)
        self.misses = 0 if accepted else self.misses + 1
        verdict = candidate.judgement
        self.attempts.setdefault(candidate.kernel, []).append(
            Attempt(candidate.summary, verdict.verdict, verdict.reason)
        )

    def misses_of(self, transformation: str | None) -> int:
        """Candidates of one transformation since the last acceptance; ``None``: those that proposers made."""
        since = self.candidates[len(self.candidates) - self.misses :]
        return sum(one.transformation == transformation for one in since)

    def spent(self, patience: int) -> frozenset[str]:
        """Transformations with as many misses as ``--patience`` lets them have."""
        names = {candidate.transformation for candidate in self.candidates} - {None}
        return frozenset(name for name in names if name is not None and self.misses_of(name) >= patience)

    def set_dominant(self, symbol: str | None) -> str | None:
        """The kernel that dominates the version to beat; returns a sentence if another one did before."""
        before, self.dominant = self.dominant, symbol
        if before is None or symbol is None or before == symbol:
            return None
        self.shifts.append(f"{symbol} dominates now, no longer {before}")
        return self.shifts[-1]

    @property
    def baseline(self) -> int:
        """Number of the version to beat: 1 is the user's source, each acceptance makes the next one."""
        return len(self.accepted) + 1

    def tried_for(self, kernel: str) -> tuple[Attempt, ...]:
        return tuple(self.attempts.get(kernel, ()))

    @property
    def accepted(self) -> tuple[CandidatePart, ...]:
        return tuple(c for c in self.candidates if c.judgement.verdict == "accepted")


@frozen
class Unfinished:
    """A candidate that was proposed and not decided: it is built again from its source and goes on.

    ``begun`` is what was measured of it, for the case that it is built to the same program.
    """

    data: ProposedData
    guards: tuple[GuardPart, ...]
    text: bytes | None
    baseline: bytes
    begun: Begun | None = None

    def find_target(self, targets: Iterable[Target]) -> Target | None:
        """The kernel that it changes, if it is still worth it."""
        return next((t for t in targets if t.kernel == self.data.kernel), None)

    def proposed(self, root: Path) -> Proposed:
        """The same version; what is made of it from now on lies in a fresh directory."""
        number, repairs = self.data.candidate, self.data.repairs
        directory = fresh(root, candidate_name(number, repairs))
        make_directory(directory)
        edits = () if self.text is None else (Edit(0, len(self.baseline), self.text),)
        candidate = EditCandidate(
            id=f"resumed-{number}",
            kernel=self.data.kernel,
            line=1,
            summary=self.data.summary,
            edits=edits,
            changes_loop=self.data.changes_loop,
            workgroup_limit=self.data.workgroup_limit,
            lds_growth=self.data.lds_growth,
        )
        transformation = self.data.transformation
        source = None if self.data.source is None else root / self.data.source
        return Proposed(
            number,
            repairs,
            candidate,
            self.guards,
            self.text,
            directory,
            transformation,
            source,
            self.data.retuned,
        )


@frozen
class Settled:
    """A candidate whose recorded evidence refuses it: measuring it again would be another chance.

    ``evidence``: it has still to be judged by this; ``None``: the ledger holds its judgement.
    """

    candidate: CandidatePart
    evidence: EvidencePart | None = None


@frozen
class OpenEnd:
    """One of them at most. ``write_candidate`` was accepted, and its source never reached the user."""

    unfinished: Unfinished | None = None
    settled: Settled | None = None
    write_candidate: int | None = None


# Read from the ledger how far a session came. Nothing of it counts unless the whole ledger replays.


@attrs.define
class Resumed:
    """``finished``: how the session ended, unless it was interrupted. ``written`` is the last one."""

    original: bytes
    state: LoopState
    policy: PolicyPart
    open_end: OpenEnd = attrs.field(factory=OpenEnd)
    written: WrittenData | None = None
    finished: FinishedData | None = None


def read_session(root: Path, request: OptimizeRequest, options: Mapping[str, Any], proposer: str) -> Resumed:
    """The session in ``root``, which was begun by this request. Raises ``BadDataError`` unless it was."""
    path = root / LEDGER
    entries = tuple(read_ledger(path))
    if not entries or entries[0].event is not LedgerEvent.SESSION_STARTED:
        raise BadDataError(f"{root} stopped before it began", next_step="start a new session")
    verified = verify_ledger(path)
    if not verified.agrees:
        problems = (
            *(problem for _, problem in verified.problems),
            "a verdict that its evidence does not give",
        )
        raise BadDataError(
            f"{path} contradicts itself: {problems[0]}",
            next_step="see `rpl ledger verify`; start a new session",
        )
    started = SessionStartedData.model_validate(entries[0].data)
    _require_same_call(started, request, options, proposer)
    original = read_source(root / ORIGINAL / request.source.name, None).text
    if digest(original) != started.source_sha256:
        raise BadDataError(f"the copy of the source in {root} is not what the ledger says")
    return replay_session(entries, root, original, started.policy)


def _require_same_call(
    started: SessionStartedData, request: OptimizeRequest, options: Mapping[str, Any], proposer: str
) -> None:
    asked = {"command": request.told_command, "source": str(request.source), "proposer": proposer, **options}
    own = {"command": started.command, "source": started.source, "proposer": started.proposer}
    begun: dict[str, object] = {**own, **started.options}
    for name, value in begun.items():
        if _encodable(asked.get(name)) != value:
            raise BadDataError(
                f"the session remembers another {name.replace('_', ' ')} than the ledger",
                cause="request.json was changed",
                next_step="start a new session",
            )


def _encodable(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_encodable, value))
    return encodable(value) if isinstance(value, str) else value


def replay_session(
    entries: Iterable[LedgerEntry], root: Path, original: bytes, policy: PolicyPart
) -> Resumed:
    """Fold the ledger. Sources are taken from the session's directory and must have the recorded hash."""
    folding = Folding(root, Resumed(original, LoopState(original), policy))
    for entry in entries:
        folding.take(entry.event, CONTRACTS[entry.event].model_validate(entry.data))
    return folding.resumed()


class Folding:
    """The session as far as its events were taken."""

    def __init__(self, root: Path, resumed: Resumed) -> None:
        self._root = root
        self._resumed = resumed
        self.state = resumed.state
        self._recorded = RecordedEvidence()
        self._proposed: ProposedData | None = None
        self._judged: JudgedData | None = None
        self._write: int | None = None

    def take(self, event: LedgerEvent, data: Part) -> None:
        """One event in order; those that change nothing here are passed over."""
        self._recorded.take(event, data)
        self.take_data(data)

    def take_data(self, data: Part) -> None:
        """The same without what the stages of a candidate under way recorded."""
        if isinstance(data, BaselineProfiledData):
            self._resumed.state.set_dominant(data.dominant)
        elif isinstance(data, ProposedData):
            self._proposed, self._judged = data, None
            self._resumed.finished = None
        elif isinstance(data, PlannedData):
            self._resumed.state.begun += data.stage == "measurement"
        elif isinstance(data, JudgedData):
            self._judged = data
        elif isinstance(data, AcceptedData):
            self._take_accepted(data)
        elif isinstance(data, RolledBackData):
            # The reason of the rollback: the user may have declined what the evidence accepts.
            changes = {"verdict": data.verdict, "reason": data.reason}
            self._decide(self._judgement().model_copy(update=changes), data)
        elif isinstance(data, WrittenData):
            self._resumed.state.ours, self._resumed.written, self._write = data.sha256, data, None
        elif isinstance(data, FinishedData):
            self._resumed.finished = None if data.termination_reason == "interrupted" else data

    def resumed(self) -> Resumed:
        """The state, with what was under way."""
        settled = self._settled()
        unfinished = None if settled is not None else self._unfinished()
        self._resumed.open_end = OpenEnd(unfinished, settled, self._write)
        return self._resumed

    def _take_accepted(self, data: AcceptedData) -> None:
        proposed = self._expect_proposed()
        text = self._source_of(proposed)
        if text is None:
            raise BadDataError(f"the ledger accepts candidate {data.candidate}, which has no source")
        self._resumed.state.take(text, proposed.retuned)
        self._write = data.candidate
        self._decide(self._judgement(), data)

    def _decide(self, judgement: JudgementPart, data: AcceptedData | RolledBackData) -> None:
        evidence = EvidencePart() if self._judged is None else self._judged.evidence
        candidate = _candidate(self._expect_proposed(), judgement, evidence, data.predicted_gain)
        self._resumed.state.add(candidate, accepted=isinstance(data, AcceptedData))
        self._proposed = None

    def _settled(self) -> Settled | None:
        """The candidate under way, where what was recorded refuses it whatever comes."""
        proposed = self._proposed
        if proposed is None:
            return None
        if self._judged is not None:
            judgement = self._judged.judgement
            return (
                None
                if judgement.verdict == "accepted"
                else Settled(_candidate(proposed, judgement, self._judged.evidence))
            )
        evidence = self._recorded.of(proposed.candidate)
        judgement = judge(evidence, self._resumed.policy)
        first, again = evidence.measurement, evidence.remeasurement
        if first is None or judgement.verdict == "accepted":
            return None
        if again is None and first.look is not None and first.look.decision == "accepted":
            return None
        return Settled(_candidate(proposed, judgement, evidence), evidence)

    def _unfinished(self) -> Unfinished | None:
        # Without its guards nothing speaks for the proposal: the proposer is asked for it again.
        proposed = self._proposed
        guards = () if proposed is None else self._recorded.of(proposed.candidate).source_guards
        if proposed is None or not guards:
            return None
        begun = self._recorded.begun(proposed.candidate)
        return Unfinished(proposed, guards, self._source_of(proposed), self._resumed.state.text, begun)

    def _expect_proposed(self) -> ProposedData:
        if self._proposed is None:
            raise BadDataError("the ledger judges a candidate that was never proposed")
        return self._proposed

    def _judgement(self) -> JudgementPart:
        if self._judged is None:
            raise BadDataError("the ledger decides about a candidate that was never judged")
        return self._judged.judgement

    def _source_of(self, proposed: ProposedData) -> bytes | None:
        if proposed.source is None:
            return None
        text = read_source(_inside(self._root, proposed.source), None).text
        if digest(text) != proposed.source_sha256:
            raise BadDataError(
                f"{self._root / proposed.source} is not what the ledger says",
                cause="it was changed after the session",
                next_step="start a new session",
            )
        return text


def _inside(root: Path, name: str) -> Path:
    try:
        path = (root / name).resolve()
        if path.is_relative_to(root.resolve()):
            return path
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
        pass
    raise BadDataError(f"the ledger names a source outside of the session: {name!r}")


def _candidate(
    proposed: ProposedData,
    judgement: JudgementPart,
    evidence: EvidencePart,
    predicted_gain: float | None = None,
) -> CandidatePart:
    gains = gains_of_fresh(evidence)
    return CandidatePart(
        number=proposed.candidate,
        kernel=proposed.kernel,
        proposer=proposed.proposer,
        transformation=proposed.transformation,
        summary=proposed.summary,
        source_sha256=proposed.source_sha256,
        judgement=judgement,
        source=proposed.source,
        **measured_facts(evidence),
        predicted_gain=predicted_gain,
        measured_gain=gains.application,
        kernel_gain=gains.kernel,
        kernel_gain_interval=gains.kernel_interval,
    )
