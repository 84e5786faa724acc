"""The measurements of one session: how long a run may take."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rpl_optimize.contracts import PlannedData
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
