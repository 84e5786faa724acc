"""One candidate built and run a few times, so that a proposer can search before it proposes.

What is tried out proves nothing, and accepts nothing: a proposer that searched hands the best of it in as
candidates, and each of them passes all gates from the beginning. So these runs are few, and no error of the
session is spent on them. They are told in the ledger as notes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from rpl_core.values import frozen
from rpl_optimize.equivalence.stage import EquivalenceSubject
from rpl_optimize.interfaces.builder import BuildFailure
from rpl_optimize.interfaces.proposer import ProposalRequest, TriedOut
from rpl_optimize.interfaces.transformation import EditCandidate
from rpl_optimize.loop.baseline import profile_baseline
from rpl_optimize.loop.measuring import CANDIDATE_FAILED
from rpl_optimize.session_layout import TRIED, fresh

if TYPE_CHECKING:
    from rpl_optimize.build.builders import BuiltProgram
    from rpl_optimize.loop.baseline import Baseline, Target
    from rpl_optimize.loop.measuring import ModelStage
    from rpl_optimize.loop.proposing import ProposalStage
    from rpl_optimize.loop.request import OptimizeRequest, Tools


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
        time_ms = next((one.runtime_ms for one in kernels if one.name == self.target.recorded), None)
        if time_ms is None:
            return TriedOut(None, problem=f"no launch of {self.target.recorded} was recorded")
        return TriedOut(time_ms, "ms")
