"""gfx950: reads of three sizes under other names than on gfx942, FP6 and FP4, and records to mistrust."""

from __future__ import annotations

import csv
import gzip
import json

import pytest

from rpl_core.model.device import CeilingOrigin, Pipe
from rpl_core.model.metric import Exactness
from rpl_core.model.trace import Agent
from rpl_gfx950.plugin import rpl_detect_device, rpl_device_models
from rpl_gfx950.products import COUNTER_MAP
from rpl_rocprofv3.collector.passes import plan_passes
from rpl_testkit.traces import launch_quantities

SPEC, PUBLISHED = CeilingOrigin.SPEC, CeilingOrigin.PUBLISHED
MODELS = {model.name: model for model in rpl_device_models()}
#: First launch of vcopy on an MI350X: ROCm/rocm-systems @1b1610fc, projects/rocprofiler-compute
#: tests/workloads/vcopy/MI350/pmc_perf.csv (MIT). It copies 8 388 608 bytes and does no arithmetic.
MI350_COPY = {
    "TCC_EA0_RDREQ_sum": 65640.0,
    "TCC_EA0_RDREQ_32B_sum": 0.0,
    "TCC_BUBBLE_sum": 0.0,
    "TCC_EA0_WRREQ_sum": 131072.0,
    "TCC_EA0_WRREQ_64B_sum": 131072.0,
    "TCP_TCC_READ_REQ_sum": 65536.0,
    "TCP_TCC_WRITE_REQ_sum": 131072.0,
    "TCP_TCC_ATOMIC_WITH_RET_REQ_sum": 0.0,
    "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum": 0.0,
    "TCP_TOTAL_CACHE_ACCESSES_sum": 524288.0,
    "TCC_HIT_sum": 66864.0,
    "TCC_MISS_sum": 131138.0,
    "SQ_ACTIVE_INST_VALU": 98304.0,
    "SQ_THREAD_CYCLES_VALU": 6291456.0,
    "SQ_INSTS_VALU_MFMA_MOPS_F6F4": 0.0,
}


def agent(**facts):
    return Agent(**{"node": "n", "index": 0, "kind": "GPU", "architecture": "gfx950", **facts})


def quantities(**counters):
    return launch_quantities(MODELS["mi350x"], **counters)


@pytest.mark.parametrize(
    ("facts", "name", "partition"),
    [
        ({"chip_id": 30112, "compute_units": 256}, "mi350x", "SPX"),
        ({"chip_id": 30131, "xcd_count": 1}, "mi355x", "CPX"),
        ({"compute_units": 128, "xcd_count": 4, "compute_partition": "SPX"}, "mi350p", "SPX"),
        ({"compute_units": 256}, "gfx950", "SPX"),
    ],
)
def test_products_and_partitions(facts, name, partition):
    found = rpl_detect_device((agent(**facts),))
    assert (found.name, found.partition) == (name, partition)


@pytest.mark.parametrize(
    ("name", "data_type", "pipe", "tflops"),
    [
        ("mi350x", "F64", Pipe.MFMA, 72.1),
        ("mi350x", "F32", Pipe.VALU_PACKED, 144.2),
        ("mi355x", "F64", Pipe.VALU, 78.6),
        ("mi355x", "F16", Pipe.VALU_PACKED, 157.3),
        ("mi355x", "BF16", Pipe.MFMA, 2516.6),
        ("mi355x", "F8", Pipe.MFMA, 5033.2),
        ("mi355x", "F6F4", Pipe.MFMA, 10066.3),
        ("mi350p", "F64", Pipe.MFMA, 36.0),
    ],
)
def test_peaks_equal_those_that_amd_publishes(name, data_type, pipe, tflops):
    peak = MODELS[name].compute_ceiling(data_type, pipe, SPEC).peak_gflops / 1000
    assert peak == pytest.approx(tflops, abs=0.06)


def test_the_recommended_set_takes_three_passes_with_all_read_sizes_in_one():
    plan = plan_passes(COUNTER_MAP)
    assert (len(plan.passes), plan.refused) == (3, ())
    sizes = {"TCC_EA0_RDREQ_sum", "TCC_EA0_RDREQ_32B_sum", "TCC_EA0_RDREQ_128B_sum"}
    assert any(sizes <= set(one) for one in plan.passes)
    assert "TCC_BUBBLE_sum" not in COUNTER_MAP.recommended


def test_reads_without_their_size_are_bounded_from_both_sides():
    """Taking each for 64 bytes, as tools do that know gfx942 only, gives half of the truth as a fact."""
    read = quantities(**MI350_COPY)("hbm_read_bytes")
    assert (read.value, read.upper, read.exactness) == (64 * 65640, 128 * 65640, Exactness.INTERVAL)
    assert read.value <= 8_388_608 <= read.upper


def test_reads_of_known_size_are_exact():
    counted = MI350_COPY | {"TCC_EA0_RDREQ_128B_sum": 65530.0, "TCC_EA0_RDREQ_32B_sum": 10.0}
    read = quantities(**counted)("hbm_read_bytes")
    assert (read.value, read.exactness) == (128 * 65530 + 64 * 100 + 32 * 10, Exactness.EXACT)
    by_size = {f"TCC_EA0_RDREQ_{size}B_sum": float(size) for size in (32, 64, 128)}
    assert quantities(**by_size)("hbm_read_bytes").value == 128**2 + 64**2 + 32**2


def test_a_derived_size_is_no_fact_either():
    read = quantities(FETCH_SIZE=4102.5)("hbm_read_bytes")
    assert (read.value, read.upper) == (1024 * 4102.5, 2048 * 4102.5)


def test_the_copy_of_known_traffic():
    quantity = quantities(**MI350_COPY)
    assert quantity("hbm_write_bytes").value == 8_388_608
    assert quantity("l2_bytes").value == 16_777_216
    assert quantity("active_lanes").value == 64
    assert quantity("l2_hit_rate").value == 66864 / (66864 + 131138)
    assert quantity("vl1d_hit_rate").value == 0.625


def test_fp6_and_fp4_count_as_one_type():
    metric = quantities(SQ_INSTS_VALU_MFMA_MOPS_F6F4=3.0)("mfma_flops_f6f4")
    assert (metric.value, metric.exactness) == (1536, Exactness.EXACT)


def documents_of(rpl_cli, recording, out):
    recordings = sorted(recording.glob("*.csv*")) if recording.is_dir() else [recording]
    rpl_cli("analyze", *recordings, "-o", out).assert_ok()
    return {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}


@pytest.mark.data
def test_a_recording_with_counters_equals_its_csv(rpl_shared_data, rpl_cli, tmp_path):
    """Chip id 30115 says MI355X, whatever the folder is called."""
    folder = rpl_shared_data / "rocpd" / "hipkittens-mi350x-pmc-csv"
    found = documents_of(rpl_cli, folder, tmp_path / "out")
    assert found["profile"]["gpu"]["product"] == "AMD Instinct MI355X"
    with (folder / "hit_rate_counter_collection.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    accesses: dict[str, list[float]] = {}
    for row in rows:
        accesses.setdefault(row["Kernel_Name"], []).append(float(row["Counter_Value"]))
    compared = 0
    for kernel in found["roofline"]["kernels"]:
        values = accesses.get(kernel["name"])
        levels = {level["level"]: level["bytes"]["value"] for level in kernel["levels"]}
        if values and levels.get("vl1d") is not None:
            assert levels["vl1d"] == pytest.approx(64 * sum(values) / len(values))
            compared += 1
    assert compared >= 2


@pytest.mark.data
def test_a_trace_without_counters_is_recognised_and_its_registers_are_not_believed(
    rpl_shared_data, rpl_cli, tmp_path
):
    folder = rpl_shared_data / "rocpd" / "wave-mi350x-csv"
    counts = {
        int(row["VGPR_Count"])
        for row in csv.DictReader(
            gzip.decompress((folder / "3785403_kernel_trace.csv.gz").read_bytes()).decode().splitlines()
        )
    }
    assert any(count % 8 for count in counts)
    found = documents_of(rpl_cli, folder, tmp_path / "out")["profile"]
    assert found["gpu"]["product"] == "AMD Instinct MI350X"
    assert found["occupancy"]["theoretical"] is None
    assert "VGPR count is unknown" in found["occupancy"]["reason"]
    said = [d for d in found["diagnostics"] if d["code"] == "kernel.impossible_registers"]
    assert len(said) == 1
