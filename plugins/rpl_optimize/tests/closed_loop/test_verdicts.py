"""One session with a candidate of every kind: each is stopped by the gate that is there for it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.clang

KINDS = (
    *("does not build", "changes nothing", "spills", "wrong results", "no faster", "moves more"),
    "faster",
)


@pytest.fixture(scope="module")
def session(module_loop):
    """The session, run once, with its outcome."""
    module_loop.script(*KINDS)
    outcome = module_loop(*module_loop.CHECKED, "--max-iters", "7", "--patience", "7")
    return module_loop, outcome.assert_ok()


@pytest.fixture(scope="module")
def judged(session):
    """The judgement of each kind of candidate."""
    loop, _ = session
    return {c["summary"]: c["judgement"] for c in loop.document()["candidates"]}


def test_every_candidate_was_judged_in_turn(session, judged) -> None:
    loop, _ = session
    assert tuple(judged) == KINDS
    assert loop.document()["termination_reason"] == "candidates_exhausted"


@pytest.mark.parametrize(
    ("kind", "stage", "reason"),
    [
        ("does not build", "source_guards", "missing"),
        ("changes nothing", "binary_guards", "the same machine code as the version to beat"),
        ("spills", "equivalence", "smooth.out"),  # what it costs is for the measurement, which it never sees
        ("wrong results", "equivalence", "smooth.out"),
        ("no faster", "measurement", "futile"),
        ("moves more", "architecture_guards", "+20.0%"),
    ],
)
def test_what_is_no_gain_is_rejected(judged, kind: str, stage: str, reason: str) -> None:
    assert judged[kind]["verdict"] == "rejected"
    assert judged[kind]["stage"] == stage
    assert reason in judged[kind]["reason"]


def test_the_good_candidate_is_accepted_with_the_declared_gain(session, judged) -> None:
    loop, outcome = session
    assert judged["faster"]["verdict"] == "accepted"
    assert judged["faster"]["verified"] is True
    accepted = next(c for c in loop.document()["candidates"] if c["summary"] == "faster")
    # Ten pairs of times with a CV of 0.5 %: the median ratio is good to about 0.3 %.
    assert accepted["kernel_gain"] == pytest.approx(0.10, abs=0.01)
    # The kernel has 8/9 of the GPU's time; launches and copies take a little of the rest.
    assert accepted["measured_gain"] == pytest.approx(0.10 * 8 / 9, abs=0.012)
    assert accepted["predicted_gain"] == pytest.approx(accepted["measured_gain"], abs=0.012)
    assert "faster" in outcome.stdout


def test_the_accepted_source_lies_beside_the_untouched_one(session) -> None:
    loop, _ = session
    assert loop.is_untouched
    written = loop.source.with_name("smooth_opt.hip")
    assert loop.document()["accepted_source"] == str(written)
    plain, loop_head = loop.original.decode(), "    for (int k = 0; k < taps; ++k) {\n"
    assert written.read_text() == plain.replace(loop_head, f"#pragma unroll 4\n{loop_head}")
    assert not list(loop.source.parent.glob("*.rpl-backup*"))


def test_nothing_is_measured_before_its_results_are_right(session) -> None:
    loop, _ = session
    measured = [event["candidate"] for event in loop.events("measured")]
    assert measured == [KINDS.index(kind) + 1 for kind in ("no faster", "moves more", "faster")]
    assert [event["candidate"] for event in loop.events("remeasured")] == [KINDS.index("faster") + 1]


def test_times_are_named_synthetic(session) -> None:
    loop, _ = session
    assert {event["measurement"]["origin"] for event in loop.events("measured")} == {"synthetic"}


def test_the_ledger_replays_to_the_same_verdicts(session) -> None:
    loop, _ = session
    loop.verify()
    (finished,) = loop.events("finished")
    assert finished["verdict"] == "accepted"


def test_a_finished_session_is_not_run_again(session) -> None:
    loop, _ = session
    runs = loop.bench.process_runs()
    loop.resume().assert_ok()
    assert loop.bench.process_runs() == runs
