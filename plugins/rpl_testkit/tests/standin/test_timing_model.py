"""Declared times come out as declared: means, noise, walk, outliers, rules by source, and the same again."""

from __future__ import annotations

import json
import math
import sqlite3
import statistics
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rpl_testkit.rocprofv3_standin import scenario as timing_model
from rpl_testkit.rocprofv3_standin.scenario import Scenario, ScenarioError, embedded_source, with_timing_model

KERNELS = (
    {"name": "big(float*)", "nominal_ns": 1_000_000, "launches": 3, "work": {"read_bytes": 1000}},
    {"name": "small()", "nominal_ns": 50_000, "launches": 1, "stream": 2},
)


@pytest.fixture
def declare(tmp_path: Path):
    """Returns a function that plays one process run: log of its time over the nominal one, per kernel."""

    def declared(**fields: Any):
        path = tmp_path / "model.json"
        path.write_text(json.dumps({"kernels": KERNELS, **fields}))

        def run(source: str | None = None) -> dict[str, float]:
            timing_model.embedded_source = lambda _command: None if source is None else source.encode()
            scenario = with_timing_model(Scenario(), {"RPL_STANDIN_TIMING_MODEL": str(path)}, ("./app",))
            return {
                kernel.name: math.log(scenario.duration_ns(kernel) / kernel.nominal_ns)
                for kernel in scenario.application.kernels
            }

        return run

    yield declared
    timing_model.embedded_source = embedded_source


def series(run, runs: int, kernel: str = "big(float*)") -> list[float]:
    return [run()[kernel] for _ in range(runs)]


def test_without_noise_times_are_nominal(declare) -> None:
    assert declare()() == {"big(float*)": 0.0, "small()": 0.0}


def test_noise_has_the_declared_spread_and_is_independent_between_kernels(declare) -> None:
    run = declare(cv=0.02, seed=5)
    runs = [run() for _ in range(200)]
    big, small = ([r[name] for r in runs] for name in ("big(float*)", "small()"))
    # Standard error of a standard deviation: 0.02 / sqrt(400) = 0.001; of a mean: 0.0014.
    assert statistics.stdev(big) == pytest.approx(0.02, abs=0.004)
    assert statistics.fmean(big) == pytest.approx(0.0, abs=0.005)
    assert abs(statistics.correlation(big, small)) < 0.25
    assert abs(statistics.correlation(big[1:], big[:-1])) < 0.25


def test_drift_is_a_walk_that_all_kernels_share(declare) -> None:
    run = declare(cv=1e-9, drift=5e6)  # steps of 0.005, next to no noise
    runs = [run() for _ in range(200)]
    big, small = ([r[name] for r in runs] for name in ("big(float*)", "small()"))
    assert big == pytest.approx(small, abs=1e-4)
    steps = [after - before for before, after in pairwise(big)]
    assert statistics.stdev(steps) == pytest.approx(0.005, abs=0.001)


def test_outliers_are_as_many_and_as_slow_as_declared(declare) -> None:
    slow = [value for value in series(declare(outliers=0.1, outlier_factor=1.5), 200) if value > 0.1]
    assert len(slow) == pytest.approx(20, abs=12)
    assert slow == pytest.approx([math.log(1.5)] * len(slow), abs=1e-5)


def test_every_build_has_its_own_offset(declare) -> None:
    run = declare(build_offset=0.01)
    assert run("a")["big(float*)"] == run("a")["big(float*)"] != run("b")["big(float*)"]
    offsets = [run(f"source {number}")["small()"] for number in range(200)]
    assert statistics.stdev(offsets) == pytest.approx(0.01, abs=0.002)
    assert run()["small()"] == 0.0, "a program without a source has none"


def test_rules_apply_to_matching_sources_and_kernels(declare) -> None:
    rules = [
        {"source_matches": "unroll [24]", "kernel": "big(float*)", "factor": 0.5},
        {"source_matches": "unroll 4", "factor": 0.8, "hbm_factor": 1.1},
    ]
    run = declare(speed=rules)
    assert run("plain") == {"big(float*)": 0.0, "small()": 0.0}
    assert run("#pragma unroll 2")["big(float*)"] == pytest.approx(math.log(0.5))
    both = run("#pragma unroll 4")
    assert both["big(float*)"] == pytest.approx(math.log(0.4))
    assert both["small()"] == pytest.approx(math.log(0.8))


def test_the_same_series_comes_again_and_another_seed_gives_another(declare, tmp_path: Path) -> None:
    noise = {"cv": 0.02, "drift": 0.25, "outliers": 0.1}
    first = series(declare(**noise), 20)
    assert json.loads((tmp_path / "model.json.state").read_text())["runs"] == 20
    (tmp_path / "model.json.state").unlink()
    assert series(declare(**noise), 20) == first
    (tmp_path / "model.json.state").unlink()
    assert series(declare(**noise, seed=1), 20) != first


@pytest.mark.parametrize(
    "text", ["{", '{"kernel": []}', '{"kernels": [{"name": "k"}]}', '{"speed": [{"source_matches": "("}]}']
)
def test_what_is_not_understood_is_said(tmp_path: Path, monkeypatch, text: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    monkeypatch.setattr(timing_model, "embedded_source", lambda _command: b"source")
    with pytest.raises(ScenarioError, match=r"timing model .*model\.json"):
        with_timing_model(Scenario(), {"RPL_STANDIN_TIMING_MODEL": str(path)}, ("./app",))


def query(path: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def test_the_profiler_writes_declared_times(profiler, results, tmp_path: Path) -> None:
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"kernels": KERNELS}))
    done = profiler("--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_TIMING_MODEL=str(model))
    assert done.returncode == 0
    (path,) = results("*_results.db")
    rows = query(
        path, "SELECT name, count(*), min(duration), max(duration) FROM kernels GROUP BY name ORDER BY 1"
    )
    assert rows == [("big(float*)", 3, 1_000_000, 1_000_000), ("small()", 1, 50_000, 50_000)]
    (big,) = query(path, "SELECT min(start), min(end) FROM kernels WHERE name LIKE 'big%'")
    (small,) = query(path, "SELECT start, end FROM kernels WHERE name LIKE 'small%'")
    assert big[0] < small[0] < big[1], "kernels of different streams overlap"
    assert json.loads((tmp_path / "model.json.state").read_text())["runs"] == 1


def test_a_broken_model_ends_the_profiler_with_1(profiler, tmp_path: Path) -> None:
    done = profiler(
        "--kernel-trace", "-d", "o", "--", "true", RPL_STANDIN_TIMING_MODEL=str(tmp_path / "absent")
    )
    assert done.returncode == 1
    assert "ScenarioError: timing model" in done.stderr


SOURCE = """#include <hip/hip_runtime.h>
__global__ void big(float* p) { *p = 1; }  // fast
int main() { float f; big<<<1, 1>>>(&f); }
"""


@pytest.mark.clang
def test_the_program_that_runs_decides_which_rule_applies(rpl_closed_loop_bench, profiler, results) -> None:
    rule = {"source_matches": "// fast", "kernel": "big(float*)", "factor": 0.5, "hbm_factor": 3.0}
    model = rpl_closed_loop_bench.declare(KERNELS[:1], [rule])
    for name, text in (("fast", SOURCE), ("plain", SOURCE.replace("// fast", "// slow"))):
        source = rpl_closed_loop_bench.folder / f"{name}.hip"
        source.write_text(text)
        program = rpl_closed_loop_bench.build(source)
        options = ("--kernel-trace", "--pmc", "TCC_EA0_RDREQ_sum", "-d", name, "-o", name)
        done = profiler(*options, "--", "env", str(program), RPL_STANDIN_TIMING_MODEL=str(model))
        assert done.returncode == 0, done.stderr
    found = {}
    for name in ("fast", "plain"):
        (path,) = results(f"{name}_results.db")
        (duration,) = query(path, "SELECT DISTINCT duration FROM kernels")
        (requests,) = query(path, "SELECT DISTINCT value FROM counters_collection")
        found[name] = (duration[0], requests[0])
    # 1000 bytes are 7 requests of 128 bytes and 2 of 64; 3000 bytes 23 and 1.
    assert found == {"fast": (500_000, 24.0), "plain": (1_000_000, 9.0)}
    assert rpl_closed_loop_bench.process_runs() == 2
