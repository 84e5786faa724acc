"""Several counter groups in one run: kernel replay of ROCm 10.0.1, groups that take turns, and refusals."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pytest

GROUPS = ("--pmc", "SQ_WAVES", "GRBM_COUNT", "--pmc", "SQ_WAVES", "SQ_INSTS_VALU")
REPLAY = ("--replay-mode", "kernel", "--kernel-replay-beta-enabled")
NEW = {"RPL_STANDIN_ROCM": "10.0.1"}


def records(path):
    (process,) = json.loads(path.read_text())["rocprofiler-sdk-tool"]
    names = {counter["id"]["handle"]: counter["name"] for counter in process["counters"]}
    for record in process["callback_records"]["counter_collection"]:
        dispatch = record["dispatch_data"]["dispatch_info"]["dispatch_id"]
        counters = {names[one["counter_id"]["handle"]] for one in record["records"]}
        yield dispatch, record.get("replay_pass"), counters


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ((*GROUPS, *REPLAY[:2]), 1, "requires acknowledgement that kernel replay is a beta feature"),
        (("--kernel-trace", *REPLAY), 1, "requires counter collection"),
        ((*GROUPS, *REPLAY, "--att"), 1, "cannot be combined with --att"),
        ((*GROUPS, *REPLAY, "--pc-sampling-beta-enabled"), 1, "cannot be combined with PC sampling"),
        ((*GROUPS, "--replay-mode", "twice"), 2, "invalid choice: 'twice'"),
    ],
)
def test_what_replay_does_not_go_with_is_refused(profiler, options, code, says):
    done = profiler(*options, "-d", "o", "--", "true", **NEW)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr


def test_older_releases_do_not_know_it(profiler):
    assert "--replay-mode" in profiler("--help", **NEW).stdout
    assert "--replay-mode" not in profiler("--help", RPL_STANDIN_ROCM="10.0").stdout
    done = profiler(*GROUPS, *REPLAY, "-d", "o", "--", "true", RPL_STANDIN_ROCM="10.0")
    assert done.returncode == 2
    assert "unrecognized arguments" in done.stderr


def test_replay_runs_once_and_only_json_tells_the_passes(profiler, results):
    done = profiler(*GROUPS, *REPLAY, "-d", "o", "-o", "x", "-f", "csv", "json", "--", "echo", "ran", **NEW)
    assert done.stdout.split() == ["ran"]
    (path,), (table,) = results("x_results.json"), results("x_counter_collection.csv")
    read = list(records(path))
    passes = Counter(replay for _, replay, _ in read)
    assert passes[0] == passes[1] > 10
    assert set(passes) == {0, 1}
    assert all("SQ_WAVES" in counters for _, _, counters in read)
    with table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert not {"Replay_Pass", "replay_pass"} & set(rows[0])
    waves = Counter(row["Dispatch_Id"] for row in rows if row["Counter_Name"] == "SQ_WAVES")
    assert set(waves.values()) == {2}  # both passes, and nothing says which


def test_without_replay_each_group_is_a_run(profiler, results):
    done = profiler(*GROUPS, "-d", "o", "-o", "x", "-f", "json", "--", "echo", "ran", **NEW)
    assert done.stdout.split() == ["ran", "ran"]
    assert {replay for _, replay, _ in records(results("x_results.json")[0])} == {None}


def test_a_launch_that_is_not_replayed_has_the_first_group_and_a_warning(profiler, results):
    environment = {**NEW, "RPL_STANDIN_MISBEHAVE": "replay_declined=untracked_memory"}
    done = profiler(*GROUPS, *REPLAY, "-d", "o", "-o", "x", "-f", "json", "--", "true", **environment)
    told = [line for line in done.stderr.splitlines() if "outcome=declined reason=untracked_memory" in line]
    passes = Counter(dispatch for dispatch, _, _ in records(results("x_results.json")[0]))
    once = [dispatch for dispatch, times in passes.items() if times == 1]
    assert len(told) == len(once) > 0
    assert all(any(f"dispatch_id={dispatch} " in line for line in told) for dispatch in once)


def test_groups_of_an_input_file_take_turns(profiler, results):
    job = {"pmc_groups": [["SQ_WAVES"], ["GRBM_COUNT"], ["TCC_HIT"]], "pmc_group_interval": 2}
    (profiler.directory / "in.json").write_text(json.dumps({"jobs": [job]}))
    done = profiler("-i", "in.json", "-d", "o", "-o", "x", "-f", "json", "--", "echo", "ran")
    assert done.stdout.split() == ["ran"]
    turns = [counters for _, _, counters in sorted(records(results("x_results.json")[0]), key=lambda r: r[0])]
    expected = [{"SQ_WAVES"}] * 2 + [{"GRBM_COUNT"}] * 2 + [{"TCC_HIT"}] * 2 + [{"SQ_WAVES"}]
    assert turns[:7] == expected


def test_groups_of_both_kinds_are_refused(profiler):
    (profiler.directory / "in.json").write_text(json.dumps({"jobs": [{"pmc_groups": [["SQ_WAVES"]]}]}))
    done = profiler("-i", "in.json", "--pmc", "SQ_WAVES", "-d", "o", "--", "true")
    assert done.returncode == 1
    assert "Cannot specify both --pmc and (input file) pmc_groups" in done.stderr
