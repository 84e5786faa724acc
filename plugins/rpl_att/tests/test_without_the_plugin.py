"""Thread traces are an ordinary plugin: without it every other command does its work."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def without(rpl_cli):
    return lambda *words: rpl_cli("--disable-plugin", "att", *words)


@pytest.fixture
def recording(rpl_shared_data):
    return rpl_shared_data / "rocpd" / "synthetic-gfx942"


@pytest.fixture
def run(without, recording, tmp_path):
    """The documents of a recording with times, made without the plugin."""
    without("analyze", recording, "-o", tmp_path / "run").assert_ok()
    return tmp_path / "run"


def test_profile_json_keeps_the_fields_and_they_are_empty(run):
    profile = json.loads((run / "profile.json").read_text())
    assert profile["att"] is None
    assert profile["untimed_thread_traces"] == []
    assert profile["kernels"]
    assert all(kernel["att"] is None for kernel in profile["kernels"])


def test_other_commands_do_not_miss_it(without, run, recording):
    for words in (
        ("report", run),
        ("report", "--format", "html", run),
        ("explain", "--run", run),
        ("what-if", "gemm_f32=free", "--run", recording),
        ("compare", recording, recording),
        ("export", "--format", "csv", recording),
        ("schema", "profile"),
        ("profile", "--device", "gfx942", "--from", recording, "-o", run / "again"),
        ("plugins", "list"),
    ):
        found = without(*words)
        found.assert_exit(75 if words[0] == "compare" else 0)  # so few runs can't be compared
        assert "failed" not in found.stderr


def test_its_options_go_with_it(without, rpl_cli):
    assert "--deep-analysis" in rpl_cli("profile", "--help").assert_ok().stdout
    assert "--deep-analysis" not in without("profile", "--help").assert_ok().stdout
    outcome = without("profile", "--deep-analysis", "--", "true")
    assert outcome.exit_code in (64, 69)
    assert "--deep-analysis" in outcome.stderr


def test_a_run_with_a_thread_trace_is_analysed_without_it(rpl_cli, without, trace_folder, tmp_path):
    """Documents that hold a trace are read back, and the same files analysed anew hold none."""
    row = ("v_nop", 4, 1, 4, 0, 0)
    trace_folder.code(("; k", 0, 0, 0, 0, 0), row).wave([[0, 6, 0, 4, 1]], 0, 4)
    rpl_cli("analyze", trace_folder.path, "-o", tmp_path / "traced").assert_ok()
    assert "thread trace  k" in rpl_cli("report", tmp_path / "traced").assert_ok().stdout
    assert "thread trace  k" not in without("report", tmp_path / "traced").assert_ok().stdout
