"""The manifest is true at every moment of a run."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone

import pytest

from rpl_core.errors import UsageError
from rpl_core.run_directory import (
    claim_path,
    default_path,
    is_run_directory,
    load_manifest,
    make_empty,
    point_latest,
    run_name,
)


def on_disk(run):
    return json.loads((run.path / "run.json").read_text())


def test_new_run_is_running_with_all_passes_planned(new_run):
    run = new_run("run_1", "run_2")
    assert on_disk(run)["state"] == "running"
    assert [entry["state"] for entry in on_disk(run)["passes"]] == ["planned", "planned"]
    assert on_disk(run)["command"] == ["./app", "100"]
    assert is_run_directory(run.path)


def test_finished_pass_is_on_disk_with_the_hashes_of_its_files(new_run, finish_pass):
    run = new_run("run_1", "run_2")
    finish_pass(run, "run_1", {"a.db": b"abc"})
    entry = on_disk(run)["passes"][0]
    assert entry["state"] == "complete"
    assert entry["artefacts"] == [
        {"path": "passes/run_1/a.db", "sha256": hashlib.sha256(b"abc").hexdigest(), "bytes": 3}
    ]
    assert on_disk(run)["passes"][1]["state"] == "planned"
    assert on_disk(run)["collector_version"] == "tool 1"


def test_failed_pass_keeps_its_error_and_exit_status(new_run):
    run = new_run("run_1")
    run.pass_failed("run_1", "it failed", exit_status=3)
    entry = on_disk(run)["passes"][0]
    assert (entry["state"], entry["error"], entry["exit_status"]) == ("failed", "it failed", 3)


@pytest.mark.parametrize(("reason", "state"), [(None, "complete"), ("interrupted", "incomplete")])
def test_finish_tells_whether_the_run_is_whole(new_run, reason, state):
    run = new_run("run_1")
    run.finish(reason)
    assert (on_disk(run)["state"], on_disk(run)["reason"]) == (state, reason)


def test_manifest_comes_back_as_it_was(new_run, finish_pass):
    run = new_run("run_1")
    finish_pass(run, "run_1", {"a.db": b""})
    run.finish(None)
    assert load_manifest(run.path) == run.manifest


def test_text_that_is_no_utf8_is_written_readably(new_run):
    run = new_run("run_1")
    run.pass_failed("run_1", "can't open '\udcff'")
    run.finish("it was '\udcff'")
    assert on_disk(run)["passes"][0]["error"] == "can't open '\\udcff'"
    assert on_disk(run)["reason"] == "it was '\\udcff'"


def test_directory_that_holds_something_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    make_empty(tmp_path / "run")
    (tmp_path / "run" / "file").write_text("")
    for occupied in (tmp_path / "run", tmp_path / "run" / "file"):
        with pytest.raises(UsageError, match="exists and is not empty"):
            make_empty(occupied)


def test_directory_that_can_not_be_made_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        make_empty(tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("./my_app", "1"), "my_app"),
        (("/usr/bin/../bin/python3",), "python3"),
        (("../../..",), "run"),
        (("ünder score/na me\n",), "na_me"),
        ((), "run"),
        (("x" * 300,), "x" * 60),
    ],
)
def test_names_of_runs_are_safe(command, name):
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert run_name(command, now) == f"20260102T030405Z-{name}"


def test_default_path_never_names_what_exists(tmp_path):
    first = default_path(tmp_path, ("app",))
    first.mkdir()
    second = default_path(tmp_path, ("app",))
    assert first != second
    assert not second.exists()


def test_latest_points_to_the_newest_run(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_latest(tmp_path / name)
        assert (tmp_path / "latest").readlink().name == name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "one", "two"]


def test_latest_that_is_the_users_own_folder_is_left_alone(tmp_path):
    (tmp_path / "latest").mkdir()
    (tmp_path / "run").mkdir()
    point_latest(tmp_path / "run")
    assert not (tmp_path / "latest").is_symlink()


def test_two_profiles_of_one_moment_never_share_a_directory(tmp_path, monkeypatch):
    """Both look before either has made its directory: the later one takes the next name."""
    answers = iter([tmp_path / "run", tmp_path / "run", tmp_path / "run-2"])
    monkeypatch.setattr("rpl_core.run_directory.default_path", lambda *_: next(answers))
    assert claim_path(tmp_path, ("app",)) == tmp_path / "run"
    assert claim_path(tmp_path, ("app",)) == tmp_path / "run-2"


def test_runs_directory_that_can_not_be_made_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        claim_path(tmp_path / "file", ("app",))
