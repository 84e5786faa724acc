"""The counter recordings of gfx942 through the whole command line, against the analytic truth of a copy.

The kernel copies 2^20 doubles: 8 MiB in, 8 MiB out, no floating-point operation (README of the set).
"""

from __future__ import annotations

import csv
import json
import statistics

import pytest

pytestmark = pytest.mark.data

ANALYTIC_BYTES = 16_777_216
WITH_ALL_COUNTERS = ("path_MI300X_A1", "kernel_MI300X_A1", "path_MI300A_A1", "vcopy_MI300X_A1_rocpd")
FOLDERS = (*WITH_ALL_COUNTERS, "ipblocks_SQ_SPI_TA_TCC_CPF_MI300X_A1", "ipblocks_TCC_MI300A_A1")


@pytest.fixture
def sets(rpl_shared_data):
    return rpl_shared_data / "counters_gfx942"


@pytest.fixture
def truth(sets):
    """``truth("folder")``: the per-dispatch figures that came with the recordings."""
    figures = json.loads((sets / "expected.json").read_text())["files"]
    return lambda name: figures[name]


@pytest.fixture
def analysed(sets, rpl_cli, tmp_path):
    """``analysed("folder")``: all four documents."""

    def analyse(name, *options):
        out = tmp_path / f"out-{name}-{len(options)}"
        rpl_cli("profile", "--device", "gfx942", "--from", sets / name, "-o", out, *options).assert_ok()
        return {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}

    return analyse


@pytest.mark.parametrize("name", FOLDERS)
def test_bytes_are_those_of_the_copy(name, analysed, truth):
    part = analysed(name)["profile"]["roofline"]
    expected = statistics.fmean(d["hbm_read_bytes"] + d["hbm_write_bytes"] for d in truth(name))
    assert part["bytes"] == pytest.approx(expected, rel=1e-9)
    assert part["bytes"] == pytest.approx(ANALYTIC_BYTES, rel=0.002)


@pytest.mark.parametrize("name", WITH_ALL_COUNTERS)
def test_no_flop_is_found_though_the_old_formula_sees_many(name, analysed):
    part = analysed(name)["profile"]["roofline"]
    assert part["flops"] == 0
    assert part["operational_intensity"] == 0
    assert part["bound"] == "memory"
    assert part["flop_model"] == "per_op"
    assert part["models"] == {"per_op": 0, "valu_width": 786_432, "ratio": None}


@pytest.mark.parametrize("name", WITH_ALL_COUNTERS)
def test_other_flop_model_on_request(name, analysed):
    documents = analysed(name, "--flop-model", "valu_width")
    assert documents["profile"]["roofline"]["flops"] == 786_432
    assert documents["roofline"]["requested_flop_model"] == "valu_width"


def test_bytes_by_hand_from_the_file(sets, analysed):
    """128-byte reads are counted as such (TCC_BUBBLE): 64 bytes for each request would give half."""
    totals = {}
    lines = (sets / "vcopy_MI300X_A1_rocpd" / "pmc_perf.csv").read_text().splitlines()
    for row in csv.DictReader(lines):
        totals.setdefault(row["Counter_Name"], {})[row["Dispatch_ID"]] = float(row["Counter_Value"])
    mean = {name: statistics.fmean(values.values()) for name, values in totals.items()}
    large, small = mean["TCC_BUBBLE_sum"], mean["TCC_EA0_RDREQ_32B_sum"]
    read = 128 * large + 64 * (mean["TCC_EA0_RDREQ_sum"] - large - small) + 32 * small
    full = mean["TCC_EA0_WRREQ_64B_sum"]
    written = 64 * full + 32 * (mean["TCC_EA0_WRREQ_sum"] - full)
    part = analysed("vcopy_MI300X_A1_rocpd")["profile"]["roofline"]
    assert part["bytes"] == pytest.approx(read + written, rel=1e-9)


@pytest.mark.parametrize("name", ["path_MI300X_A1", "kernel_MI300X_A1", "path_MI300A_A1"])
def test_achieved_bandwidth_is_bytes_over_the_mean_time(name, analysed, truth):
    profile = analysed(name)["profile"]
    mean_ns = statistics.fmean(d["duration_ns"] for d in truth(name))
    assert profile["runtime_ms"] == pytest.approx(sum(d["duration_ns"] for d in truth(name)) / 1e6)
    assert profile["roofline"]["achieved_gbps"] == pytest.approx(profile["roofline"]["bytes"] / mean_ns)


@pytest.mark.parametrize(
    ("name", "product", "compute_units"),
    [("path_MI300X_A1", "AMD Instinct MI300X", 304), ("path_MI300A_A1", "AMD Instinct MI300A", 228)],
)
def test_product_is_told_apart(name, product, compute_units, analysed):
    gpu = analysed(name)["profile"]["gpu"]
    assert (gpu["product"], gpu["compute_units"], gpu["wave_size"]) == (product, compute_units, 64)


def test_missing_blocks_are_named_and_cost_only_their_figures(analysed):
    kernel = analysed("ipblocks_TCC_MI300A_A1")["roofline"]["kernels"][0]
    assert kernel["flops"]["value"] is None
    assert any(name.startswith("SQ_INSTS_VALU") for name in kernel["flops"]["missing"])
    assert kernel["bytes"]["value"] == pytest.approx(ANALYTIC_BYTES, rel=0.002)
    partial = analysed("ipblocks_SQ_SPI_TA_TCC_CPF_MI300X_A1")["roofline"]["kernels"][0]
    levels = {level["level"]: level["bytes"] for level in partial["levels"]}
    assert levels["vl1d"]["value"] is None
    assert levels["vl1d"]["missing"]


def test_outlier_is_reported_beside_mean_and_median(analysed):
    documents = analysed("kernel_MI300X_A1")
    kernel = documents["profile"]["kernels"][0]
    assert kernel["mean_ns"] == pytest.approx(25_439, abs=1)
    assert (kernel["median_ns"], kernel["min_ns"], kernel["max_ns"]) == (16_879, 14_280, 45_159)
    outliers = [d for d in documents["profile"]["diagnostics"] if d["code"] == "dispatch.outlier"]
    assert len(outliers) == 1
    assert "45.16 us" in outliers[0]["fact"]


def test_times_of_one_dispatch_in_many_passes_are_an_estimate_with_its_range(analysed, truth):
    profile = analysed("vcopy_MI300X_A1_rocpd")["profile"]
    assert profile["runtime_exactness"] == "estimate"
    low, high = profile["runtime_range_ms"]
    passes = [dispatch["duration_ns_by_pass"] for dispatch in truth("vcopy_MI300X_A1_rocpd")]
    assert low >= sum(min(durations) for durations in passes) / 1e6
    assert high <= sum(max(durations) for durations in passes) / 1e6
    assert low <= profile["runtime_ms"] <= high


def test_rounded_timestamps_give_no_times_and_say_why(sets, rpl_cli, tmp_path):
    outcome = rpl_cli(
        "profile",
        "--device",
        "gfx942",
        "--from",
        sets / "vcopy_rounded_timestamps_MI300X_A1.csv",
        "-o",
        tmp_path / "out",
        "--json",
    ).assert_ok()
    profile = outcome.json()
    assert profile["runtime_ms"] is None
    assert "zero duration" in profile["runtime_reason"]
    (kernel,) = profile["kernels"]
    assert (kernel["runtime_ms"], kernel["median_ns"], kernel["time_share"]) == (None, None, None)
    assert "duration of zero" in kernel["runtime_reason"]
    assert profile["critical_path"]["critical_path_ns"] is None
    assert {"dispatch.zero_duration"} <= {d["code"] for d in profile["diagnostics"]}
    assert "saved by a spreadsheet" in outcome.stderr


def test_another_device_than_asked_for_is_65(sets, rpl_cli):
    outcome = rpl_cli("profile", "--device", "gfx942", "--from", sets / "path_MI200").assert_exit(65)
    assert "made on gfx90a, but --device asks for gfx942" in outcome.stderr


def test_occupancy_from_allocated_registers(analysed):
    """4 arch + 4 accum VGPRs are 8 allocated ones: eight waves per SIMD fit."""
    profile = analysed("path_MI300X_A1")["profile"]
    assert profile["resources"]["vgpr_per_thread"] == 8
    assert profile["occupancy"]["theoretical"] == 1.0
    assert profile["occupancy"]["threads_per_block"] == 256
    assert profile["occupancy"]["limiter"] == "wave_slots"
