"""The real gfx942 counter sets give the analytic truth of the kernel that they profile.

``vecCopy`` moves 16 777 216 bytes and does no floating-point operation. Expected sums come from the CSV
files by ``csv`` alone.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from rpl_analysis.roofline.model import Bound
from rpl_core.model.metric import Exactness

pytestmark = pytest.mark.data

ALL = {
    "path_MI300X_A1": "mi300x",
    "kernel_MI300X_A1": "mi300x",
    "path_MI300A_A1": "mi300a",
    "ipblocks_SQ_SPI_TA_TCC_CPF_MI300X_A1": "mi300x",
    "ipblocks_TCC_MI300A_A1": "mi300a",
    "vcopy_MI300X_A1_rocpd": "mi300x",
}
WITH_SQ = [name for name in ALL if name != "ipblocks_TCC_MI300A_A1"]
WITH_TCP = ["path_MI300X_A1", "kernel_MI300X_A1", "path_MI300A_A1", "vcopy_MI300X_A1_rocpd"]
READ_BYTES = WRITE_BYTES = 8_388_608


def _sums(folder: Path) -> dict[str, float]:
    """Sum of every counter over the three dispatches, straight from the file."""
    sums: dict[str, float] = {}
    with (folder / "pmc_perf.csv").open(newline="") as text:
        for row in csv.DictReader(text):
            cells = {row["Counter_Name"]: row["Counter_Value"]} if "Counter_Name" in row else row
            for name, value in cells.items():
                if name.endswith("_sum") or name.startswith("SQ_"):
                    sums[name] = sums.get(name, 0.0) + float(value)
    return sums


@pytest.mark.parametrize(("name", "device"), ALL.items())
def test_the_product_and_its_partition_are_recognised(analysed, name, device):
    found = analysed(name).device
    assert (found.name, found.partition, found.unknown_facts) == (device, "SPX", ())


@pytest.mark.parametrize("name", ALL)
def test_bytes_are_within_two_permille_of_the_truth(analysed, rpl_shared_data, name):
    quantities = analysed(name).quantities
    read, write = quantities.per_launch("hbm_read_bytes"), quantities.per_launch("hbm_write_bytes")
    assert read.value == pytest.approx(READ_BYTES, rel=0.002)
    assert write.value == pytest.approx(WRITE_BYTES, rel=0.002)
    assert quantities.per_launch("hbm_bytes").exactness is Exactness.EXACT
    sums = _sums(rpl_shared_data / "counters_gfx942" / name)
    by_hand = (
        128 * sums["TCC_BUBBLE_sum"]
        + 64 * (sums["TCC_EA0_RDREQ_sum"] - sums["TCC_BUBBLE_sum"] - sums["TCC_EA0_RDREQ_32B_sum"])
        + 32 * sums["TCC_EA0_RDREQ_32B_sum"]
    )
    assert read.value == pytest.approx(by_hand / 3, abs=1)


@pytest.mark.parametrize("name", ALL)
def test_bytes_equal_the_independent_figures(analysed, rpl_shared_data, name):
    expected = json.loads((rpl_shared_data / "counters_gfx942" / "expected.json").read_text())["files"][name]
    mean = sum(dispatch["hbm_read_bytes"] for dispatch in expected) / len(expected)
    assert analysed(name).quantities.per_launch("hbm_read_bytes").value == pytest.approx(mean)


@pytest.mark.parametrize("name", WITH_SQ)
def test_a_copy_does_no_flops_and_that_is_a_real_zero(analysed, name):
    result = analysed(name)
    flops = result.quantities.per_launch("flops")
    assert (flops.value, flops.exactness, flops.missing) == (0, Exactness.EXACT, ())
    assert (result.roofline.operational_intensity.value, result.roofline.bound) == (0, Bound.MEMORY)


@pytest.mark.parametrize("name", WITH_SQ)
def test_the_documented_model_sees_786432_flops(analysed, name):
    models = analysed(name, flop_model="valu_width").roofline.models
    assert (models.valu_width.value, models.valu_width.exactness) == (786_432, Exactness.ESTIMATE)
    assert (models.per_op.value, models.ratio, models.selected) == (0, None, "valu_width")


@pytest.mark.parametrize("name", WITH_SQ)
def test_lanes_waves_and_integer_work(analysed, name):
    quantities = analysed(name).quantities
    assert quantities.per_launch("active_lanes").value == 64
    assert quantities.per_launch("divergence_fraction").value == 0
    assert quantities.per_launch("waves").value == 16_384
    assert quantities.per_launch("int_ops").value == 5_242_880


@pytest.mark.parametrize("name", WITH_TCP)
def test_traffic_between_l1_and_l2_is_exact(analysed, name):
    bytes_moved = analysed(name).quantities.per_launch("l2_bytes")
    assert (bytes_moved.value, bytes_moved.exactness) == (16_777_216, Exactness.EXACT)


def test_without_sq_counters_flops_are_unknown_and_bytes_are_not(analysed):
    result = analysed("ipblocks_TCC_MI300A_A1")
    flops = result.quantities.per_launch("flops")
    assert flops.value is None
    assert "SQ_INSTS_VALU_FMA_F32" in flops.missing
    assert "SQ_INSTS_VALU_MFMA_MOPS_F8" in flops.missing
    roofline = result.roofline
    assert roofline.models.valu_width.missing == ("SQ_INSTS_VALU", "SQ_INSTS_VALU_MFMA_MOPS_F32")
    assert (roofline.bound, roofline.operational_intensity.value) == (None, None)
    assert roofline.achieved_gbps.value > 2000


def test_without_tcp_counters_l2_traffic_is_an_interval_and_vl1d_hits_are_unknown(analysed):
    quantities = analysed("ipblocks_SQ_SPI_TA_TCC_CPF_MI300X_A1").quantities
    l2, hits = quantities.per_launch("l2_bytes"), quantities.per_launch("vl1d_hit_rate")
    assert l2.value <= 16_777_216 <= l2.upper
    assert "TCP_TCC_READ_REQ" in l2.missing
    assert hits.value is None
    assert "TCP_TOTAL_CACHE_ACCESSES" in hits.missing


def test_rates_use_dispatch_timestamps_not_counter_clocks(analysed):
    # 3 x 16.79 MB in 16160 + 14640 + 13800 ns.
    roofline = analysed("path_MI300X_A1").roofline
    assert roofline.time_ns.value == pytest.approx(44_600 / 3)
    assert roofline.achieved_gbps.value == pytest.approx(1129.5, abs=0.5)
    assert roofline.achieved_gbps.exactness is Exactness.EXACT
    assert roofline.spec.memory_share.value == pytest.approx(1129.5 / 5324.8, rel=1e-3)
    assert roofline.measured.memory_share.value == pytest.approx(1129.5 / 3910.62, rel=1e-3)


def test_counter_passes_alone_give_rates_as_estimates(analysed):
    result = analysed("vcopy_MI300X_A1_rocpd")
    assert result.roofline.achieved_gbps.exactness is Exactness.ESTIMATE
    assert 1700 < result.roofline.achieved_gbps.value < 3300
    strict = analysed("vcopy_MI300X_A1_rocpd", strict=True)
    assert strict.roofline.achieved_gbps.value is None
    assert strict.roofline.bytes.value == result.roofline.bytes.value


def test_the_slow_outlier_is_reported_and_the_mean_carries_it(analysed):
    result = analysed("kernel_MI300X_A1")
    assert result.roofline.time_ns.value == pytest.approx((16_879 + 14_280 + 45_159) / 3)
    assert "dispatch.outlier" in {d.code for d in result.diagnostics}


def test_rounded_timestamps_are_reported(analysed):
    result = analysed("vcopy_rounded_timestamps_MI300X_A1.csv")
    found = {d.code: d.count for d in result.diagnostics}
    assert found["dispatch.zero_duration"] == 3


@pytest.mark.parametrize(
    ("name", "quantity", "percent"),
    [
        # rocprofiler-compute `analyze` (panel 2) on the same folders; it averages ratios, we divide sums.
        ("path_MI300X_A1", "salu_utilization", 0.11),
        ("path_MI300X_A1", "valu_utilization", 0.10),
        ("path_MI300X_A1", "vmem_utilization", 0.03),
        ("path_MI300A_A1", "salu_utilization", 0.47),
        ("path_MI300A_A1", "valu_utilization", 0.40),
        ("path_MI300X_A1", "l2_hit_rate", 33.36),
        ("path_MI300A_A1", "l2_hit_rate", 33.40),
        ("path_MI300X_A1", "vl1d_hit_rate", 62.50),
        ("path_MI300X_A1", "sl1d_hit_rate", 99.74),
        ("path_MI300A_A1", "sl1d_hit_rate", 99.81),
        ("path_MI300X_A1", "l1i_hit_rate", 99.91),
    ],
)
def test_ratios_equal_those_of_rocprofiler_compute(analysed, name, quantity, percent):
    figure = analysed(name).quantities.per_launch(quantity)
    # Panel 2 is the upper end where its other panels disagree on hit rates, the lower one of utilisations.
    value = figure.upper if quantity in ("sl1d_hit_rate", "l1i_hit_rate") else figure.value
    assert 100 * value == pytest.approx(percent, abs=0.01)


@pytest.mark.parametrize(
    ("name", "read", "write"), [("path_MI300X_A1", 1034.49, 528.96), ("path_MI300A_A1", 1270.60, 421.16)]
)
def test_fabric_latencies_equal_those_of_rocprofiler_compute(analysed, name, read, write):
    quantities = analysed(name).quantities
    assert quantities.per_launch("fabric_read_latency").value == pytest.approx(read, rel=1e-3)
    assert quantities.per_launch("fabric_write_latency").value == pytest.approx(write, rel=1e-3)


def test_requests_per_instruction_are_ideal_for_a_coalesced_copy(analysed):
    quantities = analysed("path_MI300X_A1").quantities
    assert quantities.per_launch("l2_reads_per_load").value == 4
    assert quantities.per_launch("l2_writes_per_store").value == 8


def test_another_architecture_is_not_recognised(analysed):
    assert analysed("path_MI200").device is None
