"""Ranks on a real Dask cluster of this machine, one worker of which is killed while it reads."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

pytestmark = pytest.mark.long


@pytest.fixture
def cluster():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as started:
        yield started


@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_costs_no_rank(simulated_job, rpl_cli, cluster, tmp_path):
    job, folder = simulated_job(16, 4000), tmp_path / "recordings"
    folder.mkdir()
    for rank in range(job.ranks):
        job.write_recording(folder, rank)
    here = rpl_cli("ranks", folder, "-o", tmp_path / "here", "--jobs", "1", "--json").assert_ok().stdout
    (victim, *_), store = (
        [worker.pid for worker in cluster.workers.values()],
        tmp_path / "there" / "summaries",
    )
    struck = threading.Event()

    def strike():
        while not store.is_dir() or len(list(store.glob("*.npz"))) < 2:
            time.sleep(0.002)
        os.kill(victim, signal.SIGKILL)
        struck.set()

    threading.Thread(target=strike, daemon=True).start()
    words = ("-o", tmp_path / "there", "--cluster", cluster.scheduler_address, "--json")
    there = rpl_cli("ranks", folder, *words).assert_ok().stdout
    assert struck.wait(5)
    assert there == here


@pytest.mark.filterwarnings("ignore")
def test_an_interrupt_takes_back_what_nobody_began(cluster):
    from rpl_core.executors import DaskExecutor
    from rpl_core.interfaces.executor import ExecutorRequest, Task

    workers = DaskExecutor().open(ExecutorRequest(address=cluster.scheduler_address))
    for number in range(40):
        workers.submit(Task(number, _slow, "0.2"))
    assert workers.wait(30)
    workers.close()
    end = time.monotonic() + 20
    while any(cluster.scheduler.tasks.values()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(cluster.scheduler.tasks.values())


def _slow(argument, _place):
    time.sleep(float(argument))
    return ""
