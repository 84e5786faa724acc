"""Counter groups in one run: kernel replay, turns, and filters, against the stand-in of the test kit."""

from __future__ import annotations

import json

import pytest

from rpl_core.errors import UsageError
from rpl_rocprofv3.collector.passes import ReplayWatch
from rpl_rocprofv3.options import COLLECT_KERNEL, COLLECT_LAUNCHES

PROFILE = ("profile", "--runs", "1", "--no-api", "--device", "MI300X", "--roofline")


@pytest.fixture(autouse=True)
def _standin(rpl_standin_rocprofv3, monkeypatch):
    monkeypatch.delenv("RPL_ROCPROFV3", raising=False)
    monkeypatch.setenv("RPL_STANDIN_ROCM", "10.0.1")


def profiled(rpl_cli, run, *options):
    outcome = rpl_cli(*PROFILE, *options, "-o", run, "--json", "--", "true").assert_ok()
    roofline = json.loads((run / "roofline.json").read_text())["kernels"]
    manifest = json.loads((run / "run.json").read_text())
    counting = [entry["command"] for entry in manifest["passes"] if entry["role"] == "counters"]
    return outcome, outcome.json(), {kernel["name"]: kernel for kernel in roofline}, counting


def figures(kernels):
    return {
        name: [kernel[field]["value"] for field in ("flops", "bytes", "operational_intensity")]
        for name, kernel in kernels.items()
    }


def codes(document):
    return {d["code"]: d for d in document["diagnostics"]}


def test_one_replayed_run_gives_what_a_run_per_group_gives(rpl_cli, tmp_path):
    _, _, apart, runs = profiled(rpl_cli, tmp_path / "off")
    outcome, document, replayed, (command,) = profiled(rpl_cli, tmp_path / "kernel", "--replay", "kernel")
    assert len(runs) == 4
    assert replayed == apart
    assert command.count("--pmc") == 4
    assert command[command.index("--replay-mode") : command.index("--replay-mode") + 3] == [
        *("--replay-mode", "kernel"),
        "--kernel-replay-beta-enabled",
    ]
    said = outcome.stderr.index("hipMallocAsync")
    assert said < outcome.stderr.index("run_1")  # its limits come before anything runs
    assert "4 counter groups in one run by kernel replay" in codes(document)["collect.counter_groups"]["fact"]
    (timing, _) = json.loads((tmp_path / "kernel/run.json").read_text())["passes"]
    assert (timing["role"], "--pmc" in timing["command"]) == ("timing", False)


def test_launches_that_were_not_replayed_are_told_by_kernel(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("RPL_STANDIN_MISBEHAVE", "replay_declined=untracked_memory:counters")
    _, document, kernels, _ = profiled(rpl_cli, tmp_path / "run", "--replay", "kernel")
    told = codes(document)["collect.not_replayed"]
    assert "stream_triad" in told["fact"] or "untracked memory" in told["fact"]
    assert told["count"] > 0
    assert codes(document)["counter.not_replayed"]["count"] == told["count"]
    named = [name for name in kernels if name in told["fact"]]
    assert len(named) == 1
    assert kernels[named[0]]["bytes"]["value"] is None or kernels[named[0]]["flops"]["value"] is None


def test_turns_are_estimates_of_the_same_size(rpl_cli, tmp_path):
    _, _, apart, _ = profiled(rpl_cli, tmp_path / "off")
    outcome, document, turned, (command,) = profiled(rpl_cli, tmp_path / "rotate", "--replay", "rotate")
    assert "figures join different launches" in outcome.stderr
    assert "counters.turns_joined" in codes(document)
    assert figures(turned) == figures(apart)  # launches of the stand-in are alike
    assert {kernel["bytes"]["exactness"] for kernel in turned.values()} == {"estimate"}
    assert {kernel["flops"]["exactness"] for kernel in turned.values()} == {"estimate"}
    groups = json.loads((tmp_path / "rotate/artifacts/rotation/pmc_groups.json").read_text())["jobs"]
    assert [len(job["pmc_groups"]) for job in groups] == [4]
    assert "--pmc" not in command


def test_auto_takes_replay_where_it_is_offered_and_says_so(rpl_cli, monkeypatch):
    words = (*PROFILE, "--dry-run", "--replay", "auto", "--", "true")
    new = rpl_cli(*words).assert_ok().stdout
    assert "replay (counters)" in new
    assert "pass_1 (counters)" not in new
    assert "4 counter groups in one run by kernel replay: each counted launch runs once per group" in new
    monkeypatch.setenv("RPL_STANDIN_ROCM", "7.2")
    old = rpl_cli(*words).assert_ok().stdout
    assert "pass_4 (counters)" in old
    assert "4 counter groups in as many runs of the application" in old


def test_replay_that_is_not_offered_is_refused_before_anything_runs(rpl_cli, tmp_path, monkeypatch):
    monkeypatch.setenv("RPL_STANDIN_ROCM", "10.0")
    refused = rpl_cli(*PROFILE, "--replay", "kernel", "-o", tmp_path / "run", "--", "true").assert_exit(69)
    assert "this rocprofv3 has no --replay-mode" in refused.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "option", [("--replay", "auto"), ("--collect-kernel", "gemm"), ("--collect-launches", "2")]
)
def test_options_of_counters_without_counters_are_refused(rpl_cli, option):
    refused = rpl_cli(*PROFILE[:-1], *option, "--", "true").assert_exit(64)
    assert f"{option[0]} is about counters, and none are collected" in refused.stderr


def test_only_the_wanted_launches_are_counted(rpl_cli, tmp_path):
    _, _, kernels, commands = profiled(
        rpl_cli, tmp_path / "run", "--collect-kernel", "gemm_f16", "--collect-launches", "2-3"
    )
    for command in commands:
        assert command[command.index("--kernel-include-regex") + 1] == "gemm_f16"
        assert command[command.index("--kernel-iteration-range") + 1] == "[2-3]"
    counted = {name: kernel["counter_launches"] for name, kernel in kernels.items()}
    assert [counted[name] for name in counted if "gemm_f16" in name] == [2]
    assert {counted[name] for name in counted if "gemm_f16" not in name} <= {0, None}


def test_a_dry_run_shows_the_file_of_the_groups(rpl_cli):
    told = rpl_cli(*PROFILE, "--dry-run", "--replay", "rotate", "--", "true").assert_ok().stdout
    assert 'rotation reads pmc_groups.json: {"jobs": [{"pmc_groups": [[' in told
    assert "figures join different launches" in told


@pytest.mark.parametrize(("given", "read"), [("3", "3"), ("[1, 4-6]", "1,4-6"), ("2-2", "2-2")])
def test_ranges_of_launches_are_read_as_the_profiler_writes_them(given, read):
    assert COLLECT_LAUNCHES.parse(given) == read


@pytest.mark.parametrize("given", ["", "0", "3-2", "1,,2", "-1", "a", "1-9999999", "1 -- rm"])
def test_other_ranges_are_refused(given):
    with pytest.raises(UsageError):
        COLLECT_LAUNCHES.parse(given)


def test_what_is_no_regular_expression_is_refused():
    assert COLLECT_KERNEL.parse("gemm|sum") == "gemm|sum"
    for given in ("(", ""):
        with pytest.raises(UsageError):
            COLLECT_KERNEL.parse(given)


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        (
            "W20260101 00:00:00.0 1 queue.cpp:5] kernel replay: HIP graph launches are not replayed",
            "launches of HIP graphs were not replayed",
        ),
        (
            "W20260101 00:00:00.0 1 queue_hooks.cpp:9] kernel replay: snapshot capture failed",
            "memory of launches could not be copied, so they ran once",
        ),
        ("my kernel replay of the graph", None),  # the application's own words
    ],
)
def test_warnings_of_the_whole_run_are_known_by_their_words(line, meaning):
    watch = ReplayWatch()
    watch(line)
    assert list(watch.said) == ([meaning] if meaning else [])
