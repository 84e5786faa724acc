"""The synthetic application: believable, repeatable, and consistent with its declared work."""

from __future__ import annotations

import json
import sqlite3
import statistics
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from rpl_testkit.rocpd_writer import write_rocpd
from rpl_testkit.synthetic_recording.demo_application import DEMO_APPLICATION, make_demo_contents
from rpl_testkit.synthetic_recording.mi300x import available_counters, mi300x_agents

#: docs/reference/devices.md, 1 and 2: MI300X spec ceilings.
HBM_GBPS, F32_VALU_TFLOPS, F64_VALU_TFLOPS, F16_MFMA_TFLOPS = 5324.8, 81.7, 81.7, 1307.4


@pytest.fixture(scope="module")
def counters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Per kernel: mean of every counter and of the duration in ns, from a counter run."""
    path = tmp_path_factory.mktemp("demo") / "c.db"
    write_rocpd(path, make_demo_contents(counters=available_counters()), synthetic=True)
    found: dict[str, dict[str, float]] = {}
    with closing(sqlite3.connect(path)) as connection:
        means = "kernel_name, counter_name, avg(value), avg(duration)"
        sql = f"SELECT {means} FROM counters_collection GROUP BY 1, 2"
        for kernel, counter, value, duration in connection.execute(sql):
            found.setdefault(kernel, {"ns": duration})[counter] = value
    return found


def by_prefix(counters: dict[str, dict[str, float]], prefix: str) -> dict[str, float]:
    (found,) = (values for name, values in counters.items() if name.startswith(prefix))
    return found


def total_ns(seed: int) -> int:
    return sum(row.end_ns - row.begin_ns for row in make_demo_contents(seed=seed).dispatches)


def test_same_seed_repeats_and_another_differs_by_a_small_variation() -> None:
    totals = [total_ns(seed) for seed in range(8)]
    assert total_ns(0) == totals[0]
    cv = statistics.stdev(totals) / statistics.mean(totals)
    assert 0.0005 < cv < 0.05


def test_dispatches_of_a_stream_do_not_overlap_and_streams_do() -> None:
    rows = sorted(make_demo_contents().dispatches, key=lambda row: row.begin_ns)
    for stream in {row.stream_id for row in rows}:
        own = [row for row in rows if row.stream_id == stream]
        assert all(a.end_ns <= b.begin_ns for a, b in pairwise(own))
    assert any(a.end_ns > b.begin_ns for a, b in pairwise(rows))


def test_dispatches_start_after_their_launch_call_and_waits_hold() -> None:
    given = make_demo_contents()
    begin = {region.stack_id: region.begin_ns for region in given.regions}
    assert all(row.begin_ns >= begin[row.stack_id] for row in given.dispatches)
    names = {kernel.kernel_id: kernel.name.split("(")[0] for kernel in given.kernels}
    order = [(names[row.kernel_id], row) for row in given.dispatches]
    forces = next(row for name, row in order if name == "nbody_forces")
    second_triad = [row for name, row in order if name == "stream_triad"][1]
    assert forces.begin_ns >= second_triad.end_ns, "nbody_forces waits for the event after stream_triad"


def test_counter_runs_serialise_and_hold_no_api_calls() -> None:
    given = make_demo_contents(counters=("SQ_WAVES",))
    rows = sorted(given.dispatches, key=lambda row: row.begin_ns)
    assert all(a.end_ns <= b.begin_ns for a, b in pairwise(rows))
    assert not list(given.regions)


def test_waves_equal_the_launch_geometry(counters: dict[str, dict[str, float]]) -> None:
    for kernel in DEMO_APPLICATION.kernels:
        items = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
        assert counters[kernel.name]["SQ_WAVES"] == items / 64


def test_gemm_counters_give_two_n_cubed_flops(counters: dict[str, dict[str, float]]) -> None:
    assert by_prefix(counters, "gemm")["SQ_INSTS_VALU_MFMA_MOPS_F16"] * 512 == 2 * 4096**3


def test_triad_counters_give_its_analytic_bytes_and_flops(counters: dict[str, dict[str, float]]) -> None:
    triad = by_prefix(counters, "stream_triad")
    large, every = triad["TCC_BUBBLE"], triad["TCC_EA0_RDREQ"]
    assert 128 * large + 64 * (every - large) == 2 * 4 * 2**26
    assert 64 * triad["TCC_EA0_WRREQ_64B"] == 4 * 2**26
    assert 64 * 2 * triad["SQ_INSTS_VALU_FMA_F32"] == 2 * 2**26
    assert triad["FETCH_SIZE"] * 1024 == 2 * 4 * 2**26


def test_no_kernel_exceeds_a_ceiling_of_the_device(counters: dict[str, dict[str, float]]) -> None:
    for name, c in counters.items():
        flops = {
            kind: 64
            * (
                c[f"SQ_INSTS_VALU_ADD_{kind}"]
                + c[f"SQ_INSTS_VALU_MUL_{kind}"]
                + c[f"SQ_INSTS_VALU_TRANS_{kind}"]
                + 2 * c[f"SQ_INSTS_VALU_FMA_{kind}"]
            )
            for kind in ("F32", "F64")
        }
        assert (c["FETCH_SIZE"] + c["WRITE_SIZE"]) * 1024 / c["ns"] < HBM_GBPS, name
        assert flops["F32"] / c["ns"] / 1e3 < F32_VALU_TFLOPS, name
        assert flops["F64"] / c["ns"] / 1e3 < F64_VALU_TFLOPS, name
        assert c["SQ_INSTS_VALU_MFMA_MOPS_F16"] * 512 / c["ns"] / 1e3 < F16_MFMA_TFLOPS, name
        # Issue slots: a wave instruction takes 4 cycles of one of 304 * 4 SIMDs at 2.1 GHz.
        assert c["SQ_INSTS_VALU"] * 4 / (304 * 4) < c["ns"] * 2.1, name
        assert c["SQ_LDS_IDX_ACTIVE"] / 304 < c["ns"] * 2.1, name
        assert c["SQ_WAVE_CYCLES"] / c["SQ_BUSY_CU_CYCLES"] <= 32, name


def test_divergent_kernel_shows_its_active_lanes(counters: dict[str, dict[str, float]]) -> None:
    cull = by_prefix(counters, "void cull_particles")
    assert cull["SQ_THREAD_CYCLES_VALU"] / cull["SQ_ACTIVE_INST_VALU"] == 19


def test_instances_per_block_and_clock_counters_repeat_per_xcd() -> None:
    given = make_demo_contents(
        counters=("GRBM_GUI_ACTIVE", "SQ_WAVES", "TCC_HIT", "TCP_TOTAL_ACCESSES", "TCC_HIT_sum")
    )
    first = {row.name: row.values for row in given.counters if row.dispatch_id == 1}
    lengths = {name: len(values) for name, values in first.items()}
    assert lengths == {
        "GRBM_GUI_ACTIVE": 8,
        "SQ_WAVES": 32,
        "TCC_HIT": 128,
        "TCP_TOTAL_ACCESSES": 304,
        "TCC_HIT_sum": 1,
    }
    assert len(set(first["GRBM_GUI_ACTIVE"])) == 1
    assert sum(first["TCC_HIT"]) == first["TCC_HIT_sum"][0]


def test_unknown_counter_is_an_error() -> None:
    with pytest.raises(KeyError):
        make_demo_contents(counters=("TCC_EA0_WRREQ_32B",))


@pytest.mark.data
def test_agent_fields_are_those_of_a_real_gpu(rpl_shared_data: Path) -> None:
    path = rpl_shared_data / "rocpd/flydsl-gfx1250-v3/146104_results.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        (text,) = connection.execute("SELECT extdata FROM rocpd_info_agent WHERE type = 'GPU'").fetchone()
    real, (*_, gpu) = json.loads(text), mi300x_agents()
    assert list(gpu.extdata) == list(real)


def test_gpu_is_an_mi300x() -> None:
    *_, gpu = mi300x_agents()
    wanted = {
        "device_id": 29857,
        "cu_count": 304,
        "num_xcc": 8,
        "wave_front_size": 64,
        "gfx_target_version": 90402,
    }
    assert {key: gpu.extdata[key] for key in wanted} == wanted
    assert (gpu.name, gpu.product_name, gpu.device_id) == ("gfx942", "AMD Instinct MI300X", 29857)
