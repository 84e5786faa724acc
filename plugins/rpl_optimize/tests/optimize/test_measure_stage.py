"""The measurements of one session: how long a run may take."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rpl_optimize.loop import measuring as stage
from rpl_optimize.loop.measuring import MeasureStage


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
