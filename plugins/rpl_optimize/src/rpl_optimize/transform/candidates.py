"""Ask every transformation for candidates in one file; one that fails costs only its own."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rpl_core.errors import BadDataError, MissingError, PluginError, UsageError
from rpl_core.model.value_checks import value_violation
from rpl_core.values import frozen
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource
from rpl_optimize.transform.ask import able_to_read, ask
from rpl_optimize.transform.edits import edits_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rpl_optimize.interfaces.proposer import InstalledTransformation


@frozen
class OfferedCandidate:
    """A candidate with the transformation that proposes it."""

    by: InstalledTransformation
    candidate: EditCandidate

    @property
    def plugin(self) -> str:
        return self.by.plugin

    @property
    def transformation(self) -> str:
        return self.by.transformation.name

    @property
    def id(self) -> str:
        """Unique over all plugins; what ``--apply`` takes."""
        return f"{self.transformation}:{self.candidate.id}"


@frozen
class Offers:
    """All candidates by file position, and the transformations that failed."""

    candidates: tuple[OfferedCandidate, ...]
    failures: tuple[PluginError, ...]

    def get(self, candidate_id: str) -> OfferedCandidate:
        """The candidate called ``candidate_id``; ``UsageError`` naming the known ones otherwise."""
        for offered in self.candidates:
            if offered.id == candidate_id:
                return offered
        known = ", ".join(offered.id for offered in self.candidates) or "none"
        raise UsageError(f"no candidate {candidate_id!r} in this file; known: {known}")


def collect_offers(source: KernelSource, transformations: Sequence[InstalledTransformation]) -> Offers:
    """Candidates of every transformation that handles the file's suffix, refused ones included."""
    candidates: list[OfferedCandidate] = []
    failures: list[PluginError] = []
    for one in able_to_read(source, transformations):
        answer = ask(one, "candidates", partial(_proposed_by, one, source))
        if isinstance(answer, PluginError):
            failures.append(answer)
        else:
            candidates += [OfferedCandidate(one, candidate) for candidate in answer]
    candidates.sort(key=lambda offered: (offered.candidate.line, offered.id))
    return Offers(tuple(candidates), tuple(failures))


def require_transformations(source: KernelSource, transformations: Sequence[InstalledTransformation]) -> None:
    """``MissingError`` when there is none, ``BadDataError`` when none handles this kind of file."""
    if not transformations:
        raise MissingError(
            "no loaded plugin offers transformations",
            next_step="install one (see `rpl docs plugins`), then check `rpl plugins list`",
        )
    if not able_to_read(source, transformations):
        suffix = PurePath(source.path).suffix
        known = sorted({s for one in transformations for s in one.transformation.suffixes})
        raise BadDataError(
            f"no transformation handles {suffix or 'nameless'} files; known: {', '.join(known)}"
        )


def _proposed_by(one: InstalledTransformation, source: KernelSource) -> tuple[EditCandidate, ...]:
    """Candidates whose fields can be relied on; ``TypeError`` or ``ValueError`` otherwise."""
    proposed: Any = one.transformation.propose(source)
    if not isinstance(proposed, tuple):
        raise TypeError(f"returned {type(proposed).__name__} where a tuple was expected")
    seen: set[str] = set()
    for candidate in proposed:
        if not isinstance(candidate, EditCandidate):
            raise TypeError(f"returned {type(candidate).__name__} among the candidates")
        if candidate.id in seen:
            raise ValueError(f"two candidates are called {candidate.id!r}")
        seen.add(candidate.id)
        problem = candidate_problem(candidate, source)
        if problem is not None:
            raise ValueError(f"candidate {candidate.id!r}: {problem}")
    return proposed


def candidate_problem(candidate: Any, source: KernelSource) -> str | None:
    """What is wrong with a plugin's ``EditCandidate`` for ``source``, or ``None``.

    attrs does not check types, and a plugin may fill in anything.
    """
    if not isinstance(candidate.summary, str):
        return "its summary is no text"
    if not isinstance(candidate.line, int) or not isinstance(candidate.allowed, bool):
        return "it has no line number or no clear verdict"
    if not isinstance(candidate.changes_loop, bool):
        return "changes_loop is neither true nor false"
    if candidate.workgroup_limit is not None and not isinstance(candidate.workgroup_limit, int):
        return "workgroup_limit is no whole number"
    if candidate.lds_growth is not None and not isinstance(candidate.lds_growth, int):
        return "lds_growth is no whole number"
    return edits_problem(candidate.edits, len(source.text)) or value_violation(candidate)
