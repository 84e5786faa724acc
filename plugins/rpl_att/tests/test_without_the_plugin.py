"""Thread traces are an ordinary plugin: without it every other command does its work."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def without(rpl_cli):
    return lambda *words: rpl_cli("--disable-plugin", "att", *words)


@pytest.fixture
def run(without, rpl_shared_data, tmp_path):
    """A recording with times, analysed without the plugin."""
    recording = rpl_shared_data / "rocpd" / "synthetic-gfx942"
    without("analyze", recording, "-o", tmp_path / "run").assert_ok()
    return tmp_path / "run"


def test_profile_json_keeps_the_fields_and_they_are_empty(run):
    profile = json.loads((run / "profile.json").read_text())
    assert profile["att"] is None
    assert profile["untimed_thread_traces"] == []
    assert profile["kernels"]
    assert all(kernel["att"] is None for kernel in profile["kernels"])


@pytest.mark.parametrize(
    "words",
    [
        ("report",),
        ("report", "--format", "html"),
        ("explain", "--run"),
        ("what-if",),
        ("compare", "{run}"),
        ("export", "--format", "csv"),
    ],
    ids=lambda words: words[0],
)
def test_other_commands_do_not_miss_it(without, run, words):
    outcome = without(*(str(word).format(run=run) for word in words), run)
    outcome.assert_ok()
    assert "thread trace" not in outcome.stdout


def test_a_run_with_a_thread_trace_is_analysed_without_it(rpl_cli, without, trace_folder, tmp_path):
    """Documents that hold a trace are read back, and the same files analysed anew hold none."""
    row = ("v_nop", 4, 1, 4, 0, 0)
    trace_folder.code(("; k", 0, 0, 0, 0, 0), row).wave([[0, 6, 0, 4, 1]], 0, 4)
    rpl_cli("analyze", trace_folder.path, "-o", tmp_path / "traced").assert_ok()
    assert "thread trace  k" in rpl_cli("report", tmp_path / "traced").assert_ok().stdout
    assert "thread trace  k" not in without("report", tmp_path / "traced").assert_ok().stdout
