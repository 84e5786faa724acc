"""Ask the proposer, build what it proposes, and let it repair what does not get through."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.errors import PluginError
from rpl_core.files import make_directory, write_atomic
from rpl_core.plugins.boundary import plugin_boundary
from rpl_core.values import frozen
from rpl_optimize.build.builders import BuiltProgram, ProgramBuilder, build_reproducibly
from rpl_optimize.contracts import BuildPart, GuardPart, RetunedName
from rpl_optimize.equivalence.stage import EquivalenceSubject
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.proposer import ProposalRequest, Proposer, TriedOut
from rpl_optimize.interfaces.transformation import (
    TUNED_CONSTANTS,
    DeclaredChange,
    EditCandidate,
    GuardVerdict,
    KernelSource,
    TunedConstants,
)
from rpl_optimize.loop.baseline import Baseline, Target, profile_baseline
from rpl_optimize.loop.measuring import CANDIDATE_FAILED, ModelStage
from rpl_optimize.session_layout import TRIED, candidate_name, fresh
from rpl_optimize.source_meaning.constants import Retuned
from rpl_optimize.transform import apply_edits, candidate_problem, edits_problem, judge_edit

if TYPE_CHECKING:
    from rpl_core.plugins.host import Contribution
    from rpl_optimize.loop.session import OptimizeRequest, Tools

    JudgeMeaning = Callable[[bytes, tuple[DeclaredChange, ...]], tuple[GuardPart, ...]]
    JudgeConstants = Callable[[bytes, TunedConstants, str], Retuned]

#: A proposer that goes on repairing beyond this is cut off; the bound that users know is its own (2).
_MOST_REPAIRS = 5
#: What constants may add to static LDS (chosen): what a workgroup does not have does not build.
_MOST_LDS_BYTES = 64 << 10


@frozen(eq=False)
class Proposed:
    """One version of a candidate. ``text`` is ``None`` when there is nothing to build.

    ``transformation`` is the installed one that proposes this edit, ``None`` where the proposer made it.
    ``source`` is the file in which the session keeps the text; builds of it lie in ``directory``.
    ``retuned``: constants of the source changed; "launches": and the host's code, in what it launches with.
    """

    number: int
    repairs: int
    candidate: EditCandidate
    guards: tuple[GuardPart, ...]
    text: bytes | None
    directory: Path
    transformation: str | None = None
    source: Path | None = None
    retuned: RetunedName | None = None

    @property
    def changes_launches(self) -> bool:
        """The host's code is its own, too."""
        return self.retuned == "launches"

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

    ``original`` is the source whose host code every candidate has, but for those that change launches.
    ``record_proposal`` and ``record_build`` write each version down before and after it is built;
    ``before_build`` returns when that may begin."""

    proposer: Contribution[Proposer]
    builder: ProgramBuilder
    root: Path
    original: bytes
    judge_meaning: JudgeMeaning
    record_proposal: Callable[[Proposed], None]
    record_build: Callable[[Proposed, BuildPart], None]
    before_build: Callable[[Proposed], None] = lambda _proposed: None
    judge_constants: JudgeConstants = lambda *_: Retuned("nobody could judge the constants")

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
            original=None if proposed.changes_launches else self.original,
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
        looked = self.look(candidate, request)
        source = None
        if looked.text is not None:
            source = directory / Path(request.source.path).name
            write_atomic(source, looked.text)
        proposed = Proposed(
            number,
            repairs,
            looked.candidate,
            looked.guards,
            looked.text,
            directory,
            looked.transformation,
            source,
            looked.retuned,
        )
        self.record_proposal(proposed)
        return proposed

    def look(self, candidate: EditCandidate, request: ProposalRequest) -> LookedAt:
        """All guards on the source. Nothing is written or recorded."""
        # A candidate is what a plugin made of it: guards without a reason, edits that are none.
        with plugin_boundary(self.proposer.plugin, f"candidate of proposer {self.proposer.value.name}"):
            guards, text = _checked(candidate, request.source)
        if text is None:
            return LookedAt(attrs.evolve(candidate, workgroup_limit=None, lds_growth=None), guards, None)
        tuned = [change for change in candidate.declares if isinstance(change, TunedConstants)]
        if len(tuned) == len(candidate.declares) == 1 and request.source.kernel is not None:
            return self._look_at_constants(candidate, guards, text, tuned[0], request.source.kernel)
        judged = judge_edit(request.source, candidate, text, request.transformations)
        for failure in judged.failures:
            request.note(f"warning: {failure.fact}")
        guards = (*guards, *(part for part in map(_part, judged.verdicts) if part not in guards))
        owner = judged.owner
        if all(guard.passed for guard in guards):
            declared = () if owner is None else owner.candidate.declares
            guards = (*guards, *self.judge_meaning(text, declared))
        # Only a transformation may promise a limit: it is known to have looked at every launch.
        limit = None if owner is None else owner.candidate.workgroup_limit
        growth = None if owner is None else owner.candidate.lds_growth
        candidate = attrs.evolve(candidate, workgroup_limit=limit, lds_growth=growth)
        return LookedAt(candidate, guards, text, None if owner is None else owner.transformation)

    def _look_at_constants(
        self,
        candidate: EditCandidate,
        guards: tuple[GuardPart, ...],
        text: bytes,
        tuned: TunedConstants,
        kernel: str,
    ) -> LookedAt:
        """The judge sees the whole unit, so nobody has to own the edit or to promise anything."""
        found = self.judge_constants(text, tuned, kernel)
        candidate = attrs.evolve(candidate, workgroup_limit=found.workgroup, lds_growth=_MOST_LDS_BYTES)
        retuned: RetunedName = "launches" if found.changes_launches else "device"
        return LookedAt(candidate, (*guards, _part(found.verdict())), text, TUNED_CONSTANTS, retuned)


@frozen(eq=False)
class LookedAt:
    """A candidate behind the guards on its source, with what these say of its build (``Proposed``)."""

    candidate: EditCandidate
    guards: tuple[GuardPart, ...]
    text: bytes | None
    transformation: str | None = None
    retuned: RetunedName | None = None


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


# One candidate built and run a few times, so that a proposer can search before it proposes.
#
# What is tried out proves nothing, and accepts nothing: a proposer that searched hands the best of it in as
# candidates, and each of them passes all gates from the beginning. So these runs are few, and no error of the
# session is spent on them. They are told in the ledger as notes.


@frozen(eq=False)
class Tryout:
    """Of candidates for ``target`` against ``baseline``; what they leave behind is removed.

    ``around`` a directory is the sandbox of what is run and writes there, ``of_checks`` that of checks.
    """

    request: OptimizeRequest
    tools: Tools
    root: Path
    stage: ProposalStage
    baseline: Baseline
    target: Target
    host: bytes
    modelling: ModelStage | None
    around: Callable[[Path], AbstractContextManager[None]]
    of_checks: Callable[[], AbstractContextManager[None]]
    tell: Callable[[str], None]

    def run(self, candidate: EditCandidate, runs: int, proposal: ProposalRequest) -> TriedOut:
        """Guards on the source, one build, the checks of results, and ``runs`` timed runs."""
        directory = fresh(self.root, TRIED)
        directory.mkdir(parents=True)
        try:
            found = self._run(candidate, runs, proposal, directory)
        except CANDIDATE_FAILED as error:
            found = TriedOut(None, problem=error.fact)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        result = found.problem or f"{found.value:.6g} {found.unit}"
        self.tell(f"tried out, which proves nothing: {candidate.summary}: {result}")
        return found

    def _run(
        self, candidate: EditCandidate, runs: int, proposal: ProposalRequest, directory: Path
    ) -> TriedOut:
        looked = self.stage.look(candidate, proposal)
        refused = next((guard for guard in looked.guards if not guard.passed), None)
        if refused is not None or looked.text is None:
            reason = "nothing to build" if refused is None else f"guard {refused.guard}: {refused.reason}"
            return TriedOut(None, problem=reason, built=False)
        self.tools.step(f"trying out: {candidate.summary}")
        own_host = looked.retuned == "launches"
        built = self.tools.builder.build(looked.text, directory / "build", None if own_host else self.host)
        if isinstance(built, BuildFailure):
            return TriedOut(None, problem=f"it does not build: {built.reason}")
        if built.host_code is not None and not built.host_code.passed:
            return TriedOut(None, problem=built.host_code.reason)
        subject = EquivalenceSubject(
            attrs.evolve(proposal.source, architecture=None, reading=None),
            self.baseline.build,
            built,
            self.request.command,
            self.host,
            same_launches=not own_host,
        )
        with self.of_checks():
            checks = self.tools.equivalence.run(subject, directory / "equivalence")
        wrong = next((check for check in checks if check.verdict == "different"), None)
        if wrong is not None:
            return TriedOut(None, problem=f"other results ({wrong.check}): {wrong.evidence}")
        return self._timed(built, runs, directory)

    def _timed(self, built: BuiltProgram, runs: int, directory: Path) -> TriedOut:
        if self.modelling is not None:
            figure = self.modelling.value(self.target.recorded, built, directory / "model")
            return TriedOut(figure.value, self.modelling.metric.value.unit)
        asked = attrs.evolve(self.request, runs=runs, roofline=False, trace_dependencies=False)
        command = self.tools.builder.command_for(built)
        place = directory / "profile"
        with self.around(place):
            documents = profile_baseline(asked, self.tools, command, place)
        kernels = documents.model("profile").kernels
        time_ms = next((kernel.runtime_ms for kernel in kernels if kernel.name == self.target.recorded), None)
        if time_ms is None:
            return TriedOut(None, problem=f"no launch of {self.target.recorded} was recorded")
        return TriedOut(time_ms, "ms")
