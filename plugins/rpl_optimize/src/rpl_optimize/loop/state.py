"""How far a session has come: all that the loop needs to go on, and what an interrupted one was doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_core.process.storage import make_directory
from rpl_core.values import frozen
from rpl_optimize.interfaces.proposer import Attempt
from rpl_optimize.interfaces.transformation import Edit, EditCandidate
from rpl_optimize.loop.proposing import Proposed
from rpl_optimize.session_layout import candidate_name, fresh

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rpl_optimize.contracts.ledger import ProposedData
    from rpl_optimize.contracts.optimize import CandidatePart, EvidencePart, GuardPart
    from rpl_optimize.ledger.recorded_evidence import Begun
    from rpl_optimize.loop.target import Target


@attrs.define
class LoopState:
    """``text`` is the source to beat; ``ours`` the hash of what was written to the user's place last.

    ``begun`` counts measurements that could have accepted something, whether they ended or not: each takes
    its part of the error that ``--max-iters`` candidates share.
    ``tried`` counts candidates, ``misses`` those since the last acceptance. Attempts are remembered per
    source kernel.
    """

    text: bytes
    tried: int = 0
    misses: int = 0
    begun: int = 0
    ours: str | None = None
    dominant: str | None = None
    candidates: list[CandidatePart] = attrs.field(factory=list)
    attempts: dict[str, list[Attempt]] = attrs.field(factory=dict)
    shifts: list[str] = attrs.field(factory=list)

    def add(self, candidate: CandidatePart, *, accepted: bool) -> None:
        """Count a judged candidate and remember it for the proposer."""
        self.candidates.append(candidate)
        self.tried = max(self.tried, candidate.number)
        self.misses = 0 if accepted else self.misses + 1
        verdict = candidate.judgement
        self.attempts.setdefault(candidate.kernel, []).append(
            Attempt(candidate.summary, verdict.verdict, verdict.reason)
        )

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
        return Proposed(number, repairs, candidate, self.guards, self.text, directory, transformation, source)


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
