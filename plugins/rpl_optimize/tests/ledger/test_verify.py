"""Replaying verdicts, and ``rpl ledger`` through its real entry point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from rpl_optimize.contracts import (
    CheckPart,
    EvidencePart,
    GuardPart,
    JudgementPart,
    MeasurementPart,
    PolicyPart,
)
from rpl_optimize.ledger import lines as writer
from rpl_optimize.ledger.lines import Ledger
from rpl_optimize.ledger.lines import LedgerEvent as Event
from rpl_optimize.ledger.session_files import seed_after
from rpl_optimize.ledger.verify import verify_ledger
from rpl_optimize.measurement.verdict import judge

from .conftest import SHA, STARTED, blank_evidence, candidate_events, note

Events = list[tuple[Event, dict[str, Any]]]


@pytest.fixture
def accepted() -> EvidencePart:
    """A candidate that the model's pairs prove, measured twice, as older versions did: without a plan."""
    import numpy as np

    from rpl_measure.sequential import LOOKS
    from rpl_optimize.measurement.gains import rule_for
    from rpl_optimize.measurement.measure import measure_from, remeasure_from
    from rpl_testkit.pair_model import ModelledPairs, TimingModel, flawless_evidence

    source = ModelledPairs(TimingModel(0.01, gain=0.1), np.random.default_rng(1))
    rule = rule_for(0.02, 0.8, 3, 0.01)
    assert rule is not None
    rule = attrs.evolve(rule, looks=LOOKS, screening=(), screening_gain=0.0, centre="median")
    parts = {
        "measurement": measure_from(source, "k", rule, "a", seed=1),
        "remeasurement": remeasure_from(source, "k", rule, "b", seed=2, pairs=10),
    }
    update = {name: part.model_copy(update={"seed": None}) for name, part in parts.items()}
    return flawless_evidence().model_copy(update=update)


def accepted_events(evidence: EvidencePart) -> Events:
    finished = {"termination_reason": "candidates_exhausted", "verdict": "accepted"}
    return [
        *candidate_events(evidence),
        (Event.ACCEPTED, {"candidate": 1, "source_sha256": SHA}),
        (Event.FINISHED, finished),
    ]


def edited(events: Events, event: Event, **changes: Any) -> Events:
    return [(name, {**data, **changes} if name is event else data) for name, data in events]


def test_a_session_replays_to_the_same_verdicts(write_ledger, accepted) -> None:
    refused = blank_evidence().model_copy(
        update={"binary_guards": (GuardPart(guard="lds", passed=False, reason="more"),)}
    )
    path = write_ledger([*candidate_events(refused, 2), *accepted_events(accepted)])
    found = verify_ledger(path)
    assert found.agrees
    assert found.finished
    assert [(v.candidate, v.replayed.verdict) for v in found.verdicts] == [(2, "rejected"), (1, "accepted")]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, None),
        ({"seed": 5}, "does not follow from the line before"),
        ({"stage": "remeasurement"}, "the measurement of candidate 1 was not planned before"),
        ({"rule": {"alpha": 0.001}}, "is not the one that was planned"),
    ],
)
def test_what_was_measured_was_planned(tmp_path: Path, change: dict[str, Any], problem: str | None) -> None:
    """Rule and order are written down before the first run; nobody chooses the order."""
    from rpl_optimize.measurement.gains import rule_for
    from rpl_optimize.measurement.measure import rule_part

    rule = rule_for(0.02, 0.8, 3, 0.01)
    assert rule is not None
    with Ledger.create(tmp_path / "ledger.jsonl") as ledger:
        ledger.append(Event.SESSION_STARTED, STARTED)
        seed = seed_after(ledger.last_sha256)
        planned = {"candidate": 1, "stage": "measurement", "rule": rule_part(rule), "seed": seed}
        changed = {name: value for name, value in change.items() if name != "rule"}
        changed |= {"rule": rule_part(attrs.evolve(rule, **change["rule"]))} if "rule" in change else {}
        ledger.append(Event.PLANNED, {**planned, "fewest_runs": 8, "most_runs": 82, **changed})
        part = MeasurementPart(kernel="k", rule=rule_part(rule), seed=changed.get("seed", seed))
        ledger.append(Event.MEASURED, {"candidate": 1, "measurement": part})
    problems = [text for _, text in verify_ledger(tmp_path / "ledger.jsonl").problems]
    assert [text for text in problems if problem is not None and problem in text] == problems
    assert bool(problems) is (problem is not None)


@pytest.mark.parametrize(
    ("judgement", "difference"),
    [
        (JudgementPart(verdict="rejected", stage="remeasurement", reason="", verified=True), "verdict"),
        (JudgementPart(verdict="accepted", stage="equivalence", reason="", verified=True), "stage"),
        (JudgementPart(verdict="accepted", stage="remeasurement", reason=""), "verified"),
    ],
)
def test_another_verdict_than_the_evidence_gives_is_found(write_ledger, accepted, judgement, difference):
    path = write_ledger(edited(accepted_events(accepted), Event.JUDGED, judgement=judgement))
    (replayed,) = verify_ledger(path).verdicts
    assert difference in replayed.differences[0]


def test_reasons_may_be_worded_otherwise(write_ledger, accepted) -> None:
    judgement = JudgementPart(verdict="accepted", stage="remeasurement", reason="proven", verified=True)
    path = write_ledger(edited(accepted_events(accepted), Event.JUDGED, judgement=judgement))
    assert verify_ledger(path).agrees


def test_a_recorded_look_that_its_times_do_not_give_is_found(write_ledger, accepted) -> None:
    measurement = accepted.measurement
    lying = measurement.model_copy(update={"look": measurement.look.model_copy(update={"p": 0.5})})
    path = write_ledger(accepted_events(accepted.model_copy(update={"measurement": lying})))
    (replayed,) = verify_ledger(path).verdicts
    assert "look of the measurement" in replayed.differences[0]


def problems(path: Path) -> str:
    found = verify_ledger(path)
    assert not found.agrees
    return "; ".join(problem for _, problem in found.problems)


@pytest.mark.parametrize(
    ("event", "changes", "word"),
    [
        (Event.SOURCE_GUARDED, {"guards": ()}, "source_guarded"),
        (Event.BUILT, {"build": {"commands": (), "reproducible": False}}, "built"),
        (Event.BINARY_GUARDED, {"guards": ()}, "binary_guarded"),
        (Event.EQUIVALENCE_CHECKED, {"checks": ()}, "equivalence_checked"),
        (Event.MEASURED, {"architecture_guards": ()}, "measured"),
        (Event.JUDGED, {"policy": PolicyPart(allow_unverified=True)}, "another policy"),
        (Event.ACCEPTED, {"source_sha256": "3" * 64}, "not the one proposed"),
        (Event.ACCEPTED, {"candidate": 5}, "without such a verdict"),
        (Event.ACCEPTED, {"kernel_gain": 0.5}, "gains of candidate 1"),
        (Event.ACCEPTED, {"measured_gain": 0.5}, "gains of candidate 1"),
        (Event.PROPOSED, {"baseline_sha256": "3" * 64}, "version to beat"),
        (Event.FINISHED, {"verdict": "rejected"}, "accepted by its candidates"),
    ],
)
def test_events_that_contradict_each_other_are_found(write_ledger, accepted, event, changes, word) -> None:
    assert word in problems(write_ledger(edited(accepted_events(accepted), event, **changes)))


@pytest.mark.parametrize(
    ("event", "data", "word"),
    [
        (Event.WRITTEN, {"path": "app_opt.hip", "sha256": "3" * 64}, "what was written"),
        (Event.ACCEPTED, {"source_sha256": SHA}, "without such a verdict"),
        (Event.ROLLED_BACK, {"verdict": "rejected", "reason": ""}, "rolled back without"),
        (Event.SESSION_STARTED, STARTED, "once"),
    ],
)
def test_what_does_not_follow_is_found(write_ledger, accepted, event: Event, data, word: str) -> None:
    more = data if event is Event.SESSION_STARTED else {"candidate": 1, **data}
    assert word in problems(write_ledger([*accepted_events(accepted), (event, more)]))


def test_results_that_differ_can_not_be_left_out_of_the_evidence(tmp_path, accepted) -> None:
    """Allowed to go unverified, the judged evidence would be accepted."""
    policy = PolicyPart(allow_unverified=True)
    unseen = accepted.model_copy(update={"checks": ()})
    events = edited(candidate_events(unseen), Event.JUDGED, policy=policy, judgement=judge(unseen, policy))
    different = CheckPart(check="outputs", verdict="different", evidence="all of it")
    with Ledger.create(tmp_path / "l") as ledger:
        ledger.append(Event.SESSION_STARTED, {**STARTED, "policy": policy})
        for event, data in edited(events, Event.EQUIVALENCE_CHECKED, checks=(different,)):
            ledger.append(event, data)
    assert "equivalence_checked" in problems(tmp_path / "l")


@pytest.mark.parametrize(
    ("options", "target", "word"),
    [
        ({"max_iters": 3, "min_improvement": 0.02}, {"ceiling_gain": 0.8}, None),
        ({"max_iters": 4}, {}, "laxer rule"),
        ({"min_improvement": 0.05}, {"ceiling_gain": 0.8}, "laxer rule"),
        ({"min_improvement": 0.02}, {"ceiling_gain": 0.4}, "laxer rule"),
        ({}, {"base_cv": 0.2}, "laxer rule"),
    ],
)
def test_the_rule_is_the_sessions(tmp_path, accepted, options, target, word) -> None:
    """The evidence was measured for 3 candidates of a kernel with 0.8 of the path."""
    with Ledger.create(tmp_path / "l") as ledger:
        ledger.append(Event.SESSION_STARTED, {**STARTED, "options": options})
        ledger.append(Event.TARGET_CHOSEN, {"kernel": "k", "reason": "", **target})
        for event, data in accepted_events(accepted):
            ledger.append(event, data)
    if word is None:
        assert verify_ledger(tmp_path / "l").agrees
    else:
        assert word in problems(tmp_path / "l")


def test_more_candidates_than_share_the_error_are_found(tmp_path, accepted) -> None:
    with Ledger.create(tmp_path / "l") as ledger:
        ledger.append(Event.SESSION_STARTED, {**STARTED, "options": {"max_iters": 1}})
        for event, data in candidate_events(blank_evidence(), 2):
            ledger.append(event, data)
    assert "more than the 1" in problems(tmp_path / "l")


@pytest.mark.parametrize("ratio", [1e308, -1e308, 1e4, -1e4])
def test_absurd_times_are_no_crash(write_ledger, accepted, rpl_cli, ratio: float) -> None:
    lying = accepted.measurement.model_copy(update={"log_ratios": (ratio,) * 10})
    evidence = accepted.model_copy(update={"measurement": lying, "remeasurement": lying})
    judgement = JudgementPart(verdict="accepted", stage="remeasurement", reason="")
    events = [(e, d) for e, d in accepted_events(accepted) if e is not Event.JUDGED]
    judged = {"candidate": 1, "evidence": evidence, "policy": PolicyPart(), "judgement": judgement}
    path = write_ledger([*events, (Event.JUDGED, judged)])
    assert rpl_cli("ledger", "verify", path).exit_code == 1


@pytest.mark.parametrize("event", [Event.MEASURED, Event.REMEASURED])
def test_times_that_nobody_recorded_are_found(write_ledger, accepted, event: Event) -> None:
    events = [(name, data) for name, data in accepted_events(accepted) if name is not event]
    assert event.value in problems(write_ledger(events))


def test_an_acceptance_against_the_verdict_is_found(write_ledger) -> None:
    path = write_ledger(accepted_events(blank_evidence()))
    assert "without such a verdict" in problems(path)


# --- the commands --------------------------------------------------------------------------------------


def test_verify_says_what_it_checked(write_ledger, accepted, rpl_cli) -> None:
    path = write_ledger(accepted_events(accepted))
    result = rpl_cli("ledger", "verify", path.parent)
    assert result.exit_code == 0
    assert "candidate 1: accepted at remeasurement: the same by its evidence" in result.stdout
    document = rpl_cli("ledger", "verify", path, "--json").json()
    assert document["agrees"] is True
    assert document["verdicts"][0]["replayed"]["verdict"] == "accepted"


def test_verify_exits_1_when_a_verdict_differs(write_ledger, accepted, rpl_cli) -> None:
    judgement = JudgementPart(verdict="rejected", stage="build", reason="")
    path = write_ledger(edited(accepted_events(accepted), Event.JUDGED, judgement=judgement))
    result = rpl_cli("ledger", "verify", path)
    assert result.exit_code == 1
    assert "rejected recorded, accepted by the evidence" in result.stdout


def test_verify_exits_65_with_the_line_that_is_broken(notes: Path, rpl_cli) -> None:
    notes.write_bytes(notes.read_bytes().replace(b"note 3", b"note 4"))
    result = rpl_cli("ledger", "verify", notes)
    assert result.exit_code == 65
    assert "line 5" in result.stderr


def test_verify_refuses_data_of_another_shape(tmp_path: Path, rpl_cli, monkeypatch) -> None:
    monkeypatch.setattr(writer, "_checked_data", lambda _event, data: dict(data))
    with writer.Ledger.create(tmp_path / "l") as ledger:
        ledger.append(Event.JUDGED, {"candidate": 1})
    result = rpl_cli("ledger", "verify", tmp_path / "l")
    assert result.exit_code == 65
    assert "line 1: the data of judged" in result.stderr


def test_an_unfinished_session_is_called_so(notes: Path, rpl_cli) -> None:
    result = rpl_cli("ledger", "verify", notes)
    assert result.exit_code == 0
    assert "not finished" in result.stdout
    assert "no verdict was recorded" in result.stdout


@pytest.mark.parametrize("content", [b"", b"{}\n", b"torn"])
def test_what_is_no_ledger_is_bad_data(tmp_path: Path, rpl_cli, content: bytes) -> None:
    (tmp_path / "l").write_bytes(content)
    assert rpl_cli("ledger", "verify", tmp_path / "l").exit_code == 65


def test_a_directory_without_ledger_is_missing_one(tmp_path: Path, rpl_cli) -> None:
    for command in ("verify", "show"):
        result = rpl_cli("ledger", command, tmp_path)
        assert result.exit_code == 69
        assert "no ledger" in result.stderr


def test_show_prints_one_line_per_event(write_ledger, accepted, rpl_cli) -> None:
    path = write_ledger([*accepted_events(accepted), (Event.NOTE, note("a\x1b[31m\nb"))])
    result = rpl_cli("ledger", "show", path).assert_ok()
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [str(number) for number in range(1, len(lines))]
    assert any("judged" in line and "accepted at remeasurement" in line for line in lines)
    assert "\x1b" not in result.stdout
    events = rpl_cli("ledger", "show", path, "--json").json()["events"]
    assert [event["sequence"] for event in events] == list(range(1, len(lines)))


def test_show_gives_what_a_torn_ledger_still_says(notes: Path, rpl_cli) -> None:
    notes.write_bytes(notes.read_bytes()[:-5])
    result = rpl_cli("ledger", "show", notes).assert_ok()
    assert "note 3" in result.stdout
    assert "note 4" not in result.stdout
    assert "torn" in result.stderr


def test_show_stops_at_damage(notes: Path, rpl_cli) -> None:
    notes.write_bytes(notes.read_bytes().replace(b"note 2", b"note 7"))
    result = rpl_cli("ledger", "show", notes)
    assert result.exit_code == 65
    assert "note 1" in result.stdout
    assert "note 3" not in result.stdout


def test_more_measurements_than_share_the_error_are_told(tmp_path: Path) -> None:
    """One that was interrupted and begun anew counts like any other."""
    from rpl_optimize.measurement.gains import rule_for
    from rpl_optimize.measurement.measure import rule_part

    rule = rule_for(0.02, 0.8, 3, 0.01)
    assert rule is not None
    planned = {"candidate": 1, "stage": "measurement", "rule": rule_part(rule), "fewest_runs": 8}
    for begun in (2, 3):
        path = tmp_path / f"{begun}.jsonl"
        with Ledger.create(path) as ledger:
            ledger.append(Event.SESSION_STARTED, {**STARTED, "options": {"max_iters": 2}})
            for _ in range(begun):
                ledger.append(
                    Event.PLANNED, {**planned, "seed": seed_after(ledger.last_sha256), "most_runs": 9}
                )
        problems = [problem for _, problem in verify_ledger(path).problems]
        assert problems == (["3 measurements were begun, and 2 share the error"] if begun == 3 else [])


@pytest.mark.parametrize(
    ("code", "pairs", "measured", "problem"),
    [
        ("a" * 64, 4, 5, None),
        ("a" * 64, 4, 3, "lost pairs while it was interrupted"),
        ("b" * 64, 4, 5, "goes on, and was not begun before"),
        ("a" * 64, 1, 5, "lost pairs while it was interrupted"),
    ],
)
def test_what_goes_on_was_begun_of_the_same_program(
    tmp_path: Path, code: str, pairs: int, measured: int, problem: str | None
) -> None:
    """Struck twice: nothing is lost in between, nothing is planned anew, one part of the error is taken."""
    from rpl_optimize.measurement.gains import rule_for
    from rpl_optimize.measurement.measure import PairTimes, measurement_part, rule_part

    rule = rule_for(0.02, 0.8, 1, 0.01)
    assert rule is not None
    with Ledger.create(tmp_path / "ledger.jsonl") as ledger:
        ledger.append(Event.SESSION_STARTED, {**STARTED, "options": {"max_iters": 1}})

        def built(code_sha256: str) -> None:
            build = {"commands": [], "code_sha256": code_sha256}
            ledger.append(Event.BUILT, {"candidate": 1, "build": build})

        built("a" * 64)
        seed = seed_after(ledger.last_sha256)
        planned = {"candidate": 1, "stage": "measurement", "rule": rule_part(rule), "seed": seed}
        directory = {"directory": "candidates/001/measure"}
        ledger.append(Event.PLANNED, {**planned, **directory, "fewest_runs": 8, "most_runs": 82})
        continued = {"candidate": 1, "under_way": "measurement", **directory}
        built("a" * 64)
        ledger.append(Event.CONTINUED, {**continued, "pairs": 2})
        built(code)
        ledger.append(Event.CONTINUED, {**continued, "pairs": pairs})
        times = PairTimes(((1.0, 1.1),) * measured)
        part = measurement_part("k", times, rule, directory["directory"], seed=seed)
        ledger.append(Event.MEASURED, {"candidate": 1, "measurement": part})
    problems = [text for _, text in verify_ledger(tmp_path / "ledger.jsonl").problems]
    assert any(problem in text for text in problems) if problem else problems == []
