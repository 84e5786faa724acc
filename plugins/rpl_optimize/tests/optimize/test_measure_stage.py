"""The measurements of one session: how long a run may take, and what a resumed one goes on with."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import get_args

import pytest

from rpl_measure.manifest import ComparisonLog, Observation
from rpl_optimize.contracts import PlannedData, PlannedStage, RulePart
from rpl_optimize.ledger.session_files import Begun
from rpl_optimize.loop import measuring as stage
from rpl_optimize.loop.measuring import MeasureStage
from rpl_optimize.loop.state import LoopState


@pytest.mark.parametrize(
    ("asked", "walls", "limit"),
    [(5.0, (1.0,), 5.0), (None, (1.0, 20.0), 200.0), (None, (0.1, None), 60.0), (None, (), 60.0)],
)
def test_a_candidate_that_hangs_ends(request_for, monkeypatch, tmp_path, asked, walls, limit) -> None:
    passes = tuple(SimpleNamespace(wall_s=wall) for wall in walls)
    monkeypatch.setattr(stage, "load_manifest", lambda _directory: SimpleNamespace(passes=passes))
    measuring = MeasureStage(request_for(time_limit_s=asked), None, tmp_path, lambda: None)
    trial = SimpleNamespace(baseline=SimpleNamespace(profile_directory=tmp_path))
    assert measuring._run_limit_s(trial) == limit


@pytest.mark.parametrize(("begun", "planned"), [(0, True), (2, True), (3, False), (7, False)])
def test_a_measurement_that_was_begun_took_its_part_of_the_error(
    request_for, monkeypatch, tmp_path, begun, planned
) -> None:
    """Killing at a bad interim is no second draw for nothing: three draws share the error of three."""
    monkeypatch.setattr(stage, "run_to_run_cv", lambda *_: 0.01)
    monkeypatch.setattr(stage, "usual_run_s", lambda _: 1.0)
    state = LoopState(b"text", begun=begun)
    measuring = MeasureStage(request_for(), None, tmp_path, lambda: None, state=state)
    target = SimpleNamespace(recorded="k", ceiling_gain=0.5)
    trial = SimpleNamespace(baseline=None, target=target, number=1)
    found = measuring.plan(trial, 1)
    assert isinstance(found, PlannedData) is planned
    if not planned:
        assert "used up: measurements were interrupted" in found.problem
    measuring.begin()
    assert state.begun == begun + 1


RULE = RulePart(alpha=0.05, looks=(10,), least_gain=0.01, futile_gain=0.0, most_guard_loss=0.01)
KINDS = ("kept", "kept", "gone", "another", "damaged", "outside")


@pytest.mark.parametrize("seed", range(25))
def test_what_a_resumed_session_goes_on_with(request_for, tmp_path, seed) -> None:
    """Drawn measurements under way: those whose own pairs are there go on, others begin anew."""
    draw = random.Random(seed)
    notes: list[str] = []
    root = tmp_path / "session"
    root.mkdir()
    measuring = MeasureStage(request_for(), SimpleNamespace(note=notes.append), root, lambda: None)
    plans, known, unreadable = {}, [], []
    for number, stage_name in enumerate(draw.sample(get_args(PlannedStage), draw.randint(0, 3))):
        kind = draw.choice(KINDS)
        folder = f"../m{number}" if kind == "outside" else f"m{number}"
        padding = draw.choice((None, 64 * number))
        plan = PlannedData(
            candidate=4, stage=stage_name, rule=RULE, seed=number, fewest_runs=1, most_runs=2,
            padding_bytes=padding, directory=folder,
        )  # fmt: skip
        plans[stage_name, padding] = plan
        tries = [(draw.randint(-1, 3), draw.choice(("base", "new")), draw.random() < 0.7) for _ in range(9)]
        if kind != "gone":
            (root / folder).mkdir()
            log = ComparisonLog.create(
                root / folder, ("a",), ("b",), (10,), seed=number + (100 if kind == "another" else 0)
            )
            for run, (pair, side, whole) in enumerate(tries):
                log.add(Observation(pair=pair, side=side, run=f"r{run}", complete=whole))
        if kind == "damaged":
            (root / folder / "comparison.json").write_text("{")
        if kind == "kept":
            known.append((plan, tries))
        elif kind != "another":  # of another seed: nothing is wrong with it, it is not this one
            unreadable.append(stage_name)
    free = [one for one in get_args(PlannedStage) if one not in {stage_name for stage_name, _ in plans}]
    finished = draw.sample(free, 1)
    parts = dict.fromkeys(finished if draw.random() < 0.5 else ())
    told, go_on = measuring.continued(4, Begun("c", "b", parts, plans))

    assert go_on == tuple(plan for plan, _ in known)
    assert [note.split(":")[1].strip() for note in notes] == [
        f"the {stage_name} that was under way begins anew" for stage_name in unreadable
    ]
    if not known and not parts:
        assert told is None
        return
    assert (told.candidate, told.finished) == (4, tuple(parts))
    if not known:
        assert (told.under_way, told.padding_bytes, told.directory) == (None, None, None)
        assert (told.pairs, told.repeated_pairs) == (0, 0)
        return
    plan, tries = known[-1]
    assert (told.under_way, told.padding_bytes, told.directory) == (
        plan.stage, plan.padding_bytes, plan.directory,
    )  # fmt: skip
    whole = [
        pair
        for pair in range(4)
        if {side for at, side, complete in tries if at == pair and complete} == {"base", "new"}
    ]
    again = 0
    for pair in range(4):
        sides = [side for at, side, _ in tries if at == pair]
        again += max(0, max(sides.count("base"), sides.count("new")) - 1)
    assert (told.pairs, told.repeated_pairs) == (len(whole), again)
