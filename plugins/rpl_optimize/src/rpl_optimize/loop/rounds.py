"""The loop: choose a kernel, try one candidate after the other, accept what is proven, stop with a reason."""

from __future__ import annotations

import time
from pathlib import Path

from rpl_core.errors import InterruptedRunError, RplError
from rpl_core.interfaces.section import SectionOf
from rpl_core.pipeline import architectures
from rpl_core.text import counted, encodable
from rpl_core.values import frozen
from rpl_optimize.build.builders import BuiltProgram
from rpl_optimize.contracts import (
    BuildPart,
    CandidatePart,
    EvidencePart,
    JudgementPart,
    OptimizeDocument,
    TerminationName,
)
from rpl_optimize.hookspecs import PROPOSERS, TRANSFORMATIONS
from rpl_optimize.interfaces.proposer import InstalledProposer, ProposalRequest, TriedOut
from rpl_optimize.interfaces.transformation import EditCandidate, KernelSource
from rpl_optimize.ledger.lines import read_ledger
from rpl_optimize.ledger.session_files import Begun
from rpl_optimize.loop.baseline import (
    Baseline,
    CandidateGains,
    Confinement,
    Target,
    build_baseline,
    candidate_gains,
    ceiling_sentence,
    measured_facts,
    profile_baseline,
    rank_targets,
    worthwhile,
)
from rpl_optimize.loop.binary_stage import KnownCode
from rpl_optimize.loop.evaluate import Evaluation, Trial
from rpl_optimize.loop.meaning import SessionMeaning
from rpl_optimize.loop.measuring import MeasureStage, ModelStage, keep_best, run_to_run_cv, usual_run_s
from rpl_optimize.loop.proposing import Built, ProposalStage, Proposed, Tryout
from rpl_optimize.loop.session import (
    OptimizeSession,
    SessionRecords,
    StageName,
    Tools,
    is_changed,
    unified_diff,
    write_accepted,
)
from rpl_optimize.loop.state import LoopState, OpenEnd, Settled, replay_session
from rpl_optimize.measurement.gains import cost_sentence, rule_for
from rpl_optimize.measurement.verdict import judge, session_verdict
from rpl_optimize.session_layout import ORIGINAL, baseline_name, fresh
from rpl_optimize.transform import installed


@frozen
class Ending:
    reason: TerminationName
    detail: str


class OptimizeLoop:
    """One session from where ``state`` stands to its end."""

    def __init__(
        self, session: OptimizeSession, tools: Tools, state: LoopState, open_end: OpenEnd | None = None
    ) -> None:
        self._session = session
        self._request = session.request
        self._tools = tools
        self._state = state
        self._open_end = open_end or OpenEnd()
        self._unfinished = self._open_end.unfinished
        self._begun: Begun | None = None
        self._cost_told = False
        self._meaning: SessionMeaning | None = None
        self._started = time.monotonic()
        self._records = SessionRecords(session, tools.proposer.value.name)
        self._confinement = Confinement(self._request, tools, session.root, self._records.told)
        measuring = MeasureStage(
            self._request, tools, session.root, self._time_left, self._confinement.around, state
        )
        self._modelling = (
            None
            if tools.metric is None
            else ModelStage(self._request, tools, tools.metric, session.root, self._confinement.around)
        )
        self._evaluation = Evaluation(
            self._request,
            tools,
            measuring,
            session.record,
            session.draw_seed,
            session.recordings,
            self._modelling,
            before_runs=lambda number: self._hold("measure", number),
        )

    def run(self) -> OptimizeDocument:
        """Go on until a reason to stop. After Ctrl-C the session is closed: ``InterruptedRunError``."""
        try:
            if self._open_end.write_candidate is not None:
                self._write(self._open_end.write_candidate)
            if self._open_end.settled is not None:
                self._settle(self._open_end.settled)
            ending = self._iterate(self._first_baseline())
        except (InterruptedRunError, KeyboardInterrupt):
            # What was decided may be in the ledger and nowhere else yet.
            entries = read_ledger(self._session.ledger.path)
            resumed = replay_session(
                entries, self._session.root, self._session.original, self._request.policy
            )
            self._state = resumed.state
            self._session.follow(resumed)
            self._finish(Ending("interrupted", "stopped by the user or the system"))
            raise InterruptedRunError(
                f"interrupted; everything so far is kept in {self._session.root}",
                next_step=f"go on with `{self._request.command_name} --resume {self._session.root}`",
            ) from None
        except RplError as error:
            self._records.failure(error)
            raise
        self._finish(ending)
        return self._session.document

    def _iterate(self, baseline: Baseline) -> Ending:
        while True:
            ending = self._reason_to_stop()
            if ending is not None:
                return ending
            targets = rank_targets(baseline.documents.model("dag"), self._request.kernel)
            worth = worthwhile(targets, self._request.limits.min_improvement)
            if not worth:
                sentence = ceiling_sentence(targets, self._request.limits.min_improvement)
                self._records.no_target(sentence)
                return Ending("ceiling_too_low", sentence)
            self._tell_cost(worth[0], baseline)
            candidate = self._next_candidate(worth, baseline)
            if candidate is None:
                if self._state.spent(self._request.limits.patience):
                    return self._no_improvement()
                name = self._tools.proposer.value.name
                return Ending("candidates_exhausted", f"the proposer {name} has nothing left to try")
            baseline = self._try(*candidate, baseline)

    def _reason_to_stop(self) -> Ending | None:
        limits, state = self._request.limits, self._state
        if self._unfinished is not None:
            return None
        # First of all: without time a candidate got no chance, and that is no lack of improvement.
        left = self._time_left()
        if left is not None and left <= 0:
            return Ending("time_budget", f"the time budget of {limits.time_budget_s:g} s is used up")
        # One that proposes what is spent all the same is stopped here.
        stubborn = any(state.misses_of(name) > limits.patience for name in state.spent(limits.patience))
        if stubborn or state.misses_of(None) >= limits.patience:
            return self._no_improvement()
        if state.begun >= limits.candidates > state.tried:
            sharing = counted(
                limits.candidates, "candidate (--max-iters) shares", "candidates (--max-iters) share"
            )
            shared = f"the error that {sharing}"
            detail = f"interrupted measurements used up {shared}"
            return Ending("candidates_exhausted" if state.accepted else "no_improvement", detail)
        if state.tried >= limits.candidates:
            if not state.accepted:
                return Ending("no_improvement", f"none of {state.tried} candidates was accepted")
            detail = f"the limit of {counted(limits.candidates, 'candidate')} (--max-iters) is reached"
            return Ending("candidates_exhausted", detail)
        return None

    def _no_improvement(self) -> Ending:
        misses = counted(self._state.misses, "candidate was", "candidates in a row were")
        return Ending("no_improvement", f"{misses} not accepted")

    def _time_left(self) -> float | None:
        budget = self._request.limits.time_budget_s
        return None if budget is None else budget - (time.monotonic() - self._started)

    def _hold(self, stage: StageName, number: int) -> None:
        """Wait until the stage may begin; waiting takes nothing of the time budget."""
        begin = time.monotonic()
        self._tools.hold(stage, number)
        self._started += time.monotonic() - begin

    # --- baselines -------------------------------------------------------------------------------------

    def _first_baseline(self) -> Baseline:
        self._tools.step("baseline: build")
        directory = self._baseline_directory()
        build, part = build_baseline(
            self._tools.builder,
            self._state.text,
            directory / "build",
            self._session.root,
            original=self._state.host,
        )
        self._tools.step("baseline: profile")
        return self._profiled(build, part, directory)

    def _baseline_directory(self) -> Path:
        directory = fresh(self._session.root, baseline_name(self._state.baseline))
        directory.mkdir(parents=True)
        return directory

    def _profiled(self, build: BuiltProgram, part: BuildPart, directory: Path) -> Baseline:
        command = self._tools.builder.command_for(build)
        # The first version is the user's own and runs as they run it; later ones were candidates.
        with self._confinement.around(directory):
            documents = profile_baseline(self._request, self._tools, command, directory / "profile")
        baseline = Baseline(self._state.baseline, self._state.text, build, part, directory, documents)
        self._records.baseline(baseline)
        shift = self._state.set_dominant(documents.model("dag").dominant_symbol)
        if shift is not None:
            self._tools.note(f"dominance shift: {shift}")
        return baseline

    def _tell_cost(self, target: Target, baseline: Baseline) -> None:
        """Once, when the first kernel is chosen: what measuring will take."""
        limits = self._request.limits
        cv = run_to_run_cv(baseline, target.recorded)
        rule = rule_for(limits.min_improvement, target.ceiling_gain, limits.candidates, cv)
        if rule is None or self._cost_told or self._tools.metric is not None:
            return
        self._cost_told = True
        left = limits.candidates - self._state.tried
        placement = self._request.policy.placement_check
        self._tools.note(cost_sentence(rule, left, usual_run_s(baseline), placement=placement))

    # --- candidates ------------------------------------------------------------------------------------

    def _next_candidate(self, targets: tuple[Target, ...], baseline: Baseline) -> tuple[Built, Target] | None:
        """The proposer's next candidate for the most valuable kernel that it has one for."""
        if self._unfinished is not None:
            unfinished, self._unfinished = self._unfinished, None
            again = unfinished.find_target(targets)
            if again is not None:
                self._records.target(again, run_to_run_cv(baseline, again.recorded))
                proposed = unfinished.proposed(self._session.root)
                self._begun = unfinished.begun
                return self._proposals(again, baseline).build(proposed), again
        number = self._state.tried + 1
        self._hold("propose", number)
        for target in targets:
            self._tools.step(f"candidate {number}: proposal for {target.kernel}")
            self._records.target(target, run_to_run_cv(baseline, target.recorded))
            stage = self._proposals(target, baseline)
            built = stage.run(self._proposal_request(target, baseline), number)
            if built is not None:
                return built, target
        return None

    def _proposals(self, target: Target, baseline: Baseline) -> ProposalStage:
        meaning = self._meaning_of(baseline)

        def record_proposal(proposed: Proposed) -> None:
            self._records.proposal(proposed, target.kernel, self._state.text)

        def before_build(proposed: Proposed) -> None:
            self._hold("build", proposed.number)
            self._tools.step(f"candidate {proposed.number}: build ({proposed.candidate.summary})")

        tools = self._tools
        return ProposalStage(
            tools.proposer,
            tools.builder,
            self._session.root,
            self._state.host,
            meaning.judge,
            record_proposal,
            self._records.build,
            before_build,
            meaning.judge_constants,
        )

    def _meaning_of(self, baseline: Baseline) -> SessionMeaning:
        if self._meaning is None or self._meaning.baseline != baseline.number:
            self._meaning = SessionMeaning(self._request.build, baseline)
        return self._meaning

    def _try_out(
        self, candidate: EditCandidate, runs: int, asked: ProposalRequest, target: Target, baseline: Baseline
    ) -> TriedOut:
        """For a proposer that searches; its runs take of the session's time like all others."""
        left = self._time_left()
        if left is not None and left <= 0:
            return TriedOut(None, problem="the session's time budget is used up", built=False, ended=True)
        self._confinement.prepare(baseline)
        return Tryout(
            self._request,
            self._tools,
            self._session.root,
            self._proposals(target, baseline),
            baseline,
            target,
            self._state.host,
            self._modelling,
            self._confinement.around,
            self._confinement.of_checks,
            self._records.told,
        ).run(candidate, runs, asked)

    def _proposal_request(self, target: Target, baseline: Baseline) -> ProposalRequest:
        host = self._tools.host
        metric = self._tools.metric
        recorded = baseline.documents.model("profile").gpu.architecture
        name = recorded if metric is None else metric.value.architecture

        def try_out(candidate: EditCandidate, runs: int) -> TriedOut:
            return self._try_out(candidate, runs, asked, target, baseline)

        asked = ProposalRequest(
            source=KernelSource(
                str(self._request.source),
                baseline.text,
                target.kernel,
                architectures(None, host)(name) if name is not None else None,
                self._meaning_of(baseline).reading,
                _block_of(baseline, target.recorded),
            ),
            documents=baseline.plain_documents(),
            attempts=self._state.tried_for(target.kernel),
            spent=self._state.spent(self._request.limits.patience),
            recorded_kernel=target.recorded,
            binary=baseline.build.binary,
            directory=self._session.root,
            options=self._request.proposer_options,
            note=self._tools.note,
            transformations=installed(host.catalog.of(TRANSFORMATIONS)),
            proposers=tuple(
                InstalledProposer(c.plugin, c.value)
                for c in host.catalog.of(PROPOSERS).contributions
                if c.value.joins
            ),
            sections=tuple(
                SectionOf(c.plugin, c.value) for c in host.catalog.report_sections().contributions
            ),
            models=baseline.documents.by_name(),
            offered=host.catalog.of,
            plugin_options=self._request.build.options,
            try_out=try_out,
            usual_run_s=usual_run_s(baseline),
        )
        return asked

    def _try(self, built: Built, target: Target, baseline: Baseline) -> Baseline:
        """Judge a candidate; returns the baseline that holds afterwards."""
        if built.build is None:
            evidence = EvidencePart(source_guards=built.proposed.guards, build=built.part)
        else:
            known = self._known_code(baseline)
            self._confinement.prepare(baseline)
            with self._confinement.of_checks():
                begun = self._begun_of(built.build, baseline.build)
                trial = Trial(built, built.build, baseline, target, known, self._state.host, begun)
                evidence = self._evaluation.run(trial)
        self._hold("verdict", built.proposed.number)
        judgement = judge(evidence, self._request.policy)
        self._records.judgement(built.proposed.number, evidence, judgement)
        gains = candidate_gains(evidence, baseline, target, self._tools.host)
        if judgement.verdict == "accepted" and not self._approved(built, judgement, gains, baseline):
            declined = {"verdict": "rejected", "stage": "approval", "reason": "declined by the user"}
            judgement = judgement.model_copy(update=declined)
        candidate = self._candidate(built.proposed, target, judgement, gains, evidence)
        if judgement.verdict == "accepted":
            return self._accept(built, candidate)
        self._roll_back(candidate)
        return baseline

    def _begun_of(self, build: BuiltProgram, base: BuiltProgram) -> Begun | None:
        """What an interrupted session measured of the candidate under way, if both programs are the same."""
        begun, self._begun = self._begun, None
        if begun is None or (begun.code_sha256, begun.base_code_sha256) == (
            build.code_sha256,
            base.code_sha256,
        ):
            return begun
        self._tools.note(
            "warning: it was built to another program than before the interruption: it begins anew"
        )
        return None

    def _known_code(self, baseline: Baseline) -> dict[str, KnownCode]:
        known = {
            candidate.code_sha256: KnownCode(
                f"candidate {candidate.number}, which was {candidate.judgement.verdict.replace('_', ' ')}",
                candidate.judgement.verdict == "rejected",
            )
            for candidate in self._state.candidates
            if candidate.code_sha256 is not None and candidate.judgement.verdict != "accepted"
        }
        # By the source as well: a change of launches leaves the machine code as it may be.
        known |= {
            one.source_sha256: KnownCode(f"candidate {one.number}", one.judgement.verdict == "rejected")
            for one in self._state.candidates
        }
        return {**known, baseline.build.code_sha256: KnownCode("the version to beat", rejected=True)}

    def _candidate(
        self,
        proposed: Proposed,
        target: Target,
        judgement: JudgementPart,
        gains: CandidateGains,
        evidence: EvidencePart,
    ) -> CandidatePart:
        return CandidatePart(
            number=proposed.number,
            kernel=target.kernel,
            proposer=self._tools.proposer.value.name,
            transformation=proposed.transformation,
            summary=proposed.candidate.summary,
            source_sha256=proposed.sha256,
            judgement=judgement,
            source=self._records.source_of(proposed),
            predicted_gain=gains.predicted,
            measured_gain=gains.measured,
            kernel_gain=gains.kernel,
            kernel_gain_interval=gains.kernel_interval,
            **measured_facts(evidence),
        )

    def _approved(
        self, built: Built, judgement: JudgementPart, gains: CandidateGains, baseline: Baseline
    ) -> bool:
        diff = unified_diff(baseline.text, built.proposed.text or b"", self._request.source.name)
        begin = time.monotonic()
        approved = self._tools.approve(diff, f"{judgement.reason}; {gains.sentence()}")
        self._started += time.monotonic() - begin
        return approved

    def _settle(self, settled: Settled) -> None:
        """Decide what the recorded evidence refuses, without giving it another chance."""
        candidate = settled.candidate
        if settled.evidence is not None:
            self._records.judgement(candidate.number, settled.evidence, candidate.judgement)
        self._roll_back(candidate)

    def _roll_back(self, candidate: CandidatePart) -> None:
        verdict = candidate.judgement
        self._records.rolled_back(candidate)
        self._tools.note(f"candidate {candidate.number}: {verdict.verdict}: {verdict.reason}")
        self._state.add(candidate, accepted=False)
        self._session.update(candidates=tuple(self._state.candidates))

    def _accept(self, built: Built, candidate: CandidatePart) -> Baseline:
        """Write the candidate; from now on it is the one to beat."""
        assert built.build is not None
        assert built.part is not None
        assert built.proposed.text is not None
        self._records.accepted(candidate)
        self._state.take(built.proposed.text, built.proposed.retuned)
        self._state.add(candidate, accepted=True)
        self._write(candidate.number)
        self._tools.step(f"candidate {candidate.number}: profile of the accepted version")
        return self._profiled(built.build, built.part, self._baseline_directory())

    def _write(self, candidate: int) -> None:
        """Put the accepted version where the user finds it."""
        self._tools.step(f"candidate {candidate}: write")
        session, state = self._session, self._state
        written = write_accepted(self._request, state.text, session.original, state.ours)
        state.ours = written.sha256
        self._records.written(candidate, written)
        session.update(
            candidates=tuple(state.candidates),
            accepted_source=encodable(str(written.path)),
            backup=None if written.backup is None else encodable(str(written.backup)),
        )
        self._tools.note(f"candidate {candidate}: accepted, written to {written.path}")
        if not self._request.in_place and is_changed(self._request.source, session.original):
            place = session.root / ORIGINAL
            self._tools.note(f"warning: the source was changed meanwhile; this is made of the one in {place}")

    def _finish(self, ending: Ending) -> None:
        candidates = tuple(self._state.candidates)
        # An interrupted session may go on: nothing is said of it as a whole.
        found = session_verdict(c.judgement.verdict for c in candidates)
        verdict = None if ending.reason == "interrupted" else found
        # Before the last line, which binds it with all other files.
        best = keep_best(self._session.root, self._request.source, self._request.suffix, candidates)
        self._records.finished(ending.reason, ending.detail, verdict)
        self._session.update(
            state="finished",
            termination_reason=ending.reason,
            termination_detail=ending.detail,
            verdict=verdict,
            candidates=candidates,
            modelled_source=best,
            dominance_shifts=tuple(self._state.shifts),
        )


def _block_of(baseline: Baseline, recorded: str) -> tuple[int, int, int] | None:
    """The block size that the profile has for a kernel."""
    blocks = (
        kernel.kernel.block
        for kernel in baseline.documents.model("profile").kernels
        if kernel.name == recorded
    )
    block = next(blocks, None)
    if not block:
        return None
    x, y, z = (*block, 1, 1)[:3]
    return (x, y, z)
