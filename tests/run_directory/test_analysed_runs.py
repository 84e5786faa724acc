"""What an analysis wrote elsewhere is a run: it names its recordings, and other commands work on it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest


@pytest.fixture
def recording(rpl_make_rocpd, tmp_path) -> Path:
    made = rpl_make_rocpd([("gemm", 0, 50), ("softmax", 60, 90)])
    (tmp_path / "recorded").mkdir()
    return Path(made).rename(tmp_path / "recorded" / "trace_results.db")


def documents(folder: Path) -> dict[str, bytes]:
    names = ("profile", "roofline", "dag", "analysis")
    return {name: (folder / f"{name}.json").read_bytes() for name in names}


def test_the_result_is_a_run_for_every_command(recording, rpl_cli, tmp_path, monkeypatch):
    out, again = tmp_path / "out", tmp_path / "again"
    with monkeypatch.context() as patched:  # a file that was hashed for the documents is not hashed again
        patched.setattr("rpl_core.run_directory.sha256_of", None)
        rpl_cli("analyze", "--device", "gfx942", recording, "-o", out).assert_ok()
    (entry,) = json.loads((out / "run.json").read_text())["recordings"]
    assert entry["sha256"] == hashlib.sha256(recording.read_bytes()).hexdigest()
    assert (entry["path"], entry["bytes"]) == (str(recording), recording.stat().st_size)
    written = documents(out)
    (out / "profile.json").unlink()
    rpl_cli("analyze", out).assert_ok()  # with the device of before
    assert documents(out) == written
    rpl_cli("analyze", out, "-o", again).assert_ok()
    for run in (out, again):
        assert rpl_cli("what-if", "gemm=2", "--run", run, "--json").assert_ok().json()["recorded_ns"] == 90
    exported = [rpl_cli("export", "--format", "csv", place).assert_ok().stdout for place in (out, recording)]
    assert exported[0] == exported[1]
    assert "timeline" in rpl_cli("report", out, "--format", "html").assert_ok().stdout
    assert "share recorded files" in rpl_cli("compare", out, again).stderr


def test_a_recording_that_moved_or_changed_is_said_and_not_read(recording, rpl_cli, tmp_path):
    out, elsewhere = tmp_path / "out", recording.with_name("elsewhere.db")
    rpl_cli("profile", "--from", recording, "-o", out, "--quiet").assert_ok()
    recording.rename(elsewhere)
    assert "was moved or deleted" in rpl_cli("what-if", "gemm=2", "--run", out).assert_exit(69).stderr
    recording.write_bytes(elsewhere.read_bytes() + b"x")
    outcome = rpl_cli("analyze", out).assert_exit(65)
    assert "has changed since" in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    rpl_cli("analyze", elsewhere, "-o", out).assert_ok()
    rpl_cli("what-if", "gemm=2", "--run", out).assert_ok()


def test_kept_recordings_need_no_original(recording, rpl_cli, tmp_path):
    out = tmp_path / "out"
    recording.with_name("trace_results.db-wal").write_bytes(b"")  # journals belong to their database
    rpl_cli("analyze", recording.parent, "-o", out, "--keep").assert_ok()
    kept = out / "recordings" / "recorded" / "trace_results.db"
    rpl_cli("analyze", kept.parent, "-o", out, "--keep").assert_ok()  # what is kept stays
    assert kept.read_bytes() == recording.read_bytes()
    rpl_cli("analyze", recording.parent, "-o", out, "--keep").assert_ok()
    assert kept.with_name("trace_results.db-wal").is_file()
    written = documents(out)
    recording.unlink()
    moved = out.rename(tmp_path / "moved")
    rpl_cli("analyze", moved).assert_ok()
    renewed = {name: text.replace(b"recordings/recorded/", b"") for name, text in documents(moved).items()}
    assert renewed == written


def test_one_run_of_several_processes_stays_one(rpl_make_rocpd, rpl_cli, tmp_path):
    paths = [rpl_make_rocpd([("gemm", 100 * n, 100 * n + 50)], name=f"{n}_results.db", pid=n) for n in (1, 2)]
    for words, runs in ((["--ranks"], 1), (["--each-is-a-run"], 2)):
        out = tmp_path / f"out{runs}"
        rpl_cli("analyze", *words, *paths, "-o", out).assert_ok()
        assert rpl_cli("analyze", out, "--json").assert_ok().json()["stability"]["runs"] == runs


def test_the_run_of_another_recording_is_not_overwritten(recording, rpl_cli, tmp_path):
    run = tmp_path / "run"
    rpl_cli("profile", "--no-rocprof", "-o", run, "--", "true").assert_ok()
    before = (run / "run.json").read_bytes()
    assert "of another recording" in rpl_cli("analyze", recording, "-o", run).assert_exit(64).stderr
    assert (run / "run.json").read_bytes() == before
    assert "needs a place" in rpl_cli("analyze", recording, "--keep").assert_exit(64).stderr
