"""`rpl demo`: the main job from start to end on synthetic data, for a look without a GPU."""

from __future__ import annotations

import os

from rpl_analysis.contracts.analysis import AnalysisDocument


def test_demo_shows_a_synthetic_profile_and_how_to_go_on(rpl_cli, workplace, latest):
    before = dict(os.environ)
    shown = rpl_cli("demo", "--runs", "1").assert_ok().stdout
    assert shown.startswith("This is SYNTHETIC data")
    assert "synthetic: not a measurement of hardware" in shown
    assert "rpl profile --device gfx942 --from" in shown
    assert latest("profile")["provenance"]["origin"] == "synthetic"
    assert latest("roofline")["status"] == "available"
    assert dict(os.environ) == before


def test_demo_kernels_stand_for_every_label(rpl_cli, workplace, latest):
    rpl_cli("demo", "--runs", "1").assert_ok()
    found = {kernel["bottleneck"] for kernel in latest("analysis")["kernels"]}
    assert {"memory_bandwidth_bound", "divergence_limited", "compute_throughput_limited"} <= found
    AnalysisDocument.model_validate(latest("analysis"))


def test_commands_that_the_demo_names_work(rpl_cli, workplace):
    shown = rpl_cli("demo", "--runs", "1").assert_ok().stdout
    line = next(line for line in shown.splitlines() if line.startswith("Look again:"))
    for command in line.removeprefix("Look again:").split(";"):
        program, *words = command.split()
        assert program == "rpl"
        rpl_cli(*words).assert_ok()


def test_demo_into_a_chosen_folder(rpl_cli, workplace):
    rpl_cli("demo", "--runs", "1", "-o", "here").assert_ok()
    assert (workplace / "here" / "profile.json").is_file()
    assert not (workplace / "rpl-runs").exists()


def test_demo_without_the_plugins_says_what_to_install(rpl_cli, workplace):
    outcome = rpl_cli("--disable-plugin", "rocprofv3", "--disable-plugin", "gfx942", "demo").assert_exit(69)
    assert "pip install rpl-gfx942" in outcome.stderr
