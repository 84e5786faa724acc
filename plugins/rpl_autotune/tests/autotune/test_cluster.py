"""A local Dask cluster of three worker processes, one of which dies in the middle."""

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

    with LocalCluster(
        n_workers=3, threads_per_worker=1, resources={"GPU": 1}, dashboard_address=None, processes=True
    ) as started:
        yield started


@pytest.mark.filterwarnings("ignore")
def test_a_lost_worker_costs_no_configuration(tune, workplace, cluster):
    victim = next(iter(cluster.workers.values())).pid
    struck = threading.Event()

    def strike():
        cache = workplace / "cache.jsonl"
        while not cache.exists() or cache.read_bytes().count(b"\n") < 6:
            time.sleep(0.02)
        os.kill(victim, signal.SIGKILL)
        struck.set()

    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    options = ("--cluster", cluster.scheduler_address, "--budget", "20", "--confirm-rounds", "6")
    found = tune(*options, program="bm={BM} bn={BN} sleep=0.3").assert_ok().json()
    assert struck.is_set()
    assert found["evaluated_configs"] == 20
    assert not [e for e in found["evaluations"] if e["state"] == "lost"]
    assert len(found["devices"]) >= 3
    assert all(e["correction"] is not None for e in found["evaluations"] if e["state"] == "ok")
    assert found["final"]["rounds"] == 6
    parameters = [tuple(e["parameters"].values()) for e in found["evaluations"]]
    assert len(set(parameters)) == 20
