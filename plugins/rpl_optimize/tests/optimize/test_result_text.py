"""What a session's result looks like."""

from __future__ import annotations

from pathlib import Path

from rpl_optimize.cli.optimize_command import optimize_text
from rpl_optimize.contracts import CandidatePart, JudgementPart, OptimizeDocument


def candidate(verdict="rejected", *, verified=True, **figures):
    judgement = JudgementPart(verdict=verdict, stage="measurement", reason="because", verified=verified)
    return CandidatePart(
        number=1,
        kernel="k",
        proposer="deterministic",
        summary="an edit",
        source_sha256="0" * 64,
        judgement=judgement,
        source="candidates/001/k.hip",
        **figures,
    )


def text_of(*candidates, verdict="rejected"):
    document = OptimizeDocument(
        schema_version="1.0",
        command=("./app",),
        source="k.hip",
        source_sha256="0" * 64,
        proposer="deterministic",
        state="finished",
        termination_reason="no_improvement",
        termination_detail="all were tried",
        verdict=verdict,
        candidates=candidates,
    )
    return optimize_text(document, Path("session"))


def test_a_gain_that_nothing_confirmed_stands_in_brackets():
    text = text_of(candidate(first_kernel_gain=0.034, origin="measured", pairs=10))
    assert "(+3.4%)" in text
    assert "+3.4%" not in text_of(candidate(kernel_gain=0.05, first_kernel_gain=0.034))


def test_an_accepted_verdict_says_what_it_does_not_rest_on():
    unverified = candidate("accepted", verified=False, origin="synthetic", kernel_gain=0.1)
    line = next(row for row in text_of(unverified, verdict="accepted").splitlines() if "verdict:" in row)
    assert line == (
        "verdict: accepted (unverified: no check saw its results; "
        "synthetic times: no measurement of hardware)"
    )
    honest = candidate("accepted", origin="measured", kernel_gain=0.1)
    assert "verdict: accepted\n" in text_of(honest, verdict="accepted")


def test_an_undecided_candidate_is_kept_and_named():
    assert "(kept: candidates/001/k.hip)" in text_of(candidate("no_verdict"), verdict="no_verdict")
    assert "kept" not in text_of(candidate())


def test_without_a_candidate_nothing_is_called_rejected():
    assert "verdict: nothing was accepted: no candidate was judged" in text_of()
