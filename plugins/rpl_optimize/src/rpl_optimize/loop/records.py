"""What a session writes to its ledger, event by event."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from rpl_core.errors import RplError
from rpl_optimize.ledger.events import LedgerEvent
from rpl_optimize.ledger.session_files import growing_files
from rpl_optimize.loop.accept import digest

if TYPE_CHECKING:
    from rpl_optimize.contracts.optimize import (
        BuildPart,
        CandidatePart,
        EvidencePart,
        JudgementPart,
        TerminationName,
        VerdictName,
    )
    from rpl_optimize.loop.accept import Written
    from rpl_optimize.loop.baseline import Baseline
    from rpl_optimize.loop.proposing import Proposed
    from rpl_optimize.loop.session import OptimizeSession
    from rpl_optimize.loop.target import Target


class SessionRecords:
    """``proposer`` is the name of the session's proposer."""

    def __init__(self, session: OptimizeSession, proposer: str) -> None:
        self._session = session
        self._proposer = proposer

    def baseline(self, baseline: Baseline) -> None:
        profile, dag = baseline.documents.model("profile"), baseline.documents.model("dag")
        self._session.record(
            LedgerEvent.BASELINE_PROFILED,
            {
                "number": baseline.number,
                "directory": self._session.relative(baseline.directory),
                "source_sha256": baseline.sha256,
                "recordings": self._session.recordings(baseline.profile_directory),
                "origin": dag.origin,
                "runs": profile.stability.runs or 0,
                "makespan_ns": dag.makespan_ns,
                "build": baseline.part,
                "device": None if profile.provenance is None else profile.provenance.device,
                "dominant": dag.dominant_symbol,
            },
        )

    def no_target(self, reason: str) -> None:
        self._session.record(LedgerEvent.TARGET_CHOSEN, {"kernel": None, "reason": reason})

    def target(self, target: Target, base_cv: float | None) -> None:
        self._session.record(
            LedgerEvent.TARGET_CHOSEN,
            {
                "kernel": target.recorded,
                "reason": f"the highest ceiling for which {self._proposer} may have a proposal",
                "share_of_path": target.ceiling_gain,
                "ceiling_gain": target.ceiling_gain,
                "base_cv": base_cv,
            },
        )

    def source_of(self, proposed: Proposed) -> str | None:
        """Where the session keeps the candidate's source, relative to its directory."""
        return None if proposed.source is None else self._session.relative(proposed.source)

    def proposal(self, proposed: Proposed, kernel: str, baseline: bytes) -> None:
        evidence = proposed.candidate.evidence
        self._session.record(
            LedgerEvent.PROPOSED,
            {
                "candidate": proposed.number,
                "kernel": kernel,
                "proposer": self._proposer,
                "summary": proposed.candidate.summary,
                "source_sha256": proposed.sha256,
                "baseline_sha256": digest(baseline),
                "source": self.source_of(proposed),
                "repairs": proposed.repairs,
                "changes_loop": proposed.candidate.changes_loop,
                "transformation": proposed.transformation,
                "workgroup_limit": proposed.candidate.workgroup_limit,
                "lds_growth": proposed.candidate.lds_growth,
                "expected_gain": None if evidence is None else evidence.expected_gain,
                "rests_on": {} if evidence is None else dict(evidence.facts),
                "records": growing_files(self._session.root),
            },
        )
        guarded = {"candidate": proposed.number, "guards": proposed.guards}
        self._session.record(LedgerEvent.SOURCE_GUARDED, guarded)

    def build(self, proposed: Proposed, part: BuildPart) -> None:
        self._session.record(LedgerEvent.BUILT, {"candidate": proposed.number, "build": part})

    def judgement(self, candidate: int, evidence: EvidencePart, judgement: JudgementPart) -> None:
        self._session.record(
            LedgerEvent.JUDGED,
            {
                "candidate": candidate,
                "evidence": evidence,
                "policy": self._session.request.policy,
                "judgement": judgement,
            },
        )

    def accepted(self, candidate: CandidatePart) -> None:
        self._session.record(
            LedgerEvent.ACCEPTED,
            {
                "candidate": candidate.number,
                "source_sha256": candidate.source_sha256,
                "predicted_gain": candidate.predicted_gain,
                "measured_gain": candidate.measured_gain,
                "kernel_gain": candidate.kernel_gain,
                "kernel_gain_interval": candidate.kernel_gain_interval,
            },
        )

    def rolled_back(self, candidate: CandidatePart) -> None:
        verdict = candidate.judgement
        self._session.record(
            LedgerEvent.ROLLED_BACK,
            {
                "candidate": candidate.number,
                "predicted_gain": candidate.predicted_gain,
                "verdict": verdict.verdict,
                "reason": verdict.reason,
            },
        )

    def written(self, candidate: int, written: Written) -> None:
        self._session.record(
            LedgerEvent.WRITTEN,
            {
                "candidate": candidate,
                "path": str(written.path),
                "sha256": written.sha256,
                "before_sha256": written.before_sha256,
                "backup": None if written.backup is None else str(written.backup),
            },
        )

    def failure(self, error: RplError) -> None:
        """Why the session stopped without an end; a ledger that can't be written then stays as it is."""
        with contextlib.suppress(RplError):
            self._session.record(LedgerEvent.NOTE, {"text": f"stopped: {error.one_line()}"})

    def told(self, text: str) -> None:
        """Something that who reads the ledger should know."""
        self._session.record(LedgerEvent.NOTE, {"text": text})

    def finished(self, reason: TerminationName, detail: str, verdict: VerdictName | None) -> None:
        self._session.record(
            LedgerEvent.FINISHED,
            {
                "termination_reason": reason,
                "termination_detail": detail,
                "verdict": verdict,
                "source_sha256": _hash_of(self._session.request.source),
                "files": self._session.files(),
            },
        )


def _hash_of(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except OSError:  # removed meanwhile; the session can be closed all the same
        return None
