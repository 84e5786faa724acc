"""A candidate of every kind, in two sessions: each is stopped by the gate that is there for it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.clang

KINDS = ("does not build", "changes nothing", "no faster", "moves more")


@pytest.fixture(scope="module")
def session(module_loop):
    """A session without a gain, run once."""
    module_loop.script(*KINDS)
    module_loop(*module_loop.CHECKED, "--max-iters", "9", "--patience", "9").assert_exit(1)
    return module_loop


@pytest.fixture(scope="module")
def judged(session, accepted_session):
    """The judgement of each kind of candidate."""
    candidates = [*session.document()["candidates"], *accepted_session.document()["candidates"]]
    return {candidate["summary"]: candidate["judgement"] for candidate in candidates}


def test_every_candidate_was_judged_in_turn(session) -> None:
    assert tuple(candidate["summary"] for candidate in session.document()["candidates"]) == KINDS
    assert session.document()["termination_reason"] == "candidates_exhausted"


@pytest.mark.parametrize(
    ("kind", "stage", "reason"),
    [
        ("does not build", "source_guards", "missing"),
        ("changes nothing", "binary_guards", "the same machine code as the version to beat"),
        ("wrong results", "equivalence", "smooth.out"),
        ("no faster", "measurement", "futile"),
        ("moves more", "architecture_guards", "+20.0%"),
    ],
)
def test_what_is_no_gain_is_rejected(judged, kind: str, stage: str, reason: str) -> None:
    assert judged[kind]["verdict"] == "rejected"
    assert judged[kind]["stage"] == stage
    assert reason in judged[kind]["reason"]


def test_the_good_candidate_is_accepted_with_the_declared_gain(accepted_loop, judged) -> None:
    assert judged["faster"]["verdict"] == "accepted"
    assert judged["faster"]["verified"] is True
    accepted = next(c for c in accepted_loop.document()["candidates"] if c["summary"] == "faster")
    # Ten pairs of times with a CV of 0.5 %: the median ratio is good to about 0.3 %.
    assert accepted["kernel_gain"] == pytest.approx(0.10, abs=0.01)
    # The kernel has 8/9 of the GPU's time; launches and copies take a little of the rest.
    assert accepted["measured_gain"] == pytest.approx(0.10 * 8 / 9, abs=0.012)
    assert accepted["predicted_gain"] == pytest.approx(accepted["measured_gain"], abs=0.012)


def test_the_accepted_source_lies_beside_the_untouched_one(accepted_loop) -> None:
    loop = accepted_loop
    assert loop.is_untouched
    written = loop.source.with_name("smooth_opt.hip")
    assert loop.document()["accepted_source"] == str(written)
    plain, loop_head = loop.original.decode(), "    for (int k = 0; k < taps; ++k) {\n"
    assert written.read_text() == plain.replace(loop_head, f"#pragma unroll 4\n{loop_head}")
    assert not list(loop.source.parent.glob("*.rpl-backup*"))


def test_nothing_is_measured_before_its_results_are_right(accepted_loop) -> None:
    """Of the two only the second, and twice."""
    assert [event["candidate"] for event in accepted_loop.events("measured")] == [2]
    assert [event["candidate"] for event in accepted_loop.events("remeasured")] == [2]


def test_no_gain_is_measured_again(session) -> None:
    measured = [event["candidate"] for event in session.events("measured")]
    assert measured == [KINDS.index(kind) + 1 for kind in ("no faster", "moves more")]
    assert session.events("remeasured") == []


def test_times_are_named_synthetic(accepted_loop) -> None:
    assert {event["measurement"]["origin"] for event in accepted_loop.events("measured")} == {"synthetic"}


def test_the_ledger_replays_to_the_same_verdicts(session, accepted_loop) -> None:
    for loop, verdict in ((session, "rejected"), (accepted_loop, "accepted")):
        loop.verify()
        (finished,) = loop.events("finished")
        assert finished["verdict"] == verdict


def test_a_finished_session_is_not_run_again(accepted_loop) -> None:
    runs = accepted_loop.bench.process_runs()
    accepted_loop.resume().assert_ok()
    assert accepted_loop.bench.process_runs() == runs
