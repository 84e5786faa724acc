"""``rpl_analysis.load``: documents and columns of a run, for notebooks."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import rpl_analysis
from rpl_core.errors import MissingError, UsageError


def test_a_run_gives_documents_and_columns(rpl_make_rocpd, rpl_cli, tmp_path):
    recording = rpl_make_rocpd(
        [("void a<1>(int)", 0, 3000), ("void a<2>(int)", 4000, 5000), ("b", 6000, 6500)]
    )
    rpl_cli("profile", "--from", recording, "-o", tmp_path / "run").assert_ok()
    run = rpl_analysis.load(tmp_path / "run")
    kernels = run.kernels()
    assert list(kernels["name"]) == ["a<1>", "a<2>", "b"]
    assert list(kernels["recorded_name"]) == [kernel.name for kernel in run.profile.kernels]
    assert list(kernels["runtime_ms"]) == [0.003, 0.001, 0.0005]
    assert all(math.isnan(value) for value in kernels["achieved_gbps"])
    assert {len(column) for column in kernels.values()} == {3}
    assert run.dag.nodes == 3
    assert run.roofline.status == "not_collected"
    assert len(run.analysis.kernels) == 3


def test_dispatches_are_columns_of_the_recording(rpl_standin_rocprofv3, rpl_make_rocpd, rpl_cli, tmp_path):
    run = tmp_path / "run"
    rpl_cli("profile", "--runs", "1", "-o", run, "/bin/true").assert_ok()
    loaded = rpl_analysis.load(run)
    rows = loaded.dispatches()
    assert sum(rows["duration_ns"]) == pytest.approx(loaded.profile.runtime_ms * 1e6)
    assert set(rows["kernel"]) == {kernel.name for kernel in loaded.profile.kernels}
    with pytest.raises(UsageError, match="no timing run 1"):
        loaded.dispatches(1)


def test_where_no_run_is_the_error_says_so_at_once(tmp_path):
    with pytest.raises(MissingError, match="there is no run at"):
        rpl_analysis.load(tmp_path / "nothing")


def test_the_example_of_the_guide_runs(rpl_cli, tmp_path, monkeypatch, capsys):
    guide = (Path(__file__).parents[4] / "docs/USER_GUIDE.md").read_text(encoding="utf-8")
    (example,) = (
        part.partition("```")[0] for part in guide.split("```python\n") if "rpl_analysis.load" in part
    )
    rpl_cli("demo", "--recorded", "-o", tmp_path / "demo").assert_ok()
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "the guide", "exec"), {})
    name, total = capsys.readouterr().out.splitlines()
    assert name.startswith("stream_triad AMD Instinct MI300X ")
    assert int(total) > 0
