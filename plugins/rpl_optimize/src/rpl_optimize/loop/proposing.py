"""Ask the proposer, build what it proposes, and let it repair what does not get through."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import PluginError
from rpl_core.files.atomic import write_atomic
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.process.storage import make_directory
from rpl_core.values import frozen
from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder, build_reproducibly
from rpl_optimize.contracts.optimize import BuildPart, GuardPart
from rpl_optimize.interfaces.declared_change import DeclaredChange
from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer
from rpl_optimize.interfaces.transformation import EditCandidate, GuardVerdict, KernelSource
from rpl_optimize.session_layout import candidate_name, fresh
from rpl_optimize.transform import apply_edits, candidate_problem, edits_problem, judge_edit

if TYPE_CHECKING:
    from rpl_core.plugins.relay import Contribution

    JudgeMeaning = Callable[[bytes, tuple[DeclaredChange, ...]], tuple[GuardPart, ...]]

#: A proposer that goes on repairing beyond this is cut off; the bound that users know is its own (2).
_MOST_REPAIRS = 5


@frozen(eq=False)
class Proposed:
    """One version of a candidate. ``text`` is ``None`` when there is nothing to build.

    ``transformation`` is the installed one that proposes this edit, ``None`` where the proposer made it.
    ``source`` is the file in which the session keeps the text; builds of it lie in ``directory``.
    """

    number: int
    repairs: int
    candidate: EditCandidate
    guards: tuple[GuardPart, ...]
    text: bytes | None
    directory: Path
    transformation: str | None = None
    source: Path | None = None

    @property
    def refused(self) -> str | None:
        """The first guard that does not let it through."""
        bad = next((g for g in self.guards if not g.passed), None)
        if bad is not None:
            place = f", line {bad.line}" if bad.line is not None else ""
            return f"guard {bad.guard}{place}: {bad.reason}"
        return None if self.text is not None else "nothing to build"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text or b"").hexdigest()


@frozen(eq=False)
class Built:
    """``build`` is ``None`` when no version got through; ``part`` is then of the last that was built."""

    proposed: Proposed
    build: BuiltProgram | None
    part: BuildPart | None


@frozen(eq=False)
class ProposalStage:
    """``judge_meaning`` judges what no other guard refuses, by what its owner declares to change.

    ``record_proposal`` and ``record_build`` write each version down before and after it is built;
    ``before_build`` returns when that may begin."""

    proposer: Contribution[Proposer]
    builder: ProgramBuilder
    root: Path
    original: bytes  # the user's source, whose host code every candidate has
    judge_meaning: JudgeMeaning
    record_proposal: Callable[[Proposed], None]
    record_build: Callable[[Proposed, BuildPart], None]
    before_build: Callable[[Proposed], None] = lambda _proposed: None

    def run(self, request: ProposalRequest, number: int) -> Built | None:
        """The next candidate of the proposer, built; ``None`` when it has none left."""
        first = self._ask("propose", lambda: self.proposer.value.propose(request))
        if first is None:
            return None
        proposed = self._take(first, request, number, 0)
        for repairs in range(1, _MOST_REPAIRS + 1):
            built = self.build(proposed)
            again = self._repaired(built, request)
            if again is None:
                return built
            proposed = self._take(again, request, number, repairs)
        return self.build(proposed)

    def _repaired(self, built: Built, request: ProposalRequest) -> EditCandidate | None:
        """Another version of what did not get through, if it did not and the proposer has one."""
        problem = _problem(built)
        if problem is None:
            return None
        failed = built.proposed.candidate
        return self._ask("repair", lambda: self.proposer.value.repair(request, failed, problem))

    def build(self, proposed: Proposed) -> Built:
        """Build one version, unless a guard refuses it."""
        if proposed.refused is not None or proposed.text is None:
            return Built(proposed, None, None)
        self.before_build(proposed)
        built = build_reproducibly(
            self.builder,
            proposed.text,
            fresh(proposed.directory, "build"),
            root=self.root,
            original=self.original,
        )
        self.record_build(proposed, built.part)
        return Built(proposed, built.build, built.part)

    def _ask(self, activity: str, call: Callable[[], EditCandidate | None]) -> EditCandidate | None:
        who = f"{activity} of proposer {self.proposer.value.name}"
        with plugin_boundary(self.proposer.plugin, who):
            answer = call()
        if answer is not None and not isinstance(answer, EditCandidate):
            raise PluginError(self.proposer.plugin, who, f"returned {type(answer).__name__}")
        return answer

    def _take(
        self, candidate: EditCandidate, request: ProposalRequest, number: int, repairs: int
    ) -> Proposed:
        directory = fresh(self.root, candidate_name(number, repairs))
        make_directory(directory)
        # A candidate is what a plugin made of it: guards without a reason, edits that are none.
        with plugin_boundary(self.proposer.plugin, f"candidate of proposer {self.proposer.value.name}"):
            guards, text = _checked(candidate, request.source)
        owner = source = None
        if text is not None:
            judged = judge_edit(request.source, candidate, text, request.transformations)
            for failure in judged.failures:
                request.note(f"warning: {failure.fact}")
            guards = (*guards, *(part for part in map(_part, judged.verdicts) if part not in guards))
            owner = judged.owner
            if all(guard.passed for guard in guards):
                declared = () if owner is None else owner.candidate.declares
                guards = (*guards, *self.judge_meaning(text, declared))
            source = directory / Path(request.source.path).name
            write_atomic(source, text)
        # Only a transformation may promise a limit: it is known to have looked at every launch.
        limit = None if owner is None else owner.candidate.workgroup_limit
        growth = None if owner is None else owner.candidate.lds_growth
        candidate = attrs.evolve(candidate, workgroup_limit=limit, lds_growth=growth)
        name = None if owner is None else owner.transformation
        proposed = Proposed(number, repairs, candidate, guards, text, directory, name, source)
        self.record_proposal(proposed)
        return proposed


def _checked(candidate: EditCandidate, source: KernelSource) -> tuple[tuple[GuardPart, ...], bytes | None]:
    """Its guards, and the changed source if there is one to build."""
    guards = tuple(_part(verdict) for verdict in candidate.guards)
    problem = edits_problem(candidate.edits, len(source.text))
    if problem is not None:
        return (*guards, GuardPart(guard="edits-fit", passed=False, reason=problem)), None
    problem = candidate_problem(candidate, source)
    if problem is not None:
        raise TypeError(problem)
    return guards, apply_edits(source.text, candidate.edits) if candidate.edits else None


def _part(verdict: GuardVerdict) -> GuardPart:
    return GuardPart(guard=verdict.guard, passed=verdict.passed, reason=verdict.reason, line=verdict.line)


def _problem(built: Built) -> str | None:
    if built.build is not None:
        return None
    if built.part is not None:
        return f"it does not build: {built.part.problem}"
    return built.proposed.refused
