"""What an interrupted session was doing: a candidate under way, one that is decided, or one to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rpl_core.process.storage import make_directory
from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import Edit, EditCandidate
from rpl_optimize.loop.proposing import Proposed
from rpl_optimize.session_layout import candidate_name, fresh

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rpl_optimize.contracts.ledger import ProposedData
    from rpl_optimize.contracts.optimize import CandidatePart, EvidencePart, GuardPart
    from rpl_optimize.loop.target import Target


@frozen
class Unfinished:
    """A candidate that was proposed and not decided: it is built and judged again from its source."""

    data: ProposedData
    guards: tuple[GuardPart, ...]
    text: bytes | None
    baseline: bytes

    def find_target(self, targets: Iterable[Target]) -> Target | None:
        """The kernel that it changes, if it is still worth it."""
        return next((t for t in targets if t.kernel == self.data.kernel), None)

    def proposed(self, root: Path) -> Proposed:
        """The same version in a fresh directory."""
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
        return Proposed(number, repairs, candidate, self.guards, self.text, directory, transformation)


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
