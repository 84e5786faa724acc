"""Ask every transformation plugin for candidates in one file, each inside its own error boundary."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import attrs

from rpl_core.errors import BadDataError, MissingError, PluginError, RplError, UsageError
from rpl_core.interfaces.transformation import EditCandidate, KernelSource
from rpl_core.plugins.boundary import one_line, plugin_boundary
from rpl_optimize.transform.edits import edits_problem

if TYPE_CHECKING:
    from rpl_core.interfaces.transformation import Transformation
    from rpl_core.plugins.catalog import NamedContributions
    from rpl_core.plugins.relay import Contribution


@attrs.frozen
class OfferedCandidate:
    """A candidate with the transformation and plugin it came from."""

    plugin: str
    transformation: str
    candidate: EditCandidate

    @property
    def id(self) -> str:
        """Unique over all plugins; what ``--apply`` takes."""
        return f"{self.transformation}:{self.candidate.id}"


@attrs.frozen
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


def collect_offers(source: KernelSource, transformations: NamedContributions[Transformation]) -> Offers:
    """Candidates of every transformation that handles the file's suffix, refused ones included.

    Raises ``MissingError`` when no plugin offers a transformation and ``BadDataError`` when none handles
    this kind of file.
    """
    candidates: list[OfferedCandidate] = []
    failures: list[PluginError] = []
    for contribution in _applicable(source, transformations):
        name = contribution.value.name
        try:
            proposed = _propose(contribution, source)
        except PluginError as error:
            failures.append(error)
            continue
        candidates += [OfferedCandidate(contribution.plugin, name, candidate) for candidate in proposed]
    candidates.sort(key=lambda offered: (offered.candidate.line, offered.id))
    return Offers(tuple(candidates), tuple(failures))


def _applicable(
    source: KernelSource, transformations: NamedContributions[Transformation]
) -> list[Contribution[Transformation]]:
    if not len(transformations):
        raise MissingError(
            "no loaded plugin offers transformations",
            next_step="install one (see docs/plugins/index.md), then check `rpl plugins list`",
        )
    suffix = PurePath(source.path).suffix
    found = [c for c in transformations.contributions if suffix in c.value.suffixes]
    if not found:
        known = sorted({s for c in transformations.contributions for s in c.value.suffixes})
        raise BadDataError(
            f"no transformation handles {suffix or 'nameless'} files; known: {', '.join(known)}"
        )
    return found


def _propose(contribution: Contribution[Transformation], source: KernelSource) -> tuple[EditCandidate, ...]:
    activity = f"transformation {contribution.value.name}"
    try:
        with plugin_boundary(contribution.plugin, activity):
            proposed = contribution.value.propose(source)
            problem = _problem(proposed, source)
    except PluginError:
        raise
    except RplError as error:
        raise PluginError(contribution.plugin, activity, one_line(error)) from error
    if problem is not None:
        raise PluginError(contribution.plugin, activity, problem)
    return proposed


def _is_sound(candidate: Any) -> bool:
    # attrs does not check types, and a plugin may fill in anything.
    return isinstance(candidate.line, int) and isinstance(candidate.allowed, bool)


def _problem(proposed: object, source: KernelSource) -> str | None:
    if not isinstance(proposed, tuple):
        return f"returned {type(proposed).__name__} where a tuple was expected"
    seen: set[str] = set()
    for candidate in proposed:
        if not isinstance(candidate, EditCandidate):
            return f"returned {type(candidate).__name__} among the candidates"
        if candidate.id in seen:
            return f"two candidates are called {candidate.id!r}"
        seen.add(candidate.id)
        if not _is_sound(candidate):
            return f"candidate {candidate.id!r} has no line number or no clear verdict"
        problem = edits_problem(candidate.edits, len(source.text))
        if problem is not None:
            return f"candidate {candidate.id!r}: {problem}"
    return None
