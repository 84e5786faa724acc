"""How far a session came, read from its ledger alone."""

from __future__ import annotations

import attrs
import pytest

from rpl_core.errors import BadDataError, RplError
from rpl_optimize.contracts import EvidencePart, GuardPart, JudgementPart, PolicyPart
from rpl_optimize.ledger.lines import Ledger, LedgerEvent, read_ledger
from rpl_optimize.loop.baseline import Target
from rpl_optimize.loop.session import OptimizeSession, digest
from rpl_optimize.loop.state import OpenEnd, read_session, replay_session
from rpl_testkit.pair_model import flawless_evidence

from .conftest import measured

ORIGINAL = b"original"
HASH = digest(ORIGINAL)


class Story:
    """Writes the events of a session, as the loop would."""

    def __init__(self, root):
        self.root = root
        self.ledger = Ledger.create(root / "ledger.jsonl")

    def proposed(self, number, text=b"changed", *, source=None, recorded=None, retuned=None):
        path = self.root / "candidates" / f"{number:03d}" / "kernel.hip"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        data = {
            "candidate": number,
            "kernel": "k",
            "proposer": "test",
            "summary": f"edit {number}",
            "source_sha256": recorded or digest(text),
            "source": source or str(path.relative_to(self.root)),
            "changes_loop": True,
            "retuned": retuned,
        }
        self.ledger.append(LedgerEvent.PROPOSED, data)
        guard = {"guard": "g", "passed": True, "reason": "fine"}
        self.ledger.append(LedgerEvent.SOURCE_GUARDED, {"candidate": number, "guards": [guard]})

    def judged(self, number, verdict):
        judgement = JudgementPart(verdict=verdict, stage="measurement", reason="because")
        data = {
            "candidate": number,
            "evidence": EvidencePart(),
            "policy": PolicyPart(),
            "judgement": judgement,
        }
        self.ledger.append(LedgerEvent.JUDGED, data)

    def tested(self, number, measurement):
        """All stages of a candidate up to its measurement; returns what they found."""
        self.proposed(number)
        found = flawless_evidence().model_copy(
            update={
                "source_guards": (GuardPart(guard="g", passed=True, reason="fine"),),
                "measurement": measurement,
                "architecture_guards": (),
            }
        )
        stages = (
            (LedgerEvent.BUILT, {"build": found.build}),
            (LedgerEvent.BINARY_GUARDED, {"guards": found.binary_guards}),
            (LedgerEvent.EQUIVALENCE_CHECKED, {"checks": found.checks}),
            (LedgerEvent.MEASURED, {"measurement": measurement}),
        )
        for event, data in stages:
            self.ledger.append(event, {"candidate": number, **data})
        return found

    def rolled_back(self, number, verdict="rejected", reason="because"):
        self.ledger.append(
            LedgerEvent.ROLLED_BACK, {"candidate": number, "verdict": verdict, "reason": reason}
        )

    def accepted(self, number, text=b"changed"):
        data = {"candidate": number, "source_sha256": digest(text), "kernel_gain": 0.1}
        self.ledger.append(LedgerEvent.ACCEPTED, data)

    def written(self, number, text=b"changed"):
        data = {"candidate": number, "path": "kernel_opt.hip", "sha256": digest(text)}
        self.ledger.append(LedgerEvent.WRITTEN, data)

    def finished(self, reason):
        self.ledger.append(LedgerEvent.FINISHED, {"termination_reason": reason})

    def resumed(self):
        self.ledger.close()
        return replay_session(read_ledger(self.ledger.path), self.root, ORIGINAL, PolicyPart())


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path)


def test_accepted_launches_are_the_host_code_of_what_follows(story):
    """What changes device code only leaves the host's as it was; one under way is known for what it is."""
    texts = {1: (b"device", "device"), 2: (b"launches", "launches"), 3: (b"later", None)}
    for number, (text, retuned) in texts.items():
        story.proposed(number, text, retuned=retuned)
        story.judged(number, "accepted")
        story.accepted(number, text)
        story.written(number, text)
    story.proposed(4, b"again", retuned="launches")
    resumed = story.resumed()
    assert (resumed.state.text, resumed.state.host) == (b"later", b"launches")
    assert resumed.open_end.unfinished is not None
    assert resumed.open_end.unfinished.proposed(story.root).retuned == "launches"


def test_without_other_launches_the_host_code_is_the_users(story):
    story.proposed(1, retuned="device")
    story.judged(1, "accepted")
    story.accepted(1)
    assert story.resumed().state.host == ORIGINAL


def test_judged_candidates_are_remembered(story):
    story.proposed(1)
    story.judged(1, "rejected")
    story.rolled_back(1)
    story.proposed(2)
    story.judged(2, "accepted")
    story.accepted(2)
    story.written(2)
    story.proposed(3, b"other")
    story.judged(3, "inconclusive")
    story.rolled_back(3, "inconclusive")
    resumed = story.resumed()
    state = resumed.state
    assert (state.tried, state.misses, state.text) == (3, 1, b"changed")
    assert [c.judgement.verdict for c in state.candidates] == ["rejected", "accepted", "inconclusive"]
    # Gains are those of the evidence, whatever the line that accepts says: none was measured here.
    assert state.candidates[1].kernel_gain is None
    assert [a.summary for a in state.tried_for("k")] == ["edit 1", "edit 2", "edit 3"]
    assert state.ours == digest(b"changed")
    assert resumed.written.candidate == 2
    assert (resumed.open_end, resumed.finished) == (OpenEnd(), None)


def test_a_candidate_under_way_is_taken_up_again(story, tmp_path):
    story.proposed(1)
    story.judged(1, "accepted")
    resumed = story.resumed()
    assert resumed.state.candidates == [], "judged, but the user was not asked yet"
    unfinished = resumed.open_end.unfinished
    assert unfinished is not None
    other, own = Target("x", "x", 0.5), Target("k(int)", "k", 0.4)
    assert unfinished.find_target((other, own)) is own
    again = unfinished.proposed(tmp_path)
    assert (again.number, again.text, again.refused) == (1, b"changed", None)
    assert again.candidate.changes_loop
    assert again.directory.name == "001-again2"


def test_what_was_judged_and_refused_is_not_judged_again(story) -> None:
    """Measuring it once more would be another chance."""
    story.proposed(1)
    story.judged(1, "inconclusive")
    end = story.resumed().open_end
    assert end.unfinished is None
    assert end.settled.evidence is None
    assert end.settled.candidate.judgement.verdict == "inconclusive"


@pytest.mark.parametrize(("gain", "verdict"), [(0.0, "rejected"), (0.02, "inconclusive")])
def test_what_was_measured_and_refused_is_not_measured_again(story, gain, verdict) -> None:
    evidence = story.tested(1, measured(gain, 30))
    end = story.resumed().open_end
    assert end.unfinished is None
    assert end.settled.evidence == evidence
    assert end.settled.candidate.judgement.verdict == verdict


def test_what_the_measurement_did_not_refuse_goes_on(story) -> None:
    story.tested(1, measured(0.06))
    assert story.resumed().open_end.unfinished is not None


def test_what_was_measured_is_taken_along(story) -> None:
    """For the same program it counts: to measure it anew would be another draw."""
    measurement = measured(0.06)
    found = story.tested(1, measurement)
    begun = story.resumed().open_end.unfinished.begun
    assert begun.code_sha256 == found.build.code_sha256
    assert (begun.finished, begun.parts["measurement"]) == (("measurement",), measurement)
    assert begun.under_way == ()


def test_a_measurement_under_way_is_taken_along_until_another_one_is_planned(story) -> None:
    story.tested(1, measured(0.06))
    plan = {"candidate": 1, "rule": measured(0.06).rule, "fewest_runs": 8, "most_runs": 82}
    for number, stage in enumerate(("remeasurement", "measurement"), 1):
        place = {"directory": f"candidates/001/{number}"}
        story.ledger.append(LedgerEvent.PLANNED, {**plan, **place, "stage": stage, "seed": number})
    begun = story.resumed().open_end.unfinished.begun
    assert [(one.stage, one.seed) for one in begun.under_way] == [("measurement", 2)]
    assert begun.finished == ()


def test_every_measurement_that_was_begun_is_counted(story) -> None:
    """The third was killed before it ended: it took its part of the error as the others did."""
    rule = measured(0.06).rule
    plan = {"candidate": 1, "rule": rule, "seed": 1, "fewest_runs": 8, "most_runs": 82}
    story.proposed(1)
    for stage in ("kernel_alone", "measurement", "measurement", "remeasurement", "measurement"):
        story.ledger.append(LedgerEvent.PLANNED, {**plan, "stage": stage})
    assert story.resumed().state.begun == 3


def test_who_dominated_is_remembered(story) -> None:
    for number, dominant in enumerate(("a", "a", "b"), 1):
        data = {"number": number, "directory": "d", "source_sha256": HASH, "dominant": dominant}
        story.ledger.append(LedgerEvent.BASELINE_PROFILED, data)
    state = story.resumed().state
    assert (state.dominant, state.shifts) == ("b", ["b dominates now, no longer a"])
    assert state.baseline == 1, "nothing was accepted, so it is still the user's version"


def test_an_accepted_version_that_was_not_written_is_due(story):
    story.proposed(1)
    story.judged(1, "accepted")
    story.accepted(1)
    assert story.resumed().open_end == OpenEnd(write_candidate=1)


def test_what_the_user_declined_stays_declined(story):
    story.proposed(1)
    story.judged(1, "accepted")
    story.rolled_back(1, reason="declined by the user")
    candidate = story.resumed().state.candidates[0]
    assert (candidate.judgement.verdict, candidate.judgement.reason) == ("rejected", "declined by the user")


@pytest.mark.parametrize(("reason", "finished"), [("interrupted", None), ("time_budget", "time_budget")])
def test_only_an_interrupted_session_goes_on(story, reason, finished):
    story.finished(reason)
    ended = story.resumed().finished
    assert (ended and ended.termination_reason) == finished


def test_a_source_that_was_changed_is_refused(story):
    story.proposed(1, recorded=digest(b"something else"))
    with pytest.raises(BadDataError, match="not what the ledger says"):
        story.resumed()


def test_a_source_outside_of_the_session_is_refused(story, tmp_path):
    secret = tmp_path.parent / "secret.hip"
    secret.write_bytes(b"secret")
    story.proposed(1, source="../secret.hip", recorded=digest(b"secret"))
    with pytest.raises(BadDataError, match="outside of the session"):
        story.resumed()


@pytest.mark.parametrize("name", ["a\0b", "loop/x"])
def test_a_source_that_no_file_can_be_is_refused(story, tmp_path, name) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    story.proposed(1, source=name)
    with pytest.raises(RplError):
        story.resumed()


def test_a_link_that_leads_outside_is_refused(story, tmp_path) -> None:
    secret = tmp_path.parent / "secret.hip"
    secret.write_bytes(b"changed")
    (tmp_path / "link.hip").symlink_to(secret)
    story.proposed(1, source="link.hip")
    with pytest.raises(BadDataError, match="outside of the session"):
        story.resumed()


def test_decisions_without_a_candidate_are_refused(story):
    story.judged(1, "accepted")
    story.accepted(1)
    with pytest.raises(BadDataError, match="never proposed"):
        story.resumed()


# --- the session's directory ---------------------------------------------------------------------------

OPTIONS = {"max_iters": 3, "suffix": "_opt"}


@pytest.fixture
def begun(story, request_for):
    """A session that has begun; ``read(**options)`` takes it up with these options."""
    request = request_for()
    original = request.source.read_bytes()
    started = {
        "tool_version": "1",
        "command": request.command,
        "source": str(request.source),
        "source_sha256": digest(original),
        "proposer": "test",
        "policy": PolicyPart(allow_unverified=True),
        "options": OPTIONS,
    }
    story.ledger.append(LedgerEvent.SESSION_STARTED, started)
    copy = story.root / "original" / "kernel.hip"
    copy.parent.mkdir()
    copy.write_bytes(original)

    def read(proposer="test", command=request.command, **options):
        story.ledger.close()
        asked = attrs.evolve(request, command=command)
        return read_session(story.root, asked, {**OPTIONS, **options}, proposer)

    return read


def test_what_was_allowed_at_the_beginning_holds(begun):
    assert begun().policy == PolicyPart(allow_unverified=True)


@pytest.mark.parametrize(
    "changes", [{"max_iters": 9}, {"suffix": ""}, {"proposer": "llm"}, {"command": ("./app", "1")}]
)
def test_a_call_that_is_not_the_ledgers_is_refused(begun, changes):
    with pytest.raises(BadDataError, match="another"):
        begun(**changes)


def test_a_ledger_that_contradicts_itself_is_refused(begun, story):
    story.proposed(1)
    story.judged(1, "accepted")
    with pytest.raises(BadDataError, match="contradicts itself"):
        begun()


def test_another_copy_of_the_source_is_refused(begun, story):
    (story.root / "original" / "kernel.hip").write_bytes(b"other")
    with pytest.raises(BadDataError, match="the copy of the source"):
        begun()


def test_what_stopped_before_it_began_is_no_session(story, request_for):
    with pytest.raises(BadDataError, match="before it began"):
        read_session(story.root, request_for(), {}, "test")


def test_the_result_is_made_from_the_ledger(story, request_for):
    """optimize.json may be old, broken or made up."""
    story.proposed(1)
    story.judged(1, "accepted")
    story.accepted(1)
    story.written(1)
    data = {"termination_reason": "time_budget", "verdict": "accepted"}
    story.ledger.append(LedgerEvent.FINISHED, data)
    made_up = '{"verdict": "rejected"}'
    (story.root / "optimize.json").write_text(made_up)
    session = OptimizeSession.resume(story.root, request_for(), story.ledger, story.resumed(), "test")
    assert (session.document.state, session.document.verdict) == ("finished", "accepted")
    assert session.document.termination_reason == "time_budget"
    assert session.document.accepted_source == "kernel_opt.hip"
    assert [c.number for c in session.document.candidates] == [1]
    assert (story.root / "optimize.json").read_text() != made_up
