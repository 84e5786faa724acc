"""Ask transformations of plugins for edits of a source, check what they answer, and apply it.

The plugins propose; here nothing is trusted: one that fails costs only itself, and an edit that does not fit
is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from rpl_core.errors import BadDataError, InterruptedRunError, MissingError, PluginError, RplError, UsageError
from rpl_core.model.value_checks import require_value, value_violation
from rpl_core.plugins.boundary import one_line, plugin_boundary
from rpl_core.values import frozen
from rpl_optimize.interfaces.proposer import InstalledTransformation
from rpl_optimize.interfaces.transformation import (
    Edit,
    EditCandidate,
    GuardVerdict,
    KernelSource,
    Transformation,
)

if TYPE_CHECKING:
    from rpl_core.plugins.catalog import NamedContributions


#: No hand-written kernel file comes near this; a larger one is not source code.
MAX_SOURCE_BYTES = 16 << 20


def read_source(path: Path, kernel: str | None) -> KernelSource:
    """The file as a ``KernelSource``; ``MissingError`` or ``BadDataError`` when it is absent or too large."""
    if not path.is_file():
        raise MissingError(f"no source file at {path}", next_step="check the path")
    with path.open("rb") as file:
        text = file.read(MAX_SOURCE_BYTES + 1)
    if len(text) > MAX_SOURCE_BYTES:
        raise BadDataError(f"{path} is larger than {MAX_SOURCE_BYTES >> 20} MiB, so it is not read as source")
    return KernelSource(str(path), text, kernel)


# Ask one transformation something, so that what goes wrong in it costs only itself.

T = TypeVar("T")


def installed(transformations: NamedContributions[Transformation]) -> tuple[InstalledTransformation, ...]:
    """All transformations of a host, in the order of their plugins."""
    return tuple(InstalledTransformation(c.plugin, c.value) for c in transformations.contributions)


def ask(one: InstalledTransformation, activity: str, call: Callable[[], T]) -> T | PluginError:
    """What ``call`` returns, or what went wrong in it. Raises ``InterruptedRunError`` only.

    Answers have to be looked at inside ``call``: attrs checks no types, and a plugin may return anything.
    """
    where = f"{activity} of transformation {one.transformation.name}"
    try:
        with plugin_boundary(one.plugin, where):
            return call()
    except InterruptedRunError:
        raise
    except PluginError as error:
        return error
    except RplError as error:
        return PluginError(one.plugin, where, one_line(error))


def able_to_read(
    source: KernelSource, transformations: Iterable[InstalledTransformation]
) -> tuple[InstalledTransformation, ...]:
    """Those that handle files of this suffix."""

    def reads(one: InstalledTransformation) -> bool:
        return PurePath(source.path).suffix in one.transformation.suffixes

    return tuple(
        transformation
        for transformation in transformations
        if ask(transformation, "suffixes", partial(reads, transformation)) is True
    )


# Apply edits to source bytes: all of them, or an error naming the one that does not fit.


def edits_problem(edits: Iterable[Edit], size: int) -> str | None:
    """Why ``edits`` don't fit a file of ``size`` bytes, or ``None``."""
    end = 0
    for edit in _ordered(edits):
        if not 0 <= edit.begin <= edit.end <= size:
            return f"an edit of bytes {edit.begin} to {edit.end} leaves the file of {size} bytes"
        if edit.begin < end:
            return f"two edits overlap at byte {edit.begin}"
        # Two insertions at one place have no defined order.
        end = max(edit.end, edit.begin + 1)
    return None


def apply_edits(text: bytes, edits: Iterable[Edit]) -> bytes:
    """``text`` with every edit applied; ``ValueError`` when they don't fit it."""
    ordered = _ordered(edits)
    problem = edits_problem(ordered, len(text))
    if problem is not None:
        raise ValueError(problem)
    parts = []
    position = 0
    for edit in ordered:
        parts += [text[position : edit.begin], edit.replacement]
        position = edit.end
    return b"".join([*parts, text[position:]])


def _ordered(edits: Iterable[Edit]) -> list[Edit]:
    return sorted(edits, key=lambda edit: (edit.begin, edit.end))


# Ask every transformation for candidates in one file; one that fails costs only its own.


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
        known = sorted({ending for offered in transformations for ending in offered.transformation.suffixes})
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


# The transformation that proposes an edit answers for it. What every edit must keep is judged elsewhere
# (``rpl_optimize.source_meaning``).

GUARD = "invariance"


@frozen
class EditJudgement:
    """``owner`` proposes this very edit, whoever passed it on; ``failures`` are of transformations asked."""

    owner: OfferedCandidate | None
    verdicts: tuple[GuardVerdict, ...]
    failures: tuple[PluginError, ...]


def judge_edit(
    source: KernelSource,
    candidate: EditCandidate,
    after: bytes,
    transformations: Sequence[InstalledTransformation],
) -> EditJudgement:
    """What transformations say of ``after``, the source with the candidate's edits.

    An owner judges alone, with the guards that it gave the edit itself: a proposer can't leave them out. One
    that fails refuses its own edit. Of an edit that none of them proposes they know nothing.
    """
    offers = collect_offers(source, transformations)
    owner = next((o for o in offers.candidates if o.candidate.edits == candidate.edits), None)
    if owner is None:
        return EditJudgement(None, (), ())
    answer = ask(owner.by, "invariance", partial(_verdicts, owner.by, source, after))
    if isinstance(answer, PluginError):
        refusal = GuardVerdict(GUARD, False, f"nobody could judge the edit: {answer.fact}")
        return EditJudgement(owner, (*owner.candidate.guards, refusal), (answer,))
    return EditJudgement(owner, (*owner.candidate.guards, *answer), ())


def _verdicts(one: InstalledTransformation, source: KernelSource, after: bytes) -> tuple[GuardVerdict, ...]:
    return tuple(require_value(v, GuardVerdict) for v in one.transformation.invariance(source, after))
