"""Times by a profiler: the sums over dispatches that `rpl profile` gives."""

from __future__ import annotations

import json
import sys

import pytest


@pytest.mark.long
def test_the_time_is_that_of_rpl_profile(rpl_cli, rpl_standin_rocprofv3, workplace):
    (workplace / "space.json").write_text(json.dumps([{"BM": 16}, {"BM": 32}, {"BM": 64}]))
    command = f"{sys.executable} -ISc pass {{BM}}"
    usual = ("--space", "space.json", "--cmd-template", command, "--budget", "2", "--runs", "2")
    found = rpl_cli("autotune", *usual, "--json", "-o", "out", "--confirm-rounds", "1").assert_ok().json()
    assert (found["time_source"], found["origin"]) == ("profile", "synthetic")
    first = found["evaluations"][0]
    assert len(first["times_ms"]) == 2
    profile = json.loads((workplace / "out" / "best" / "profile.json").read_text())
    assert profile["provenance"]["origin"] == "synthetic"
    assert 0.2 < profile["runtime_ms"] / found["best_config"]["runtime_ms"] < 5
    (best, *more) = json.loads((workplace / "out" / "best" / "run.json").read_text())["passes"]
    assert "--hip-runtime-trace" not in best["command"]
    assert all(one["role"] == "timing" for one in more)
    assert "Autotuning" in (workplace / "out" / "report.html").read_text()
    assert "synthetic" in rpl_cli("autotune", "--show", "out").assert_ok().stdout
