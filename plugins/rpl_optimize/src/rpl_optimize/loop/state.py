"""How far a session has come: all that the loop needs to go on, whether it ran here or is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rpl_optimize.interfaces.proposer import Attempt

if TYPE_CHECKING:
    from rpl_optimize.contracts.optimize import CandidatePart


@attrs.define
class LoopState:
    """``text`` is the source to beat; ``ours`` the hash of what was written to the user's place last.

    ``tried`` counts candidates, ``misses`` those since the last acceptance. Attempts are remembered per
    source kernel.
    """

    text: bytes
    tried: int = 0
    misses: int = 0
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
