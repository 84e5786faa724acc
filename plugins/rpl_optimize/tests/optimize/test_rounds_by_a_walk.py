"""The rounds of a session: when they stop, what they remember, whom they ask and what follows a verdict.

Stories of candidates are drawn, and what the loop keeps of them is counted again from the whole list. The
stages around it are stand-ins that note in which order they are asked.
"""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpl_optimize.contracts import BuildPart, CandidatePart, EvidencePart, GuardPart, JudgementPart
from rpl_optimize.interfaces.transformation import EditCandidate
from rpl_optimize.ledger.session_files import Begun
from rpl_optimize.loop import rounds
from rpl_optimize.loop.baseline import CandidateGains, Target, gains_of_fresh, measured_facts
from rpl_optimize.loop.proposing import Built, Proposed
from rpl_optimize.loop.rounds import OptimizeLoop, _block_of
from rpl_optimize.loop.session import Limits
from rpl_optimize.loop.state import LoopState, OpenEnd

from .conftest import measured

NAMES = ("unroll", "restrict", None)


def _candidate(number: int, transformation: str | None, verdict: str, kernel: str = "k") -> CandidatePart:
    judgement = JudgementPart(verdict=verdict, stage="measurement", reason=f"reason {number}")
    return CandidatePart(
        number=number,
        kernel=kernel,
        proposer="ranked",
        transformation=transformation,
        summary=f"summary {number}",
        source_sha256=f"{number:064d}",
        judgement=judgement,
        code_sha256=None if number % 4 == 0 else f"{number + 500:064d}",
    )


def _story(rng: random.Random, length: int) -> list[CandidatePart]:
    verdicts = ("accepted", "rejected", "rejected", "inconclusive", "no_verdict")
    return [
        _candidate(number, rng.choice(NAMES), rng.choice(verdicts), rng.choice(("k", "m")))
        for number in range(1, length + 1)
    ]


def _state(story: list[CandidatePart]) -> LoopState:
    state = LoopState(b"text")
    for one in story:
        state.add(one, accepted=one.judgement.verdict == "accepted")
    return state


def _since(story: list[CandidatePart]) -> list[CandidatePart]:
    """The candidates behind the last accepted one."""
    last = max((i for i, one in enumerate(story) if one.judgement.verdict == "accepted"), default=-1)
    return story[last + 1 :]


def _loop(tmp_path: Path, limits: Limits, state: LoopState, **more: Any) -> tuple[OptimizeLoop, list[Any]]:
    """A loop whose stages only note that they were asked."""
    said: list[Any] = []
    policy = SimpleNamespace(placement_check=False)
    request = SimpleNamespace(
        limits=limits, kernel=None, policy=policy, source=Path("k.hip"), in_place=False, command_name="rpl x"
    )
    session = SimpleNamespace(
        request=request,
        root=tmp_path,
        original=b"text",
        record=lambda *_: None,
        draw_seed=lambda: 1,
        recordings=lambda *_: {},
        update=lambda **fields: said.append(("update", fields)),
    )
    tools = SimpleNamespace(
        proposer=SimpleNamespace(value=SimpleNamespace(name="ranked"), plugin="p"),
        metric=None,
        host=None,
        builder=None,
        step=lambda text: said.append(("step", text)),
        note=lambda text: said.append(("note", text)),
        hold=lambda stage, number: said.append(("hold", stage, number)),
        approve=lambda diff, text: said.append(("approve", text)) or more["approve"],
    )
    loop = OptimizeLoop(session, tools, state, more.get("open_end"))

    class Records:
        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: said.append((name, *arguments))

        def source_of(self, _: Proposed) -> str:
            return "candidate.hip"

    loop._records = Records()
    return loop, said


def test_what_a_session_remembers_is_counted_from_all_candidates() -> None:
    rng = random.Random(1)
    for _ in range(200):
        story = _story(rng, rng.randint(0, 9))
        state, since = _state(story), _since(story)
        accepted = [one for one in story if one.judgement.verdict == "accepted"]
        assert (state.tried, state.misses) == (len(story), len(since))
        assert (list(state.accepted), state.baseline) == (accepted, 1 + len(accepted))
        for name in NAMES:
            assert state.misses_of(name) == [one.transformation for one in since].count(name)
        for patience in (1, 2, 3):
            own = {one.transformation for one in since} - {None}
            spent = {n for n in own if [one.transformation for one in since].count(n) >= patience}
            assert state.spent(patience) == spent
        for kernel in ("k", "m", "z"):
            told = [(a.summary, a.verdict, a.reason) for a in state.tried_for(kernel)]
            assert told == [
                (one.summary, one.judgement.verdict, one.judgement.reason)
                for one in story
                if one.kernel == kernel
            ]
    state = LoopState(b"user's")
    state.take(b"first", "device")
    assert (state.text, state.host) == (b"first", b"user's")
    state.take(b"second", "launches")
    assert (state.text, state.host) == (b"second", b"second")
    state.take(b"third", None)
    assert (state.text, state.host) == (b"third", b"second")
    shifts = [state.set_dominant(name) for name in ("a", "a", None, "b", "c", "c", "a")]
    changes = ["c dominates now, no longer b", "a dominates now, no longer c"]
    assert [shift for shift in shifts if shift] == state.shifts == changes
    assert shifts.index(changes[0]) == 4


def test_why_a_session_stops_before_the_next_candidate(tmp_path: Path) -> None:
    """Time first, then patience, then the error that measurements share, then their number."""
    rng = random.Random(2)
    seen = set()
    for _ in range(600):
        story = _story(rng, rng.randint(0, 6))
        state, since = _state(story), _since(story)
        state.begun = rng.randint(0, 6)
        limits = Limits(candidates=rng.randint(1, 6), patience=rng.randint(1, 3), time_budget_s=100.0)
        loop, _ = _loop(tmp_path, limits, state)
        left = rng.choice((None, None, 5.0, 0.0, -1.0))
        loop._time_left = lambda left=left: left
        under_way = rng.random() < 0.1
        loop._unfinished = object() if under_way else None
        found = loop._reason_to_stop()

        accepted = any(one.judgement.verdict == "accepted" for one in story)
        counts = {name: [one.transformation for one in since].count(name) for name in NAMES}
        named = [counts["unroll"], counts["restrict"]]
        in_a_row = "1 candidate was" if len(since) == 1 else f"{len(since)} candidates in a row were"
        tried, most = len(story), limits.candidates
        expected: tuple[str, str] | None = None
        if under_way:
            pass
        elif left is not None and left <= 0:
            expected = ("time_budget", "the time budget of 100 s is used up")
        elif max(named) > limits.patience or counts[None] >= limits.patience:
            expected = ("no_improvement", f"{in_a_row} not accepted")
        elif tried < most <= state.begun:
            share = (
                "1 candidate (--max-iters) shares" if most == 1 else f"{most} candidates (--max-iters) share"
            )
            detail = f"interrupted measurements used up the error that {share}"
            expected = ("candidates_exhausted" if accepted else "no_improvement", detail)
        elif tried >= most and not accepted:
            expected = ("no_improvement", f"none of {tried} candidates was accepted")
        elif tried >= most:
            number = "1 candidate" if most == 1 else f"{most} candidates"
            expected = ("candidates_exhausted", f"the limit of {number} (--max-iters) is reached")
        assert (None if found is None else (found.reason, found.detail)) == expected, (story, limits, left)
        seen.add(None if expected is None else expected[1].split()[0])
    assert {None, "the", "none", "interrupted"} <= seen


def test_time_that_passes_while_a_stage_waits_is_not_the_sessions(tmp_path: Path, monkeypatch: Any) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(rounds.time, "monotonic", lambda: clock.now)
    loop, said = _loop(tmp_path, Limits(time_budget_s=60.0), LoopState(b""))
    clock.now += 10

    def hold(stage: str, number: int) -> None:
        clock.now += 500
        said.append((stage, number))

    loop._tools.hold = hold
    loop._hold("build", 3)
    assert loop._time_left() == pytest.approx(50)
    assert said == [("build", 3)]
    assert _loop(tmp_path, Limits(), LoopState(b""))[0]._time_left() is None


def _targets(*gains: float) -> tuple[Target, ...]:
    return tuple(Target(f"void k{i}(int)", f"k{i}", gain) for i, gain in enumerate(gains))


def test_targets_are_asked_in_order_until_one_gives_a_candidate(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(rounds, "run_to_run_cv", lambda *_: 0.01)
    targets = _targets(0.5, 0.3, 0.1)
    for first, tried, under_way in product(range(4), (0, 2), (None, "k1", "gone")):
        state = LoopState(b"", tried=tried)
        loop, said = _loop(tmp_path, Limits(), state)
        begun = object()
        if under_way is not None:
            loop._unfinished = SimpleNamespace(
                find_target=lambda found, name=under_way: next((t for t in found if t.kernel == name), None),
                proposed=lambda root: ("again", root),
                begun=begun,
            )
        loop._proposal_request = lambda target, _: target
        loop._proposals = lambda target, _, first=first: SimpleNamespace(
            run=lambda request, asked: (
                f"built {request.kernel} {asked}" if target.kernel == f"k{first}" else None
            ),
            build=lambda proposed: ("rebuilt", *proposed),
        )
        found: Any = loop._next_candidate(targets, SimpleNamespace())
        assert loop._unfinished is None
        if under_way == "k1":
            assert found == (("rebuilt", "again", tmp_path), targets[1])
            assert loop._begun is begun
            assert said == [("target", targets[1], 0.01)]
            continue
        number = tried + 1
        expected: list[Any] = [("hold", "propose", number)]
        for target in targets[: first + 1]:
            expected += [("step", f"candidate {number}: proposal for {target.kernel}")]
            expected += [("target", target, 0.01)]
        assert said == expected
        assert found == (None if first == 3 else (f"built k{first} {number}", targets[first]))


def test_rounds_end_where_nothing_is_worth_it_or_nothing_is_left(tmp_path: Path, monkeypatch: Any) -> None:
    baseline = SimpleNamespace(documents=SimpleNamespace(model=lambda _: None))
    for gains, candidates, spent in (
        ((0.02, 0.01), 0, False),
        ((0.5, 0.021, 0.02), 0, False),
        ((0.5,), 0, True),
        ((0.5,), 2, False),
    ):
        monkeypatch.setattr(rounds, "rank_targets", lambda *_, gains=gains: _targets(*gains))
        state = _state([_candidate(1, "unroll", "rejected")] if spent else [])
        loop, said = _loop(tmp_path, Limits(min_improvement=0.02, candidates=9, patience=1), state)
        loop._tell_cost = lambda target, _, said=said: said.append(("cost", target.kernel))
        asked: list[int] = []

        def following(worth: Any, _: Any, asked=asked, candidates=candidates) -> Any:
            asked.append(len(worth))
            return ("built", worth[0]) if len(asked) <= candidates else None

        loop._next_candidate = following
        loop._try = lambda built, target, old, said=said: said.append((built, target.kernel)) or old
        ending = loop._iterate(baseline)
        worth = sum(gain > 0.02 for gain in gains)
        assert asked == ([worth] * (candidates + 1) if worth else [])
        if not worth:
            sentence = (
                "even if k0 cost nothing, the application would gain 2.0%, "
                "which is not above the 2.0% asked for"
            )
            assert (ending.reason, ending.detail) == ("ceiling_too_low", sentence)
            assert said == [("no_target", sentence)]
            continue
        one_round = [("cost", "k0"), ("built", "k0")]
        assert said == one_round * candidates + [("cost", "k0")]
        reason = "no_improvement" if spent else "candidates_exhausted"
        detail = "1 candidate was not accepted" if spent else "the proposer ranked has nothing left to try"
        assert (ending.reason, ending.detail) == (reason, detail)


def _built(tmp_path: Path, *, builds: bool = True) -> Built:
    edit = EditCandidate("c", "k", 1, "made faster", ())
    guards = (GuardPart(guard="g", passed=builds, reason="so"),)
    proposed = Proposed(4, 0, edit, guards, b"new", tmp_path, "unroll", None, "launches")
    part = BuildPart(commands=(("cc",),), reproducible=True)
    build: Any = SimpleNamespace(code_sha256="c" * 64)
    return Built(proposed, build if builds else None, part)


@pytest.mark.parametrize(
    ("builds", "verdict"),
    [(True, "accepted"), (True, "rejected"), (True, "inconclusive"), (False, "rejected")],
)
@pytest.mark.parametrize("approves", [True, False])
def test_what_follows_a_verdict(
    tmp_path: Path, monkeypatch: Any, builds: bool, verdict: str, approves: bool
) -> None:
    state = _state([_candidate(1, "unroll", "rejected")])
    loop, said = _loop(tmp_path, Limits(), state, approve=approves)
    evidence = EvidencePart(source_guards=(GuardPart(guard="evaluated", passed=True, reason=""),))
    judgement = JudgementPart(verdict=verdict, stage="measurement", reason="as measured")
    monkeypatch.setattr(rounds, "judge", lambda found, _: said.append(("judge", found)) or judgement)
    gains = CandidateGains(0.1, (0.05, 0.2), 0.06, 0.07)
    monkeypatch.setattr(rounds, "candidate_gains", lambda *_: gains)
    monkeypatch.setattr(rounds, "write_accepted", lambda *given: said.append(("write", given[1:])) or written)
    monkeypatch.setattr(rounds, "is_changed", lambda *_: True)
    written = SimpleNamespace(path=Path("k_opt.hip"), sha256="w" * 64, backup=None)
    loop._evaluation = SimpleNamespace(run=lambda trial: said.append(("run", trial.number)) or evidence)
    loop._confinement = SimpleNamespace(
        prepare=lambda _: said.append(("prepare",)), of_checks=lambda: _Nothing()
    )
    loop._profiled = lambda build, part, folder: ("profiled", build, part)
    build = SimpleNamespace(code_sha256="b" * 64)
    baseline: Any = SimpleNamespace(text=b"old", build=build, number=1)
    target = _targets(0.5)[0]
    built = _built(tmp_path, builds=builds)
    after: Any = loop._try(built, target, baseline)

    names = [one[0] for one in said]
    kept = verdict == "accepted" and approves
    expected = ["prepare", "run"] * builds + ["hold", "judge", "judgement"]
    expected += ["approve"] * (verdict == "accepted")
    expected += ["accepted", "step", "write", "written", "update", "note", "note", "step"] if kept else []
    expected += [] if kept else ["rolled_back", "note", "update"]
    assert names == expected
    judged = next(one[1] for one in said if one[0] == "judge")
    if builds:
        assert judged is evidence
    else:
        assert (judged.source_guards, judged.build) == (built.proposed.guards, built.part)
    (told,) = [one[1] for one in said if one[0] in ("accepted", "rolled_back")]
    assert (told.number, told.kernel, told.transformation, told.summary) == (4, "k0", "unroll", "made faster")
    figures = told.predicted_gain, told.measured_gain, told.kernel_gain, told.kernel_gain_interval
    assert figures == (0.07, 0.06, 0.1, (0.05, 0.2))
    assert told.source_sha256 == built.proposed.sha256
    declined = verdict == "accepted" and not approves
    assert told.judgement.verdict == ("rejected" if declined else verdict)
    assert told.judgement.reason == ("declined by the user" if declined else "as measured")
    assert told.judgement.stage == ("approval" if declined else "measurement")
    if verdict == "accepted":
        (shown,) = [one[1] for one in said if one[0] == "approve"]
        assert shown.startswith("as measured; gain of the application: 6.0% measured, 7.0% predicted")
    assert (state.tried, state.misses) == (4, 0 if kept else 2)
    assert state.candidates[-1] == told
    if kept:
        assert after == ("profiled", built.build, built.part)
        assert (state.text, state.host, state.ours) == (b"new", b"new", "w" * 64)
        assert ("write", (b"new", b"text", None)) in said
        notes = [one[1] for one in said if one[0] == "note"]
        assert notes[0] == "candidate 4: accepted, written to k_opt.hip"
        assert notes[1].startswith("warning: the source was changed meanwhile")
    else:
        assert after is baseline
        assert (state.text, state.host) == (b"text", b"text")
        last = "rejected: declined by the user" if declined else f"{verdict}: as measured"
        assert ("note", f"candidate 4: {last}") in said


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def test_code_that_is_known_is_named_by_who_had_it_and_whether_it_was_refused(tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(60):
        story = _story(rng, rng.randint(0, 7))
        loop, _ = _loop(tmp_path, Limits(), _state(story))
        baseline: Any = SimpleNamespace(build=SimpleNamespace(code_sha256="b" * 64))
        found = {key: (known.whose, known.rejected) for key, known in loop._known_code(baseline).items()}
        expected = {"b" * 64: ("the version to beat", True)}
        for one in story:
            verdict = one.judgement.verdict
            refused = verdict == "rejected"
            expected[one.source_sha256] = (f"candidate {one.number}", refused)
            if one.code_sha256 is not None and verdict != "accepted":
                words = verdict.replace("_", " ")
                expected[one.code_sha256] = (f"candidate {one.number}, which was {words}", refused)
        assert found == expected


def test_an_interrupted_measurement_goes_on_with_the_same_programs_only(tmp_path: Path) -> None:
    for code, base in product("ab", "cd"):
        loop, said = _loop(tmp_path, Limits(), LoopState(b""))
        assert loop._begun_of(SimpleNamespace(code_sha256=code), SimpleNamespace(code_sha256=base)) is None
        assert said == []
        begun: Any = SimpleNamespace(code_sha256="a", base_code_sha256="c")
        loop._begun = begun
        built, beaten = SimpleNamespace(code_sha256=code), SimpleNamespace(code_sha256=base)
        found: Begun | None = loop._begun_of(built, beaten)
        same = (code, base) == ("a", "c")
        assert found is (begun if same else None)
        assert [one[0] for one in said] == ([] if same else ["note"])
        assert loop._begun is None


def test_what_was_measured_of_a_candidate_is_told_whatever_its_verdict() -> None:
    first, again = measured(), measured(0.05, 20, place="again", seed=3)
    build = BuildPart(commands=(("cc",),), reproducible=True, code_sha256="a" * 64)
    assert measured_facts(EvidencePart()) == {"code_sha256": None}
    assert measured_facts(EvidencePart(build=build)) == {"code_sha256": "a" * 64}
    facts = measured_facts(EvidencePart(build=build, measurement=first))
    assert (facts["pairs"], facts["origin"]) == (10, "measured")
    assert facts["first_kernel_gain"] == pytest.approx(0.06, abs=0.005)
    facts = measured_facts(EvidencePart(build=build, measurement=first, remeasurement=again))
    assert facts["pairs"] == 20
    assert facts["first_kernel_gain"] == pytest.approx(0.06, abs=0.005)
    assert gains_of_fresh(EvidencePart(measurement=first)).kernel is None
    fresh = gains_of_fresh(EvidencePart(measurement=first, remeasurement=again))
    assert fresh.kernel == pytest.approx(0.05, abs=0.005)
    assert (
        CandidateGains().sentence()
        == "gain of the application: unknown measured, unknown predicted by what-if"
    )


def test_the_block_of_a_kernel_is_that_of_the_profile() -> None:
    def baseline(*kernels: tuple[str, tuple[int, ...] | None]) -> Any:
        entries = [SimpleNamespace(name=n, kernel=SimpleNamespace(block=b)) for n, b in kernels]
        return SimpleNamespace(documents=SimpleNamespace(model=lambda _: SimpleNamespace(kernels=entries)))

    known = baseline(("other", (9, 9, 9)), ("k", (64,)), ("m", (8, 4)), ("n", (8, 4, 2)), ("o", None))
    blocks = {name: _block_of(known, name) for name in ("k", "m", "n", "o", "absent")}
    assert blocks == {"k": (64, 1, 1), "m": (8, 4, 1), "n": (8, 4, 2), "o": None, "absent": None}


def test_a_resumed_session_first_settles_what_was_open(tmp_path: Path) -> None:
    for settled, write in product((None, object()), (None, 0, 7)):
        open_end: Any = OpenEnd(None, settled, write)
        loop, said = _loop(tmp_path, Limits(), LoopState(b""), open_end=open_end)
        loop._write = lambda number, said=said: said.append(("write", number))
        loop._settle = lambda one, said=said: said.append(("settle", one))
        loop._first_baseline = lambda said=said: said.append(("baseline",)) or 1
        loop._iterate = lambda baseline, said=said: said.append(("iterate", baseline)) or "end"
        loop._finish = lambda ending, said=said: said.append(("finish", ending))
        loop._session.document = "document"
        assert loop.run() == "document"
        expected: list[Any] = [] if write is None else [("write", write)]
        expected += [] if settled is None else [("settle", settled)]
        assert said == [*expected, ("baseline",), ("iterate", 1), ("finish", "end")]
