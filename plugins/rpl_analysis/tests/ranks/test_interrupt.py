"""Ctrl-C while ranks are read, on processes of this machine and on a real Dask cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RANKS = 40


@pytest.fixture
def recordings(simulated_job, tmp_path):
    """More than are read before the signal comes."""
    job, folder = simulated_job(RANKS, 2000), tmp_path / "recordings"
    folder.mkdir()
    for rank in range(RANKS):
        job.write_recording(folder, rank)
    return folder


def _interrupted(recordings, job, *words):
    """`rpl ranks`, stopped by SIGINT once two summaries are there; and the processes that outlive it."""
    mark = f"RPL_TEST_MARK={job}"
    rpl = Path(sys.executable).with_name("rpl")
    process = subprocess.Popen(
        [rpl, "ranks", recordings, "-o", job, *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RPL_TEST_MARK": str(job)},
    )
    store = job / "summaries"
    while len(list(store.glob("*.npz"))) < 2:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr, [path for path in _environments() if mark.encode() in path]


def _environments():
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield path.read_bytes()
        except OSError:  # it ended, or belongs to somebody else
            continue


def _assert_usable(recordings, job, rpl_cli):
    """What was summed up is whole, nothing half-written lies beside it, and the rest can be added."""
    kept = sorted((job / "summaries").iterdir())
    assert 2 <= len(kept) < RANKS
    assert {path.suffix for path in kept} == {".npz"}
    again = rpl_cli("ranks", recordings, "-o", job, "--jobs", "1").assert_ok()
    assert f"{RANKS - len(kept)} recordings read, {len(kept)} summed up before" in again.stderr


def test_ctrl_c_ends_the_processes_and_keeps_what_they_summed_up(recordings, rpl_cli, tmp_path):
    status, stderr, left = _interrupted(recordings, tmp_path / "job", "--jobs", "2")
    assert (status, left) == (130, []), stderr
    assert "Traceback" not in stderr
    _assert_usable(recordings, tmp_path / "job", rpl_cli)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_ctrl_c_cancels_what_a_cluster_has_not_begun(recordings, rpl_cli, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as cluster:
        words = ("--cluster", cluster.scheduler_address)
        status, stderr, left = _interrupted(recordings, tmp_path / "job", *words)
        assert (status, left) == (130, []), stderr
        assert "Traceback" not in stderr
        end = time.monotonic() + 30
        while cluster.scheduler.tasks and time.monotonic() < end:
            time.sleep(0.05)
        assert not cluster.scheduler.tasks
        assert all(not worker.processing for worker in cluster.scheduler.workers.values())
    _assert_usable(recordings, tmp_path / "job", rpl_cli)
